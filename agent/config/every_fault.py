"""The error that names every fault of a file with its line; loaded only when there is one."""

from collections.abc import Iterable

from agent.errors import ConfigError
from edge_ldp.service.toml_lines import placed


def every_fault(text: str, file: str, faults: Iterable[tuple[str, str]]) -> ConfigError:
    """Return the error that tells the faults, (key, expected) each, in order of their lines."""
    first, *others = (ConfigError(file, *fault) for fault in placed(text, faults))
    first.join(others)
    return first
