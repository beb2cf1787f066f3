"""The aggregator's TOML file, parsed once: past this line there are no strings to interpret.

Unknown keys, missing keys and wrong values end in a ConfigError that names file, key and expected
form. Numbers with a point are read as decimals, so ε is exactly what was written. Relative paths
are relative to the working directory.
"""

import tomllib
from collections.abc import Iterable
from decimal import Decimal
from itertools import islice
from pathlib import Path

from aggregator.config.errors import ConfigError
from aggregator.config.faults import faults
from aggregator.config.tables import AggregatorConfig
from edge_ldp.typed_table import TableError, read_table

GONE = {
    "corrected_sums": "the line to be left out: θ is always chosen for the sums that query corrects"
}


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
        return read_table(AggregatorConfig, table, _first_fault)
    except TableError as exc:
        key, expected = exc.faults[0]
        expected = GONE.get(key.rpartition(".")[2], expected)
        raise ConfigError(file, key, f"expected {expected}") from exc


def _first_fault(config: AggregatorConfig) -> Iterable[tuple[str, str]]:
    """Return the first contradiction if any: each is looked for as if those before were none."""
    return islice(faults(config), 1)
