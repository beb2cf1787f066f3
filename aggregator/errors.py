"""The errors of the aggregator's cores. None of them ever carries a report of one device."""


class AggregatorError(ValueError):
    """Root of every error that the aggregator raises."""


class ArgumentError(AggregatorError):
    """An argument outside what it may be; `name` says which and `expected` what it may be."""

    def __init__(self, name: str, expected: str) -> None:
        super().__init__(f"{name}: expected {expected}")
        self.name = name
        self.expected = expected


class CountsError(AggregatorError):
    """Counts that cannot be counts of a mechanism's codes: the table they come from is damaged."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"counts: {reason}")
        self.reason = reason


class RowError(AggregatorError):
    """A row of a store that does not parse: the store is damaged."""


class NoReportsError(AggregatorError):
    """There is nothing to estimate from: no report was counted. A result, not damage."""

    def __init__(self) -> None:
        super().__init__("no reports were counted")
