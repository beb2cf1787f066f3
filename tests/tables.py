"""Tables of cases whose rows share a first value."""

from collections.abc import Iterable
from typing import Any


def each(*rows: tuple[Any, ...]) -> Iterable[tuple[Any, Any]]:
    """Return a pair of the first and of each other value of every row."""
    return [(first, other) for first, *others in rows for other in others]
