"""A device leaves quarantine: what was kept apart of it is counted, as if it never had been held.

Sums of hours add up, so what falls into hours that have theirs is added to them; what falls into
buckets that were deleted meanwhile goes as they went.
"""

import numpy as np
from numpy.typing import NDArray

from aggregator.counting.reporters import NOBODY, of_device, united
from aggregator.counting.retention import GONE, SUMMED
from aggregator.store.contract import CountedCell, Session, stored_plan
from aggregator.store.forms import unpack_pairs
from aggregator.store.moments import moments, pack_moments, unpack_moments
from aggregator.store.period_sums import count_held_sums
from edge_ldp.protocol.plan import Plan

_HELD_TABLES = ("held_counts", "held_presence")
_DROP = """DELETE FROM {} WHERE device = ? AND bucket <
    (SELECT until FROM rolled WHERE rolled.stream = {}.stream AND what = ?)"""
_HELD = "SELECT stream, epoch, grp, bucket, pairs FROM held_counts WHERE device = ?"
_CLASS = "SELECT cls FROM devices WHERE device = ?"
_GET = """SELECT reporters, sums FROM sums
    WHERE stream = ? AND bucket = ? AND epoch = ? AND grp = ? AND cls = ?"""
PUT_SUMS = """INSERT INTO sums (stream, bucket, epoch, grp, cls, reporters, sums)
    VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (stream, bucket, epoch, grp, cls)
    DO UPDATE SET reporters = excluded.reporters, sums = excluded.sums"""


def count_held(session: Session, device: str) -> None:
    """Count what is kept apart of a device, in a transaction; raises StoreError, CountsError.

    It is of the class that the device is of now.
    """
    for table in _HELD_TABLES:
        session.rows(_DROP.format(table, table), (device, GONE))
    cls = next((cls for (cls,) in session.rows(_CLASS, (device,))), 0)
    held = session.rows(_HELD, (device,))
    plans = {(row.stream, row.epoch): row for row in session.plans()} if held else {}
    counted: list[CountedCell] = []
    for stream, epoch, group, bucket, blob in held:
        pairs, who = unpack_pairs(bytes(blob)), NOBODY
        if (stream, epoch) in plans:
            plan = stored_plan(plans[stream, epoch])
            who = of_device(device, pairs[0], plan.stream_mechanism.code_count)
            if bucket < session.rolled_up(stream).until.get(SUMMED, 0):
                hour = (stream, bucket, epoch, group, cls)
                _add_sums(session, plan, hour, who, moments(plan, *pairs))
        counted.append((stream, epoch, group, cls, bucket, who, bytes(blob)))
    count_held_sums(session.rows, device)
    session.fold(device, cls, counted)
    for table in _HELD_TABLES:
        session.rows(f"DELETE FROM {table} WHERE device = ?", (device,))  # noqa: S608 (our own tables)


def _add_sums(
    session: Session, plan: Plan, key: tuple[int, ...], who: bytes, sums: NDArray[np.int64]
) -> None:
    for known, blob in session.rows(_GET, key):
        who = united((bytes(known), who))
        sums = sums + unpack_moments(plan, [bytes(blob)])[0]
    if sums.any():  # not of surveys alone
        session.rows(PUT_SUMS, (*key, who, pack_moments(sums)))
