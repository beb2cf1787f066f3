"""What time asks of a store, between flushes: hours' sums, roll-ups, deletions; a step at a time.

Each step is one transaction beside the service's, so that a crash at any moment leaves the step
done or not done. Source: `aggregator.counting.retention`, `aggregator.store.rollups`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aggregator.counting.retention import Keeping, next_step, wanted_from
from aggregator.plans.clock_jumps import steady
from aggregator.store.opening import open_session
from aggregator.store.rollups import oldest_bucket, take_step

if TYPE_CHECKING:
    from aggregator.config import AggregatorConfig
    from aggregator.store.contract import Session, Store
    from edge_ldp.service.clock import Clock


class Retention:
    """A chore of the one worker that leads: tends the store of a configuration.

    A clock that jumps is not followed for an hour, as by the guard: it would close and delete.
    """

    def __init__(self, config: AggregatorConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._steady = steady(clock, config.intake.tolerance_s)
        self._session: Session | None = None

    def __call__(self, _: Store) -> bool:
        """Do one step and say whether there may be more; raises StoreError."""
        more = False
        now_s = self._steady.at(self._clock.now(), self._clock.monotonic())
        try:
            session = self._session = self._session or open_session(self._config, "configuration")
            more = tend(session, self._config, now_s)
        finally:
            if not more and self._session is not None:  # nothing to do for a while, or an error
                self._session.close()
                self._session = None
        return more


def keeping_of(config: AggregatorConfig) -> Keeping:
    """Return how long the levels are kept."""
    table = config.retention
    window_s = config.intake.resend_window_s
    return Keeping(window_s, table.bucket_days, table.hour_days, table.day_days)


def tend(session: Session, config: AggregatorConfig, now_s: float) -> bool:
    """Do one step, if there is one to do, and say whether; raises StoreError."""
    for stream in config.streams:
        keeping, rolled_up = keeping_of(config), session.rolled_up(stream.id)
        oldest = {
            what: bucket
            for what, first in wanted_from(stream, keeping, rolled_up).items()
            if (bucket := oldest_bucket(session, stream.id, first)) is not None
        }
        step = next_step(stream, keeping, rolled_up, oldest, now_s)
        if step is not None:
            take_step(session, stream, step)
            return True
    return False
