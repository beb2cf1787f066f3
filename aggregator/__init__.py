"""The aggregator: counts of randomised codes in, densities, thresholds, sums and plans out."""

from aggregator.errors import AggregatorError, ArgumentError, CountsError, NoReportsError

__all__ = ["AggregatorError", "ArgumentError", "CountsError", "NoReportsError"]
