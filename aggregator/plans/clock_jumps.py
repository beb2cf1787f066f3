"""The time that is gone by: the wall clock's, but for a jump, which is believed after an hour.

A clock that jumps would close time buckets early, let θ be looked at out of turn, or open again
what was closed. So the wall clock is compared with one that never steps: what lies between them may
drift, and may not leap. A leap is held back and told; if it lasts it was a correction. What that
hour costs: reports of a clock that is right may be `early` or `clock`, which settle nothing; they
come again. So is it where the clock stands behind what was committed: if it goes on so for an hour,
it was ahead then. Source: docs/faults.md, AGG-16, PLN-18.
"""

import logging

from edge_ldp.service.clock import Clock
from edge_ldp.service.health import DEGRADED, OK

BELIEVE_S = 3600
JITTER_S = 1.0  # real: between two looks at the machine's clocks a process may be set aside
_log = logging.getLogger(__name__)


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


def steady(clock: Clock, tolerance_s: float) -> SteadyTime:
    """Return what tells a jump of this clock from its jitter."""
    return SteadyTime(max(tolerance_s, JITTER_S * clock.rate))


class BelievedClock:
    """Says what time it is, what was closed by, and when it is in doubt."""

    def __init__(self, clock: Clock, tolerance_s: float) -> None:
        self._clock = clock
        self._steady = steady(clock, tolerance_s)
        self._tolerance_s = tolerance_s
        self._committed_s = 0
        self._newest_s = 0.0
        self._behind_since: float | None = None  # monotonic
        self._health = OK

    def begin(self, committed_s: int | None) -> None:
        """Take over when the store was last committed to: up to there buckets were closed."""
        self._committed_s = committed_s or 0
        self.now()

    def now(self) -> float:
        """Return seconds since 1970, UTC, as believed; a change of doubt is told in one line."""
        monotonic_s = self._clock.monotonic()
        now = self._steady.at(self._clock.now(), monotonic_s)
        self._newest_s = max(self._newest_s, now)
        self._correct(now, monotonic_s)
        doubt = self._doubt(now)
        if doubt != self._health:
            self._health = doubt
            if doubt == OK:
                _log.warning("the clock is right again")
            else:
                _log.warning("%s: check the machine's time", self._in_words(now))
        return now

    def real(self, seconds: float) -> float:
        """Return how many real seconds so many of the clock's take."""
        return self._clock.real(seconds)

    @property
    def closed_s(self) -> float:
        """Return the latest time that buckets may have been closed by."""
        return max(self._newest_s, self._committed_s)

    @property
    def health(self) -> str:
        """Return `ok`, or why the time is in doubt."""
        return self._health

    def _correct(self, now: float, monotonic_s: float) -> None:
        """Believe that it was ahead, once it stands behind what was closed by for an hour."""
        if now + self._tolerance_s >= self.closed_s:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = monotonic_s
        elif monotonic_s - self._behind_since >= BELIEVE_S:
            _log.warning(
                "the clock was %.0f s ahead once, and is believed now", self.closed_s - now
            )
            self._committed_s, self._newest_s = int(now), now

    def _doubt(self, now: float) -> str:
        if self._steady.jump_s:
            return f"{DEGRADED}clock jumped"
        if now + self._tolerance_s < self.closed_s:
            return f"{DEGRADED}clock behind the store"
        return OK

    def _in_words(self, now: float) -> str:
        if self._steady.jump_s:
            return f"the clock jumped by {self._steady.jump_s:+.0f} s; followed if it lasts an hour"
        behind_s = self.closed_s - now
        words = "it is believed if that lasts an hour"
        return f"the clock is {behind_s:.0f} s behind the last commit; {words}"
