"""The errors of the agent. None of them ever carries a reading, a value or a telegram's bytes."""


class AgentError(Exception):
    """Root of every error that the agent raises."""


class ConfigError(AgentError):
    """A configuration that cannot be used: `key` of `file` is not what is `expected`."""

    def __init__(self, file: str, key: str, expected: str) -> None:
        super().__init__(f"{file}: {key}: expected {expected}")
        self.file = file
        self.key = key
        self.expected = expected


class PortError(AgentError):
    """A serial port that cannot be opened or is gone; `remedy` tells a person what to do."""

    def __init__(self, path: str, reason: str, remedy: str) -> None:
        super().__init__(f"{path}: {reason}; {remedy}")
        self.path = path
        self.reason = reason
        self.remedy = remedy


class StorageError(AgentError):
    """Durable state that cannot be read or written, so nothing may be claimed or sent."""

    def __init__(self, path: str, reason: str, remedy: str = "") -> None:
        super().__init__(f"{path}: {reason}" + (f"; {remedy}" if remedy else ""))
        self.path = path
        self.reason = reason
        self.remedy = remedy


class LinkError(AgentError):
    """A broker that cannot be reached or refuses us; `endpoint` is host:port, never a secret."""

    def __init__(self, endpoint: str, reason: str) -> None:
        super().__init__(f"{endpoint}: {reason}")
        self.endpoint = endpoint
        self.reason = reason
