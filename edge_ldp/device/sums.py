"""A home's own sums: which period and cell a slot is in, and what leaves the house of them.

A period is whole days; a cell is the same part of each of its days. S of a cell is the sum of
min(max(v, low), low + span) - low over its slots that had a value v, n how many had. Only S plus
noise leaves. Source: docs/methods.md, Period sums.
"""

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.laplace import MAX_BLOCK, block_laplace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from edge_ldp.device.draw import Uniform

DAY_S = 86_400
CELLS = (1, 2, 3, 4, 6, 8, 12, 24, 48, 96)
MAX_DAYS = 366
LEAST_SLOTS = 2  # of a cell in one period: a lone slot is a reading, with little noise


def check_layout(slot_seconds: int, days: int, cells: int, offset_s: int, block: int) -> None:
    """Raise ParameterError for what does not divide the day, or has cells of one slot."""
    for number in (slot_seconds, days, cells, offset_s, block):
        if type(number) is not int:
            raise ParameterError("layout", "integers")
    if not 1 <= slot_seconds <= DAY_S or DAY_S % slot_seconds:
        raise ParameterError("slot_seconds", "a length that divides the day")
    if not 1 <= days <= MAX_DAYS:
        raise ParameterError("days", "1 to 366")
    if cells not in CELLS or DAY_S // slot_seconds % cells:
        raise ParameterError("cells", "one of 1, 2, 3, 4, 6, 8, 12, 24, 48, 96, of whole slots")
    if not 0 <= offset_s < DAY_S or offset_s % slot_seconds:
        raise ParameterError("offset_s", "whole slots, less than a day")
    if not 1 <= block <= min(cells, MAX_BLOCK) or cells % block:
        raise ParameterError("block", "a divisor of the cells")
    if days * (DAY_S // slot_seconds) // cells < LEAST_SLOTS:
        raise ParameterError("cells", "at least 2 slots in each")


def period_of(slot: int, slot_seconds: int, days: int, offset_s: int) -> int:
    """Return which period a slot is in, counted from 1970."""
    return (slot - offset_s // slot_seconds) // (days * (DAY_S // slot_seconds))


def cell_of(slot: int, slot_seconds: int, cells: int, offset_s: int) -> int:
    """Return which cell of the day a slot is in."""
    slots_a_day = DAY_S // slot_seconds
    return (slot - offset_s // slot_seconds) % slots_a_day * cells // slots_a_day


def release(sums: "Sequence[int]", scale: int, block: int, draw: "Uniform") -> "tuple[int, ...]":
    """Return what leaves of a period: each cell's S with its noise, `block` cells by `block`.

    How much is drawn depends on no sum. To be called once for a period: two releases of the same
    sums cost twice. Raises ParameterError.
    """
    if len(sums) % block:
        raise ParameterError("block", "a divisor of the cells")
    noise: list[int] = []
    for _ in range(0, len(sums), block):
        noise.extend(block_laplace(scale, block, draw))
    return tuple([held + one for held, one in zip(sums, noise)])  # noqa: B905 (MicroPython)
