"""The agent's TOML file, parsed once: past this line there are no strings to interpret.

Unknown keys, missing keys and wrong values end in a ConfigError that names file, key and expected
form. Numbers with a point are read as decimals, so ε is exactly what the owner wrote.
"""

import tomllib
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from agent.config.faults import faults_of
from agent.config.secrets import check_files, place_credentials
from agent.config.sections import AgentConfig
from agent.errors import ConfigError
from agent.meters.section import MeterTable, meter_faults
from edge_ldp.service.typed_table import TableError, read_table


def load_config(path: Path, credentials: str | None = None) -> AgentConfig:
    """Return the checked configuration; raises ConfigError(file, key, expected).

    `credentials` is the directory where systemd placed this service's, if it did.
    """
    try:
        text = path.read_text()
    except OSError as exc:
        raise ConfigError(str(path), "file", _readable(path, exc)) from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(str(path), "file", "UTF-8 text") from exc
    config = place_credentials(parse_config(text, str(path)), credentials)
    check_files(config, str(path), credentials)
    return config


def _readable(path: Path, exc: OSError) -> str:
    """Return what is expected of a file that cannot be read, and how to read it after all."""
    expected = f"a readable file ({exc.strerror})"
    if isinstance(exc, PermissionError):
        place = "a file in a home is closed to others, whom sudo -u makes you: /etc/edge-ldp is not"
        return f"{expected}: run this with sudo, or as the user that the agent runs as; {place}"
    if isinstance(exc, FileNotFoundError):
        return f"{expected}: `edge-ldp agent setup -c {path}` writes one"
    return expected


def parse_config(text: str, file: str) -> AgentConfig:
    """Return the configuration in `text`; raises ConfigError naming every fault and its line."""
    table = _load_toml(text, file)
    try:
        return read_table(AgentConfig, table, faults_of)
    except TableError as exc:
        raise _every_fault(text, file, exc.faults) from exc


def parse_meter(text: str, file: str) -> MeterTable:
    """Return the [meter] table that the lines of `text` make; raises ConfigError as above."""
    table = _load_toml(text, file)
    try:
        return read_table(MeterTable, table, meter_faults, "meter.")
    except TableError as exc:
        raise ConfigError(file, *exc.faults[0]) from exc


def _every_fault(text: str, file: str, faults: Iterable[tuple[str, str]]) -> ConfigError:
    """Return the error that tells the faults, (key, expected) each, in order of their lines."""
    from edge_ldp.service.toml_lines import placed  # noqa: PLC0415 (memory: bad files only)

    first, *others = (ConfigError(file, *fault) for fault in placed(text, faults))
    first.join(others)
    return first


def _load_toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as exc:  # endless numbers, deep nesting
        raise ConfigError(file, "syntax", f"TOML ({exc})") from exc
