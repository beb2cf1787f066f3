"""The aggregator: counts of randomised codes in; plans, sums, curves and densities out."""
