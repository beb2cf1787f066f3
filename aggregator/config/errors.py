"""What is wrong with a configuration."""

from aggregator.errors import AggregatorError


class ConfigError(AggregatorError):
    """A configuration that cannot be used: `key` of `file` is not what is `expected`."""

    def __init__(self, file: str, key: str, expected: str) -> None:
        super().__init__(f"{file}: {key}: {expected}")
        self.file = file
        self.key = key
        self.expected = expected
