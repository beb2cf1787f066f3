"""The user's own values, checked before any study sees them; messages count and never show one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from edge_ldp.device.errors import EdgeLdpError, ParameterError
from edge_ldp.ratio import exact_epsilon
from studies.evaluate.study import Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MAX_VALUE = 1 << 53  # floats count no further
MAX_EPSILON = 10  # above, nearly every report tells the truth


class InputError(EdgeLdpError):
    """Values that no study can be run on: file or option, field, what is wrong, what to do."""

    def __init__(self, file: str, field: str, reason: str, remedy: str) -> None:
        super().__init__(f"{file}, {field}: {reason}; {remedy}")
        self.file = file
        self.field = field
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The public range of the readings, low..ceiling, chosen without looking at them.

    `clamp`: values outside are put on its ends, instead of being refused.
    """

    low: int
    ceiling: int
    unit: str = ""
    clamp: bool = False


def numbers(rows: Iterator[list[str]], file: str, column: str) -> NDArray[np.float64]:
    """Return a CSV's column (the first row names the columns); an empty field is NaN.

    Raises InputError for no such column, a row that ends before it, and what is no number.
    """
    header = [name.strip() for name in next(rows, [])]
    if column not in header:
        known = ", ".join(header) or "none"
        raise InputError(file, column, "no such column", f"the header has {known}")
    at = header.index(column)
    found: list[float] = []
    for line, row in enumerate(rows, start=2):
        if not row:
            continue
        try:
            field = row[at].strip()
            found.append(float(field) if field else float("nan"))
        except (IndexError, ValueError) as exc:
            remedy = "give a number in every row"
            raise InputError(file, column, f"no number in line {line}", remedy) from exc
    return np.array(found, np.float64)


def checked_values(given: NDArray[Any], file: str, field: str, limits: ValueRange) -> Values:
    """Return the values as a data set named after the field; raises InputError.

    Refused: no values, other shapes, what is not a number (NaN, missing), fractions, a range that
    is empty or too large, and, unless clamped, values outside it.
    """
    if given.dtype.kind not in "iuf" or given.ndim != 1:
        kind = f"{given.dtype} of shape {given.shape}"
        raise InputError(file, field, f"{kind}, not a list of numbers", "give one-dimensional ints")
    if not given.size:
        raise InputError(file, field, "no values", "give one reading or more")
    _refuse_range(limits)
    _refuse_fractions(given, file, field)
    below, above = int((given < limits.low).sum()), int((given > limits.ceiling).sum())
    if (below or above) and not limits.clamp:
        outside = f"{below + above} of {given.size} values outside {limits.low}..{limits.ceiling}"
        reason = f"{outside} ({below} below, {above} above)"
        raise InputError(file, field, reason, "give another --low or --ceiling, or --clamp")
    values = np.clip(given, limits.low, limits.ceiling).astype(np.int64)
    clamped = f", {below + above} of them clamped" if below or above else ""
    name = " ".join(field.split())
    source = f"{given.size} values of the user{clamped}"
    return Values(name, values, limits.low, limits.ceiling, limits.unit, source)


def in_homes(values: Values, homes: int, slots_per_day: int) -> Values:
    """Return the values as blocks of one home each, one after the other; raises InputError."""
    if homes < 1 or len(values.values) % homes:
        reason = f"{len(values.values)} values are not {homes} blocks of the same length"
        raise InputError("--homes", str(homes), reason, "give each home the same number of slots")
    if slots_per_day < 1:
        raise InputError("--slots-per-day", str(slots_per_day), "too small", "give 1 or more")
    return replace(values, homes=homes, slots_per_day=slots_per_day)


def _refuse_range(limits: ValueRange) -> None:
    if not -MAX_VALUE <= limits.low < limits.ceiling <= MAX_VALUE:
        reason = f"the range {limits.low}..{limits.ceiling} is none"
        raise InputError("--low, --ceiling", "both", reason, "give low < ceiling, within 2**53")


def _refuse_fractions(given: NDArray[Any], file: str, field: str) -> None:
    if given.dtype.kind != "f":
        return
    missing = int((~np.isfinite(given)).sum())
    if missing:
        reason = f"{missing} of {given.size} values are missing or not finite"
        raise InputError(file, field, reason, "leave those rows out")
    broken = int((given != np.floor(given)).sum())
    if broken:
        reason = f"{broken} of {given.size} values are not whole numbers"
        raise InputError(file, field, reason, "give a finer unit, W instead of kW")


def parse_epsilons(given: str) -> tuple[float, ...]:
    """Return the budgets of `--epsilon E[,E…]`, each in (2⁻¹⁶, MAX_EPSILON]; raises InputError."""
    found: list[float] = []
    for part in given.split(","):
        try:
            epsilon = float(exact_epsilon(part.strip()))
        except ParameterError:
            epsilon = inf
        if epsilon > MAX_EPSILON:
            remedy = f"give numbers above 2**-16, at most {MAX_EPSILON}, with commas between"
            raise InputError("--epsilon", part.strip() or "empty", "not a budget", remedy)
        found.append(epsilon)
    return tuple(dict.fromkeys(found))
