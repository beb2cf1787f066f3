"""Which slots a sum is over: periods of whole days, and cells, the same parts of each day.

Integers only; slots are those of the stream, counted from 1970. Source: docs/design.md, Values and
reports.
"""

from dataclasses import dataclass

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.sums import DAY_S, cell_of, check_layout, period_of

HOUR_S = 3600


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
        check_layout(self.slot_seconds, self.days, self.cells, self.offset_s, self.block)

    @classmethod
    def of_hours(
        cls, slot_seconds: int, days: int, cells: int, offset_s: int, block_hours: int
    ) -> "PeriodLayout":
        """Return the layout in which so many hours share one noise, 1: no cells do, as files say.

        Raises ParameterError.
        """
        block, rest = divmod(cells * block_hours, DAY_S // HOUR_S) if block_hours > 1 else (1, 0)
        if rest:
            raise ParameterError("block_hours", "hours of whole cells")
        return cls(slot_seconds, days, cells, offset_s, block)

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
        return period_of(slot, self.slot_seconds, self.days, self.offset_s)

    def cell(self, slot: int) -> int:
        """Return which cell of the day a slot is in."""
        return cell_of(slot, self.slot_seconds, self.cells, self.offset_s)

    def first_slot(self, period: int) -> int:
        """Return the first slot of a period."""
        return period * self.slots + self.offset_s // self.slot_seconds
