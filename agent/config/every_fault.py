"""All that is wrong in a configuration at once, each with its line; loaded only when something is.

msgspec stops at the first fault, so each key is converted by itself here. What is good is put
together and looked at for contradictions too.
"""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from agent.config.faults import faults_of
from agent.config.tables import AgentConfig
from agent.errors import ConfigError

Explain = Callable[[str], tuple[str, str]]
"""Turns what msgspec says into (key, expected)."""

_TABLES = re.compile(r"\[\[\s*([^\[\]]+?)\s*\]\]")
_TABLE = re.compile(r"\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""([\w."'-]+)\s*=""")
_LAST = re.compile(r"(\.[^.\[]*|\[\d+\]|^[^.\[]+)\Z")


def every_fault(text: str, table: dict[str, Any], file: str, explain: Explain) -> ConfigError:
    """Return the error that names every fault of a table that `text` made, in order of lines."""
    faults, good = _look(AgentConfig, table, "", explain)
    try:
        config = msgspec.convert(good, AgentConfig, builtin_types=(Decimal,))
    except msgspec.ValidationError:
        pass  # too much is missing to compare what is there
    else:
        faults += [fault for fault in faults_of(config) if not _is_told(fault[0], faults)]
    lines = dict(_lines(text))
    told = [(key, expected, _line_of(key, lines)) for key, expected in dict.fromkeys(faults)]
    told.sort(key=lambda fault: fault[2] or len(text))
    first, *others = (ConfigError(file, key, expected, line) for key, expected, line in told)
    first.join(others)
    return first


def _look(
    kind: Any, table: dict[str, Any], at: str, explain: Explain
) -> tuple[list[tuple[str, str]], dict[str, Any]]:
    """Return the faults of one table, and the table of what is good in it."""
    hints = get_type_hints(kind, include_extras=True)
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    faults = [(f"{at}{name}", "no such key") for name in table if name not in fields]
    good: dict[str, Any] = {}
    for name, field in fields.items():
        if name in table:
            found, good[name] = _check(hints[name], table[name], f"{at}{name}", explain)
            faults += found
            if found and good[name] is None:
                del good[name]
        elif field.required:
            faults.append((f"{at}{name}", "a value: the key is missing"))
    return faults, good


def _check(kind: Any, value: Any, key: str, explain: Explain) -> tuple[list[tuple[str, str]], Any]:
    """Return the faults of one value, and what is good of it: None for nothing."""
    inner = next((part for part in (kind, *get_args(kind)) if _is_table(part)), None)
    is_list = get_origin(kind) is tuple
    if inner and isinstance(value, dict) and not is_list:
        return _look(inner, value, f"{key}.", explain)
    if inner and is_list and isinstance(value, list) and all(isinstance(v, dict) for v in value):
        looked = [_look(inner, one, f"{key}[{n}].", explain) for n, one in enumerate(value)]
        return [fault for faults, _ in looked for fault in faults], [good for _, good in looked]
    try:
        msgspec.convert(value, kind, builtin_types=(Decimal,))
    except msgspec.ValidationError as exc:
        what, _, inside = str(exc).partition(" - at `$")
        return [explain(f"{what} - at `$.{key}{inside.rstrip('`')}`")], None
    return [], value


def _is_table(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_told(key: str, faults: list[tuple[str, str]]) -> bool:
    """Say whether a fault of this key, or of a table that it lies in, is known."""
    return any(key == told or key.startswith((f"{told}.", f"{told}[")) for told, _ in faults)


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Yield (key, line) of tables and keys; a text that looks like one may be taken for it."""
    table, counts = "", dict[str, int]()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.strip()
        if several := _TABLES.match(words):
            name = several[1]
            counts[name] = counts.get(name, -1) + 1
            table = f"{name}[{counts[name]}]"
            yield table, number
        elif one := _TABLE.match(words):
            table = one[1]
            yield table, number
        elif key := _KEY.match(words):
            yield f"{table}.{key[1]}".lstrip("."), number


def _line_of(key: str, lines: dict[str, int]) -> int | None:
    """Return the line of a key, or of the innermost table around it."""
    while key:
        if key in lines:
            return lines[key]
        key = _LAST.sub("", key)
    return None
