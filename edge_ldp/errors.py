"""What estimators raise, beside `edge_ldp.device.errors`: none carries a report of one device."""

from edge_ldp.device.errors import EdgeLdpError


class CountsError(EdgeLdpError):
    """Counts that cannot be counts of a mechanism's codes: the table they come from is damaged."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"counts: {reason}")
        self.reason = reason


class RowError(EdgeLdpError):
    """A row of a store that does not parse: the store is damaged."""


class NoReportsError(EdgeLdpError):
    """There is nothing to estimate from: no report was counted. A result, not damage."""

    def __init__(self) -> None:
        super().__init__("no reports were counted")
