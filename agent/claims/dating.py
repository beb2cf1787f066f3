"""When a telegram was true, and when a slot is over: by this device's clock or by the meter's."""

from collections.abc import Iterable
from typing import NamedTuple

from agent.claims.slots import SlotValues


class Dating(NamedTuple):
    """Telegrams are dated by arrival or, `by_meter`, by their own time.

    The meter's time counts only while it is within `tolerance_s` of this device's.
    """

    by_meter: bool
    tolerance_s: int

    def date(self, told_s: int | None, now_s: int) -> int | None:
        """Return when a telegram was true; None when its own time is missing or not believed."""
        if not self.by_meter:
            return now_s
        if told_s is None or abs(told_s - now_s) > self.tolerance_s:
            return None
        return told_s

    def passed(self, now_s: int) -> int:
        """Return the time before which no telegram is dated any more."""
        return now_s - (self.tolerance_s if self.by_meter else 0)


def parted(closed: Iterable[SlotValues], slot: int) -> tuple[list[SlotValues], list[SlotValues]]:
    """Return the slots that are over by this device's clock, and those that a meter ahead closed.

    `slot`: the one that this device's clock is in.
    """
    found = list(closed)
    return [one for one in found if one.slot < slot], [one for one in found if one.slot >= slot]
