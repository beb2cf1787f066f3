"""Which slots a sum is over: periods of whole days, and cells, the same parts of each day.

Integers only; slots are those of the stream, counted from 1970. Source: docs/design.md, Values and
reports.
"""

from dataclasses import dataclass

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.laplace import MAX_BLOCK

DAY_S = 86_400
CELLS = (1, 2, 3, 4, 6, 8, 12, 24, 48, 96)
MAX_DAYS = 366
LEAST_SLOTS = 2  # of a cell in one period: a lone slot is a reading, with little noise


@dataclass(frozen=True, slots=True)
class PeriodLayout:
    """A period of `days` days, each cut into `cells` equal parts from `offset_s` past midnight UTC.

    `block`: so many neighbouring cells share one noise (`edge_ldp.device.laplace`); 1: none does.
    Raises ParameterError for a layout that does not divide the day, or whose cells hold one slot.
    """

    slot_seconds: int
    days: int
    cells: int = 1
    offset_s: int = 0
    block: int = 1

    def __post_init__(self) -> None:
        numbers = (self.slot_seconds, self.days, self.cells, self.offset_s, self.block)
        if any(type(number) is not int for number in numbers):
            raise ParameterError("layout", "integers")
        if not 1 <= self.slot_seconds <= DAY_S or DAY_S % self.slot_seconds:
            raise ParameterError("slot_seconds", "a length that divides the day")
        if not 1 <= self.days <= MAX_DAYS:
            raise ParameterError("days", f"1 to {MAX_DAYS}")
        if self.cells not in CELLS or self.slots_a_day % self.cells:
            raise ParameterError("cells", f"one of {CELLS}, each of whole slots")
        if not 0 <= self.offset_s < DAY_S or self.offset_s % self.slot_seconds:
            raise ParameterError("offset_s", "whole slots, less than a day")
        if not 1 <= self.block <= min(self.cells, MAX_BLOCK) or self.cells % self.block:
            raise ParameterError("block", "a divisor of the cells")
        if self.days * self.slots_a_day // self.cells < LEAST_SLOTS:
            raise ParameterError("cells", f"at least {LEAST_SLOTS} slots in each")

    @property
    def slots_a_day(self) -> int:
        """Slots of a day."""
        return DAY_S // self.slot_seconds

    @property
    def slots(self) -> int:
        """Slots of a period."""
        return self.days * self.slots_a_day

    @property
    def slots_in_cell(self) -> int:
        """Slots of one cell in a whole period: n is never above it."""
        return self.slots // self.cells

    def period(self, slot: int) -> int:
        """Return which period a slot is in, counted from 1970."""
        return self._since_begin(slot) // self.slots

    def cell(self, slot: int) -> int:
        """Return which cell of the day a slot is in."""
        return self._since_begin(slot) % self.slots_a_day * self.cells // self.slots_a_day

    def first_slot(self, period: int) -> int:
        """Return the first slot of a period."""
        return period * self.slots + self.offset_s // self.slot_seconds

    def _since_begin(self, slot: int) -> int:
        return slot - self.offset_s // self.slot_seconds
