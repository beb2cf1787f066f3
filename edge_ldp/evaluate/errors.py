"""What `edge-ldp evaluate` refuses. Messages count readings, and never show one."""

from edge_ldp.device.errors import EdgeLdpError


class InputError(EdgeLdpError):
    """Values that no study can be run on: file or option, field, what is wrong, what to do."""

    def __init__(self, file: str, field: str, reason: str, remedy: str) -> None:
        super().__init__(f"{file}, {field}: {reason}; {remedy}")
        self.file = file
        self.field = field
        self.reason = reason
        self.remedy = remedy


class RowsError(EdgeLdpError):
    """A file of rows that this run may not go on with; `file`, the reason and the remedy."""

    def __init__(self, file: str, reason: str, remedy: str) -> None:
        super().__init__(f"{file}: {reason}; {remedy}")
        self.file = file
        self.reason = reason
        self.remedy = remedy
