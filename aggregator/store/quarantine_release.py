"""A device leaves quarantine: what was kept apart of it is counted, as if it never had been held.

Sums of hours add up, so what falls into hours that have theirs is added to them; what falls into
buckets that were deleted meanwhile goes as they went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aggregator.counting.retention import GONE, SUMMED
from aggregator.store.contract import stored_plan
from aggregator.store.forms import unpack_pairs
from edge_ldp.sums.moments import moments, pack_moments, unpack_moments

if TYPE_CHECKING:
    from aggregator.store.contract import Session

_DROP = """DELETE FROM {} WHERE device = ? AND bucket <
    (SELECT until FROM rolled WHERE rolled.stream = {}.stream AND what = ?)"""
_SUMMED = """SELECT held_counts.stream, bucket, epoch, grp, pairs FROM held_counts
    JOIN rolled ON rolled.stream = held_counts.stream AND what = ? AND bucket < until
    WHERE device = ?"""
_GET = "SELECT sums FROM sums WHERE stream = ? AND bucket = ? AND epoch = ? AND grp = ?"
PUT_SUMS = """INSERT INTO sums (stream, bucket, epoch, grp, sums) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (stream, bucket, epoch, grp) DO UPDATE SET sums = excluded.sums"""


def count_held(session: Session, device: str) -> None:
    """Count what is kept apart of a device, in a transaction; raises StoreError, CountsError."""
    for table in ("held_counts", "held_presence"):
        session.rows(_DROP.format(table, table), (device, GONE))
    late = session.rows(_SUMMED, (SUMMED, device))
    plans = {(row.stream, row.epoch): row for row in session.plans()} if late else {}
    for *key, blob in late:
        stream, _, epoch, _ = key
        plan = stored_plan(plans[stream, epoch])
        sums = moments(plan, *unpack_pairs(bytes(blob)))
        for (known,) in session.rows(_GET, key):
            sums = sums + unpack_moments(plan, [bytes(known)])[0]
        if sums.any():  # not of surveys alone
            session.rows(PUT_SUMS, (*key, pack_moments(sums)))
    session.fold(device)
