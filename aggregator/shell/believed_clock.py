"""The clock that the aggregator goes by: held through jumps; no bucket is closed twice by it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from aggregator.steady import SteadyTime
from edge_ldp.health import DEGRADED, OK

if TYPE_CHECKING:
    from edge_ldp.shell.clock import Clock

JITTER_S = 1.0  # real: between two looks at the machine's clocks a process may be set aside
_log = logging.getLogger(__name__)


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
        self._said = OK

    def begin(self, committed_s: int | None) -> None:
        """Take over when the store was last committed to: up to there buckets were closed."""
        self._committed_s = committed_s or 0
        self.now()

    def now(self) -> float:
        """Return seconds since 1970, UTC, as believed; a change of doubt is told in one line."""
        now = self._steady.at(self._clock.now(), self._clock.monotonic())
        self._newest_s = max(self._newest_s, now)
        doubt = self._doubt(now)
        if doubt != self._said:
            self._said = doubt
            if doubt == OK:
                _log.warning("the clock is right again")
            else:
                _log.warning("%s: check the machine's time", self._told(now))
        return now

    @property
    def closed_s(self) -> float:
        """Return the latest time that buckets may have been closed by."""
        return max(self._newest_s, self._committed_s)

    @property
    def health(self) -> str:
        """Return `ok`, or why the time is in doubt."""
        return self._said

    def _doubt(self, now: float) -> str:
        if self._steady.jump_s:
            return f"{DEGRADED}clock jumped"
        if now + self._tolerance_s < self._committed_s:
            return f"{DEGRADED}clock behind the store"
        return OK

    def _told(self, now: float) -> str:
        if self._steady.jump_s:
            return f"the clock jumped by {self._steady.jump_s:+.0f} s; followed if it lasts an hour"
        behind_s = self._committed_s - now
        return f"the clock is {behind_s:.0f} s behind the last commit; nothing closed is opened"
