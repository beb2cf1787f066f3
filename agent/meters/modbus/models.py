"""The tables of models that are shipped, and an owner's own file, read when a meter is made.

docs/meters.md, Modbus.
"""

import tomllib
from decimal import Decimal
from functools import cache
from pathlib import Path

from agent.errors import ConfigError
from agent.meters.modbus.table import ModelTable, model_faults
from edge_ldp.service.typed_table import TableError, read_table

_SHIPPED = Path(__file__).parent / "models"
_MOST_BYTES = 65_536


@cache
def shipped(name: str) -> ModelTable:
    """Return the table of a model that protocols.MODELS names."""
    return own(_SHIPPED / f"{name}.toml")


def own(path: Path | str) -> ModelTable:
    """Return the table in a file; raises ConfigError with the file, the key and what it may be."""
    try:
        with Path(path).open("rb") as file:
            text = file.read(_MOST_BYTES).decode("utf-8")
        raw = tomllib.loads(text, parse_float=Decimal)
    except OSError as exc:
        raise ConfigError(str(path), "model_file", f"a readable file ({exc.strerror})") from exc
    except ValueError as exc:
        raise ConfigError(str(path), "model_file", f"a table of TOML ({exc})") from exc
    try:
        return read_table(ModelTable, raw, model_faults, "")
    except TableError as exc:
        key, expected = exc.faults[0]
        raise ConfigError(str(path), key, expected) from exc
