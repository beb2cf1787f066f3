"""The errors of the aggregator. None of them ever carries a report of one device."""

from edge_ldp.device.errors import EdgeLdpError


class AggregatorError(EdgeLdpError):
    """Root of every error that only the aggregator raises."""


class StoreError(AggregatorError):
    """The store cannot be used: `where` it is, `reason`, and what to do."""

    def __init__(self, where: str, reason: str, remedy: str) -> None:
        super().__init__(f"store {where}: {reason}; {remedy}")
        self.where = where
        self.reason = reason
        self.remedy = remedy


class OldStoreError(StoreError):
    """A store of an older version (0: an empty database), which the service makes new."""

    def __init__(self, where: str, version: int, ours: int, remedy: str) -> None:
        super().__init__(where, f"is of schema {version}, this version reads {ours}", remedy)
        self.version = version


class FencedError(StoreError):
    """A plan whose epoch is not above every stored one: somebody else leads."""

    def __init__(self, where: str, stream: int, epoch: int, newest: int) -> None:
        reason = f"holds epoch {newest} of stream {stream}, so epoch {epoch} is not issued"
        super().__init__(where, reason, "only one aggregator may issue plans")


class SignOnError(AggregatorError):
    """Somebody is not signed on: `kind` (state, code, token, role, refused, provider), and why.

    Nothing of what was sent is in it.
    """

    def __init__(self, kind: str, reason: str) -> None:
        super().__init__(f"{kind}: {reason}")
        self.kind = kind
        self.reason = reason


class RivalError(AggregatorError):
    """Another aggregator serves the fleet, and came before us: `words` say how it shows."""

    def __init__(self, words: str) -> None:
        remedy = "let one of them serve the fleet, and stop the other (docs/administration.md)"
        super().__init__(f"{words}, and came first, so this one ends: {remedy}")
        self.words = words


class StoreHeldError(StoreError):
    """The store cannot be used now (locked, disk full, read-only): nothing was changed."""


class StoreAwayError(StoreHeldError):
    """A store on a server that does not answer, or is only just starting."""


class NothingError(AggregatorError):
    """There is nothing to answer with, or to change; the text says why."""


class MemberError(AggregatorError):
    """A wish that cannot be fulfilled: nothing of what it came with was done."""

    def __init__(self, where: str, reason: str, expected: str) -> None:
        super().__init__(f"{where}: {reason}; {expected}; nothing was changed")
        self.where = where
        self.reason = reason


class ConfigError(AggregatorError):
    """A configuration that cannot be used: `key` of `file` is not what is `expected`.

    `others` are more of the kind, of the same file: the text has a line for each.
    """

    def __init__(self, file: str, key: str, expected: str, line: int | None = None) -> None:
        where = f" (line {line})" if line else ""
        super().__init__(f"{file}: {key}: {expected}{where}")
        self.file = file
        self.key = key
        self.expected = expected
        self.line = line
        self.others: tuple[ConfigError, ...] = ()

    def __str__(self) -> str:
        return "\n".join(super(ConfigError, one).__str__() for one in (self, *self.others))
