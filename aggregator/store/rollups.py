"""Roll-ups in a store: hours' sums kept, buckets added up to hours and days, old ones deleted.

When each is due is `aggregator.counting.retention`. Each step is one transaction beside the
service's, so that a crash at any moment leaves the step done or not done.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from aggregator.config import AggregatorConfig, StreamTable
from aggregator.counting.reporters import united
from aggregator.counting.retention import GONE, SUMMED, Keeping, Step, next_step, spans, wanted_from
from aggregator.counting.tally import add_pairs
from aggregator.store.administration.quarantine_release import PUT_SUMS
from aggregator.store.contract import Session, stored_plan
from aggregator.store.forms import pack_pairs, unpack_pairs
from aggregator.store.moments import moments, pack_moments

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]

_OLDEST = "SELECT min(bucket) FROM {} WHERE stream = ? AND bucket >= ?"
_GET = """SELECT epoch, grp, cls, bucket, reporters, pairs FROM {}
    WHERE stream = ? AND bucket >= ? AND bucket < ?"""
_TAKE = """DELETE FROM {} WHERE stream = ? AND bucket >= ? AND bucket < ?
    RETURNING epoch, grp, cls, bucket, reporters, pairs"""
_PUT = """INSERT INTO counts (stream, epoch, grp, cls, bucket, reporters, pairs)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_DROP = "DELETE FROM {} WHERE stream = ? AND bucket < ?"
_DROP_SUMS = "DELETE FROM {} WHERE name = ? AND end_s <= ?"  # homes' sums of a period
_UNTIL = """INSERT INTO rolled (stream, what, until) VALUES (?, ?, ?)
    ON CONFLICT (stream, what) DO UPDATE SET until = excluded.until"""


def _keeping_of(config: AggregatorConfig) -> Keeping:
    """Return how long the levels are kept."""
    table = config.retention
    window_s = config.intake.resend_window_s
    return Keeping(window_s, table.bucket_days, table.hour_days, table.day_days)


def tend(session: Session, config: AggregatorConfig, now_s: float) -> bool:
    """Do one step, if there is one to do, and say whether; raises StoreError."""
    for stream in config.streams:
        keeping, rolled_up = _keeping_of(config), session.rolled_up(stream.id)
        oldest = {
            what: bucket
            for what, first in wanted_from(stream, keeping, rolled_up).items()
            if (bucket := _oldest_bucket(session, stream.id, first)) is not None
        }
        step = next_step(stream, keeping, rolled_up, oldest, now_s)
        if step is not None:
            _take_step(session, stream, step)
            return True
    return False


def _take_step(session: Session, stream: StreamTable, step: Step) -> None:
    """Do one step in one transaction; raises StoreError."""
    with session.transaction():
        if session.rolled_up(step.stream).until.get(step.what, 0) >= step.end:
            return  # somebody else did it
        if step.what == SUMMED:
            _keep_sums(session, spans(stream)[0], step)
        elif step.what == GONE:
            for table in (*session.COUNTED, *session.PRESENT, "sums"):
                session.rows(_DROP.format(table), (step.stream, step.end))
            for table in ("period_sums", "period_totals"):
                until_s = step.end * stream.bucket_s
                session.rows(_DROP_SUMS.format(table), (stream.name, until_s))
        else:
            _add_up(session, step)
        session.rows(_UNTIL, (step.stream, step.what, step.end))


def _oldest_bucket(session: Session, stream: int, first: int) -> int | None:
    """Return the first bucket of a stream from `first` on that has counts, or None."""
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
    for (*whose, _), (who, pairs) in _summed(parts, step.end - step.first).items():
        session.rows(_PUT, (step.stream, *whose, step.first, who, pack_pairs(*pairs)))


def _keep_sums(session: Session, hour: int, step: Step) -> None:
    where = (step.stream, step.first, step.end)
    plans = {row.epoch: stored_plan(row) for row in session.plans() if row.stream == step.stream}
    parts = (row for table in session.COUNTED for row in session.rows(_GET.format(table), where))
    for (epoch, group, cls, first), (who, pairs) in _summed(parts, hour).items():
        sums = moments(plans[epoch], *pairs)
        if sums.any():  # not of surveys alone
            values = (step.stream, first, epoch, group, cls, who, pack_moments(sums))
            session.rows(PUT_SUMS, values)


def _summed(
    rows: Iterable[tuple[int, int, int, int, bytes, bytes]], span: int
) -> dict[tuple[int, int, int, int], tuple[bytes, Pairs]]:
    """Return who reported and histograms, by epoch, group, class and first bucket of their span."""
    found: dict[tuple[int, int, int, int], Pairs] = {}
    whose: dict[tuple[int, int, int, int], list[bytes]] = {}
    for epoch, group, cls, bucket, who, blob in rows:
        key, pairs = (epoch, group, cls, bucket - bucket % span), unpack_pairs(bytes(blob))
        found[key] = add_pairs(found[key], pairs) if key in found else pairs
        whose.setdefault(key, []).append(bytes(who))
    return {key: (united(whose[key]), pairs) for key, pairs in found.items()}
