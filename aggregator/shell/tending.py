"""The store is tended between flushes: hours' sums, roll-ups, retention; one short step at a time.

Each step is one transaction beside the service's, so that a crash at any moment leaves the step
done or not done. Source: `aggregator.rollup`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aggregator.moments import moments, pack_moments
from aggregator.rollup import GONE, SUMMED, Keeping, next_step, spans, wanted_from
from aggregator.row_forms import pack_pairs, unpack_pairs
from aggregator.shell.believed_clock import steady
from aggregator.shell.releasing import PUT_SUMS
from aggregator.shell.stored_plan import stored_plan
from aggregator.shell.stores import open_session
from aggregator.tally import add_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.rollup import Step
    from aggregator.shell.registry import Session
    from aggregator.shell.store import Store
    from edge_ldp.shell.clock import Clock

    Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]

_OLDEST = "SELECT min(bucket) FROM {} WHERE stream = ? AND bucket >= ?"
_GET = "SELECT epoch, grp, bucket, pairs FROM {} WHERE stream = ? AND bucket >= ? AND bucket < ?"
_TAKE = """DELETE FROM {} WHERE stream = ? AND bucket >= ? AND bucket < ?
    RETURNING epoch, grp, bucket, pairs"""
_PUT = "INSERT INTO counts (stream, epoch, grp, bucket, pairs) VALUES (?, ?, ?, ?, ?)"
_DROP = "DELETE FROM {} WHERE stream = ? AND bucket < ?"
_UNTIL = """INSERT INTO rolled (stream, what, until) VALUES (?, ?, ?)
    ON CONFLICT (stream, what) DO UPDATE SET until = excluded.until"""


class Tending:
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
        keeping, kept = keeping_of(config), session.kept(stream.id)
        oldest = {
            what: bucket
            for what, first in wanted_from(stream, keeping, kept).items()
            if (bucket := _oldest(session, stream.id, first)) is not None
        }
        step = next_step(stream, keeping, kept, oldest, now_s)
        if step is not None:
            take_step(session, stream, step)
            return True
    return False


def take_step(session: Session, stream: StreamTable, step: Step) -> None:
    """Do one step in one transaction; raises StoreError."""
    with session.transaction():
        if session.kept(step.stream).until.get(step.what, 0) >= step.end:
            return  # somebody else did it
        if step.what == SUMMED:
            _keep_sums(session, spans(stream)[0], step)
        elif step.what == GONE:
            for table in (*session.COUNTED, *session.PRESENT, "sums"):
                session.rows(_DROP.format(table), (step.stream, step.end))
        else:
            _add_up(session, step)
        session.rows(_UNTIL, (step.stream, step.what, step.end))


def _oldest(session: Session, stream: int, first: int) -> int | None:
    found = [
        bucket
        for table in session.COUNTED
        for (bucket,) in session.rows(_OLDEST.format(table), (stream, first))
        if bucket is not None
    ]
    return min(found, default=None)


def _add_up(session: Session, step: Step) -> None:
    where = (step.stream, step.first, step.end)
    parts = (row for table in session.COUNTED for row in session.rows(_TAKE.format(table), where))
    for (epoch, group, _), pairs in _summed(parts, step.end - step.first).items():
        session.rows(_PUT, (step.stream, epoch, group, step.first, pack_pairs(*pairs)))


def _keep_sums(session: Session, hour: int, step: Step) -> None:
    where = (step.stream, step.first, step.end)
    plans = {row.epoch: stored_plan(row) for row in session.plans() if row.stream == step.stream}
    parts = (row for table in session.COUNTED for row in session.rows(_GET.format(table), where))
    for (epoch, group, first), pairs in _summed(parts, hour).items():
        sums = moments(plans[epoch], *pairs)
        if sums.any():  # not of surveys alone
            values = (step.stream, first, epoch, group, pack_moments(sums))
            session.rows(PUT_SUMS, values)


def _summed(
    rows: Iterable[tuple[int, int, int, bytes]], span: int
) -> dict[tuple[int, int, int], Pairs]:
    """Return histograms added up by epoch, group and first bucket of their span."""
    found: dict[tuple[int, int, int], Pairs] = {}
    for epoch, group, bucket, blob in rows:
        key, pairs = (epoch, group, bucket - bucket % span), unpack_pairs(bytes(blob))
        found[key] = add_pairs(found[key], pairs) if key in found else pairs
    return found
