"""Checked reading of a plan's table: what a mechanism's `from_plan` needs of it."""

from collections.abc import Mapping

from edge_ldp.device.channel import Wave, wave
from edge_ldp.device.errors import ParameterError


def integers(name: str, given: object, count: int | None = None) -> list[int]:
    """Return a list of integers (`count` of them, if given); raises ParameterError."""
    wanted = "integers" if count is None else f"{count} integers"
    if not isinstance(given, list) or count not in (None, len(given)):
        raise ParameterError(name, wanted)
    if any(type(number) is not int for number in given):
        raise ParameterError(name, wanted)
    return given


def integer(table: Mapping[str, object], name: str) -> int:
    """Return an integer field; raises ParameterError."""
    given = table.get(name)
    if type(given) is not int:
        raise ParameterError(name, "an integer")
    return given


def inner(table: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return a field that is a table itself; raises ParameterError."""
    given = table.get(name)
    if not isinstance(given, dict):
        raise ParameterError(name, "a table")
    return given


def bounds(table: Mapping[str, object]) -> tuple[int, int]:
    """Return (low, high); raises ParameterError."""
    low, high = integers("low, high", [table.get("low"), table.get("high")], 2)
    return low, high


def waves(table: Mapping[str, object], count: int) -> tuple[Wave, ...]:
    """Return `count` waves from rows [d, c, r_num, r_den]; raises ParameterError."""
    rows = table.get("waves")
    if not isinstance(rows, list) or len(rows) != count:
        raise ParameterError("waves", f"{count} of [d, c, r_num, r_den]")
    return tuple(wave(*integers("waves", row, 4)) for row in rows)


def wave_rows(waves: tuple[Wave, ...]) -> list[list[int]]:
    """Return the rows that `waves` reads."""
    return [[w.d, w.c, w.r_num, w.r_den] for w in waves]
