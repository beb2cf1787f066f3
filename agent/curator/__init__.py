"""Values that run: a stream under central DP, or a period's sums; each released with noise."""
