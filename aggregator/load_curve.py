"""A stream's sums hour by hour: what a year of a fleet looked like, at once.

From the sums of hours that are kept (`aggregator.moments`) and, for hours still open, from the
counts: the same numbers to the bit wherever they come from. Means are of values truncated at θ and
not corrected: the correction needs the tail of the whole stream, which takes longer than all this.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.errors import CountsError
from aggregator.moments import averages, sums_of_rows, unpack_moments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from aggregator.config import StreamTable
    from aggregator.moments import Averages
    from aggregator.records import CountRows
    from edge_ldp.plan import Plan

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class LoadCurve:
    """Columns of equal length, an entry an hour with reports: `bucket`, its first, rises.

    `n` stream reports; [`low`, `high`] holds the mean of truncated values (unit) with 95 %;
    `device_slots` were there, so the hour's total is mean × device_slots. NaN where n is 0.
    """

    bucket: Ints
    n: Ints
    mean: Floats
    low: Floats
    high: Floats
    device_slots: Ints


def load_curve(
    plans: Mapping[int, Plan],
    kept: Sequence[tuple[int, int, bytes]],
    rows: CountRows,
    presence: Ints,
    hour: int,
) -> LoadCurve:
    """Return the curve of the hours of `hour` buckets that `kept` and `rows` are about.

    `kept`: (first bucket, epoch, stored sums) of hours; `rows`: counts of other hours' buckets,
    epochs and in them buckets rising;
    `presence`: (bucket, device-slots), rising. Raises CountsError, RowError.
    """
    parts: dict[int, list[tuple[Ints, Ints]]] = {}
    if kept:
        buckets, epochs, blobs = zip(*kept, strict=True)
        at, of = np.array(buckets, np.int64), np.array(epochs, np.int64)
        for epoch in np.unique(of).tolist():
            here = np.flatnonzero(of == epoch).tolist()
            sums = unpack_moments(_plan(plans, epoch), [blobs[i] for i in here])
            parts.setdefault(epoch, []).append((at[here], sums))
    for begin, end in pairwise([*np.flatnonzero(np.diff(rows.epoch, prepend=-1)), len(rows.epoch)]):
        mine, epoch = slice(begin, end), int(rows.epoch[begin])
        starts = rows.bucket[mine] - rows.bucket[mine] % hour
        found = sums_of_rows(_plan(plans, epoch), starts, rows.code[mine], rows.count[mine])
        parts.setdefault(epoch, []).append(found)
    every = [at for found in parts.values() for at, _ in found]
    hours = np.unique(np.concatenate([np.zeros(0, np.int64), *every]))
    placed = {
        epoch: (_plan(plans, epoch), *_added_up(hours, found)) for epoch, found in parts.items()
    }
    return _with_presence(hours, averages(len(hours), placed), presence, hour)


def curve_view(stream: StreamTable, curve: LoadCurve, least: int = 1) -> dict[str, Any]:
    """Return the JSON of `load-curve`.

    stream, unit; hours[]: from_s (seconds UTC), n: stream reports, mean, low, high (95 %, unit) of
    values truncated at θ, device_slots: slots in which devices were there, total = mean ×
    device_slots; withheld: mean to total are null as fewer devices than query.min_devices may have
    been there. Hours without reports are left out.
    """
    slots = max(1, 3600 // stream.slot_seconds)
    columns = [column.tolist() for column in (curve.n, curve.mean, curve.low, curve.high)]
    hours = []
    for bucket, present, n, mean, low, high in zip(
        curve.bucket.tolist(), curve.device_slots.tolist(), *columns, strict=True
    ):
        row = {"from_s": bucket * stream.bucket_s, "n": n, "device_slots": present}
        shown = present >= least * slots or least <= 1
        figures = {"mean": mean, "low": low, "high": high, "total": mean * present}
        none = dict.fromkeys(figures)
        hours.append({**row, **(figures if n and shown else none), "withheld": not shown})
    return {"stream": stream.name, "unit": stream.unit, "hours": hours}


def _with_presence(hours: Ints, found: Averages, presence: Ints, hour: int) -> LoadCurve:
    starts = presence[:, 0] - presence[:, 0] % hour
    slots = np.zeros(len(hours), np.int64)
    place = np.searchsorted(hours, starts)
    known = place < len(hours)
    known[known] = hours[place[known]] == starts[known]
    np.add.at(slots, place[known], presence[known, 1])
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * found.se
    return LoadCurve(hours, found.n, found.mean, found.mean - half, found.mean + half, slots)


def _added_up(hours: Ints, found: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Return each hour's place once, and its sums over all groups: integers are added first."""
    starts = np.concatenate([at for at, _ in found])
    rows = np.concatenate([sums for _, sums in found])
    places, where = np.unique(np.searchsorted(hours, starts), return_inverse=True)
    sums = np.zeros((len(places), rows.shape[1]), np.int64)
    np.add.at(sums, where.reshape(-1), rows)
    return places, sums


def _plan(plans: Mapping[int, Plan], epoch: int) -> Plan:
    if epoch not in plans:
        raise CountsError(f"of epoch {epoch}, which was never issued")
    return plans[epoch]
