"""The errors of the library. None of them ever carries a reading or a value."""


class EdgeLdpError(ValueError):
    """Root of every error that the library raises; each can be copied and pickled."""

    def __reduce__(self) -> "tuple[object, ...]":
        # not by calling the class with its message: most are made from facts, not from text
        return _again, (type(self), self.args), self.__dict__


class ParameterError(EdgeLdpError):
    """A parameter outside what it may be; `name` says which and `expected` what it may be."""

    def __init__(self, name: str, expected: str) -> None:
        super().__init__(f"{name}: expected {expected}")
        self.name = name
        self.expected = expected


class EntropyError(EdgeLdpError):
    """The entropy source gave fewer bytes than asked for, so nothing may be sent."""


class WireError(EdgeLdpError):
    """Bytes that are no frame of ours: `reason` is a short code, `offset` where it shows."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(f"frame: {reason} at byte {offset}")
        self.reason = reason
        self.offset = offset


def check_wire(holds: object, reason: str, offset: int) -> None:
    """Raise WireError(reason, offset) unless something holds."""
    if not holds:
        raise WireError(reason, offset)


def _again(kind: "type[EdgeLdpError]", args: "tuple[object, ...]") -> EdgeLdpError:
    """Return a copied or pickled error as it was, its facts apart."""
    return kind.__new__(kind, *args)
