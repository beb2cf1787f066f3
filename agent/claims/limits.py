"""How fast a device may go by monotonic time, and how old a report may get.

Both follow monotonic time from the moment when the clock became sane: a wall clock that jumps ahead
neither lets slots through nor expires anything. Source: docs/faults.md, AGT-10, AGT-16.
"""

from dataclasses import dataclass, field

DAY_SECONDS = 86_400
BURST = 2  # slots above one per slot length of monotonic time, for a late start and jitter


@dataclass(slots=True)
class SlotCount:
    """The slots decided about since `started_s` (monotonic), when the clock was in `first_slot`.

    One per slot length of monotonic time, whether or not they report: a clock that runs away cannot
    make the device spend faster than time.
    """

    slot_seconds: int
    first_slot: int
    started_s: float
    _decided: int = field(default=0, init=False)

    def take(self, now_s: float) -> bool:
        """Count one more slot; False, and nothing counted, when time has not allowed it yet."""
        if self._decided >= self._allowed(now_s):
            return False
        self._decided += 1
        return True

    def oldest(self, slot: int, now_s: float, max_age_days: int) -> int:
        """Return the oldest slot within the age limit; `slot` is the wall clock's."""
        newest = min(slot, self.first_slot + self._allowed(now_s))
        return newest - max_age_days * DAY_SECONDS // self.slot_seconds

    def _allowed(self, now_s: float) -> int:
        return BURST + int((now_s - self.started_s) // self.slot_seconds)


@dataclass(slots=True)
class BatchPace:
    """When the next batch may be made: `interval_s` of monotonic time after the last one."""

    interval_s: float
    packed_s: float

    def is_time(self, now_s: float) -> bool:
        """Say whether a batch may be made now."""
        return now_s - self.packed_s >= self.interval_s
