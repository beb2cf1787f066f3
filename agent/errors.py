"""The errors of the agent. None of them ever carries a reading, a value or a telegram's bytes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class AgentError(Exception):
    """Root of every error that the agent raises."""


class ConfigError(AgentError):
    """A configuration that cannot be used: `key` of `file` is not what is `expected`.

    `others` are more of the kind, of the same file: the text has a line for each.
    """

    def __init__(self, file: str, key: str, expected: str, line: int | None = None) -> None:
        where = f" (line {line})" if line else ""
        super().__init__(f"{file}: {key}: expected {expected}{where}")
        self.file = file
        self.key = key
        self.expected = expected
        self.line = line
        self.others: tuple[ConfigError, ...] = ()

    def join(self, others: "Iterable[ConfigError]") -> None:
        """Tell of these, too."""
        self.others = tuple(others)

    def __str__(self) -> str:
        return "\n".join(super(ConfigError, one).__str__() for one in (self, *self.others))


class PortError(AgentError):
    """A serial port that cannot be opened or is gone; `remedy` tells a person what to do."""

    def __init__(self, path: str, reason: str, remedy: str) -> None:
        super().__init__(f"{path}: {reason}; {remedy}")
        self.path = path
        self.reason = reason
        self.remedy = remedy


class StorageError(AgentError):
    """Durable state that cannot be read or written, so nothing may be claimed or sent.

    `passes`: nothing was written, and it may be when there is room or the right to write again.
    """

    def __init__(self, path: str, reason: str, remedy: str = "", *, passes: bool = False) -> None:
        super().__init__(f"{path}: {reason}" + (f"; {remedy}" if remedy else ""))
        self.path = path
        self.reason = reason
        self.remedy = remedy
        self.passes = passes


class StateGoneError(StorageError):
    """A state of which nothing can be told; `state`: "absent" as yet, "lost" or "damaged"."""

    def __init__(self, path: str, state: str, reason: str, remedy: str = "") -> None:
        super().__init__(path, reason, remedy)
        self.state = state


@contextmanager
def storing(path: object, remedy: str) -> Iterator[None]:
    """Let what the operating system refuses in here be a StorageError of this path."""
    try:
        yield
    except OSError as exc:
        raise StorageError(str(path), exc.strerror or "", remedy) from exc
