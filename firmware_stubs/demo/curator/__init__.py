"""The demo of the curator mode: a real home's year, published by a real agent under central DP."""
