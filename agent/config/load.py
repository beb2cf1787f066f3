"""The agent's TOML file, parsed once: past this line there are no strings to interpret.

Unknown keys, missing keys and wrong values end in a ConfigError that names file, key and expected
form. Numbers with a point are read as decimals, so ε is exactly what the owner wrote.
"""

import re
import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from agent.config.faults import faults_of
from agent.config.secrets import check_files, place_credentials
from agent.config.tables import AgentConfig
from agent.errors import ConfigError
from agent.meters.config import MeterTable, meter_faults


def load_config(path: Path, credentials: str | None = None) -> AgentConfig:
    """Return the checked configuration; raises ConfigError(file, key, expected).

    `credentials` is the directory where systemd placed this service's, if it did.
    """
    try:
        text = path.read_text()
    except OSError as exc:
        raise ConfigError(str(path), "file", f"a readable file ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(str(path), "file", "UTF-8 text") from exc
    config = place_credentials(parse_config(text, str(path)), credentials)
    check_files(config, str(path), credentials)
    return config


def parse_config(text: str, file: str) -> AgentConfig:
    """Return the configuration in `text`; raises ConfigError naming every fault and its line."""
    table = _load_toml(text, file)
    try:
        config = msgspec.convert(table, AgentConfig, builtin_types=(Decimal,))
        if not faults_of(config):
            return config
    except msgspec.ValidationError:
        pass
    from agent.config.every_fault import every_fault  # noqa: PLC0415 (memory: bad files only)

    raise every_fault(text, table, file, _explain)


def parse_meter(text: str, file: str) -> MeterTable:
    """Return the [meter] table that the lines of `text` make; raises ConfigError as above."""
    table = _load_toml(text, file)
    try:
        meter = msgspec.convert(table, MeterTable, builtin_types=(Decimal,))
    except msgspec.ValidationError as exc:
        key, expected = _explain(str(exc).replace("at `$", "at `$.meter"))
        raise ConfigError(file, key, expected) from exc
    for key, expected in meter_faults(meter):
        raise ConfigError(file, key, expected)
    return meter


def _load_toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (ValueError, ArithmeticError, RecursionError) as exc:  # endless numbers, deep nesting
        raise ConfigError(file, "syntax", f"TOML ({exc})") from exc


def _explain(message: str) -> tuple[str, str]:
    """Return (key, expected) of what msgspec says, without the value it may quote."""
    what, _, at = message.partition(" - at `$")
    key = at.rstrip("`").lstrip(".")
    if field := re.match(r"Object (contains unknown|missing required) field `(.*)`", what):
        key = f"{key}.{field[2]}".lstrip(".")
        return key, "no such key" if "unknown" in field[1] else "a value: the key is missing"
    if what.startswith("Invalid enum value"):
        return key, "one of " + ", ".join(map(repr, _choices(key)))
    if "matching regex" in what:
        return (
            key,
            "a name or address" if key == "broker.host" else "text, and no control characters",
        )
    return key or "file", what.removeprefix("Expected ")


def _choices(key: str) -> tuple[str, ...]:
    """Return what a key with a fixed choice may be."""
    kind: object = AgentConfig
    for name in re.sub(r"\[[^]]*]", "", key).split("."):
        table = next((part for part in get_args(kind) if part is not ...), kind)
        kind = get_type_hints(table)[name]
    choice = next((part for part in get_args(kind) if get_origin(part) is Literal), kind)
    return get_args(choice)
