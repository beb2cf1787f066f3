"""Where a key stands in a TOML text: the line that an error names."""

import re
from collections.abc import Iterable, Iterator, Mapping

from edge_ldp.service.typed_table import Fault

_TABLES = re.compile(r"\[\[\s*([^\[\]]+?)\s*\]\]")
_TABLE = re.compile(r"\[\s*([^\[\]]+?)\s*\]")
_KEY = re.compile(r"""([\w."'-]+)\s*=""")
_LAST = re.compile(r"(\.[^.\[]*|\[\d+\]|^[^.\[]+)\Z")


def placed(text: str, faults: Iterable[Fault]) -> list[tuple[str, str, int | None]]:
    """Return (key, expected, line) of each fault once, in order of the lines of `text`."""
    lines = dict(_lines(text))
    found = [(key, expected, _line_of(key, lines)) for key, expected in dict.fromkeys(faults)]
    return sorted(found, key=lambda fault: fault[2] or len(text))


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
            around, _, below = table.partition(".")
            if around in counts:  # [streams.sums] is of the last [[streams]] before it
                table = f"{around}[{counts[around]}].{below}"
                yield table, number
        elif key := _KEY.match(words):
            yield f"{table}.{key[1]}".lstrip("."), number


def _line_of(key: str, lines: Mapping[str, int]) -> int | None:
    """Return the line of a key, or of the innermost table around it."""
    while key:
        if key in lines:
            return lines[key]
        key = _LAST.sub("", key)
    return None
