"""The error that names every fault of a file with its line; loaded only when there is one."""

import re
from collections.abc import Iterable, Iterator

from agent.errors import ConfigError

_TABLES = re.compile(r"\[\[\s*([^\[\]]+?)\s*\]\]")
_TABLE = re.compile(r"\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""([\w."'-]+)\s*=""")
_LAST = re.compile(r"(\.[^.\[]*|\[\d+\]|^[^.\[]+)\Z")


def every_fault(text: str, file: str, faults: Iterable[tuple[str, str]]) -> ConfigError:
    """Return the error that tells the faults, (key, expected) each, in order of their lines."""
    lines = dict(_lines(text))
    told = [(key, expected, _line_of(key, lines)) for key, expected in dict.fromkeys(faults)]
    told.sort(key=lambda fault: fault[2] or len(text))
    first, *others = (ConfigError(file, key, expected, line) for key, expected, line in told)
    first.join(others)
    return first


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
