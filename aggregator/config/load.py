"""The aggregator's TOML file, parsed once: past this line there are no strings to interpret.

Unknown keys, missing keys and wrong values end in a ConfigError that names file, key and expected
form. Numbers with a point are read as decimals, so ε is exactly what was written. Relative paths
are relative to the working directory.
"""

import tomllib
from decimal import Decimal
from pathlib import Path

import msgspec

from aggregator.config.errors import ConfigError
from aggregator.config.faults import faults
from aggregator.config.tables import AggregatorConfig
from edge_ldp.table_words import explain


def load_config(path: Path) -> AggregatorConfig:
    """Return the checked configuration; raises ConfigError(file, key, expected)."""
    try:
        text = path.read_text()
    except OSError as exc:
        raise ConfigError(str(path), "file", f"expected a readable file ({exc.strerror})") from exc
    except UnicodeDecodeError as exc:
        raise ConfigError(str(path), "file", "expected UTF-8 text") from exc
    return parse_config(text, str(path))


def parse_config(text: str, file: str) -> AggregatorConfig:
    """Return the configuration in `text`; raises ConfigError naming `file`, key and expected."""
    try:
        table = tomllib.loads(text, parse_float=Decimal)
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(file, "syntax", f"expected TOML ({exc})") from exc
    try:
        config = msgspec.convert(table, AggregatorConfig)
    except msgspec.ValidationError as exc:
        key, expected = explain(str(exc), AggregatorConfig)
        raise ConfigError(file, key or "file", f"expected {expected}") from exc
    for key, expected in faults(config):
        raise ConfigError(file, key, f"expected {expected}")
    return config
