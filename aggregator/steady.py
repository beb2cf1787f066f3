"""The time that is gone by: the wall clock's, but for a jump, which is believed after an hour.

A clock that jumps would close time buckets early, let θ be looked at out of turn, or open again
what was closed. So the wall clock is compared with one that never steps: what lies between them may
drift, and may not leap. A leap is held back and told; if it lasts it was a correction. What that
hour costs: reports of a clock that is right may be `early`, which settles nothing; they come again.
Source: FAULTS AGG-16.
"""

from __future__ import annotations

BELIEVE_S = 3600


class SteadyTime:
    """Turns readings of both clocks (seconds, at one rate) into the time to go by."""

    def __init__(self, tolerance_s: float, believe_s: float = BELIEVE_S) -> None:
        self._tolerance_s = tolerance_s
        self._believe_s = believe_s
        self._offset: float | None = None  # wall clock less monotonic one, as believed
        self._since: float | None = None  # when the jump was first seen, monotonic
        self.jump_s = 0.0

    def at(self, wall_s: float, monotonic_s: float) -> float:
        """Return the time to go by; `jump_s` then says how far the wall clock stands off it."""
        offset = wall_s - monotonic_s
        if self._offset is None or abs(offset - self._offset) <= self._tolerance_s:
            return self._follow(offset, wall_s)
        if self._since is None:
            self._since = monotonic_s
        if monotonic_s - self._since >= self._believe_s:
            return self._follow(offset, wall_s)
        self.jump_s = offset - self._offset
        return monotonic_s + self._offset

    def _follow(self, offset: float, wall_s: float) -> float:
        self._offset, self._since, self.jump_s = offset, None, 0.0
        return wall_s
