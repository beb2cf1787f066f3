"""Checked reading of a plan's table: what a mechanism's `from_plan` needs of it."""

from collections.abc import Mapping

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
