"""The central mode: a stream that its own device publishes under central DP."""
