"""A stream's sums hour by hour, or day by day: what a year of a fleet looked like, at once.

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
from aggregator.rollup import DAY_S, HOUR_S, spans
from aggregator.views import time_text

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
LENGTHS = {"hour": HOUR_S, "day": DAY_S}


@dataclass(frozen=True, slots=True, eq=False)
class LoadCurve:
    """Columns of equal length, an entry a span with reports: `bucket`, its first, rises.

    `n` stream reports; [`low`, `high`] holds the mean of truncated values (unit) with 95 %;
    `device_slots` were there, so the span's total is mean × device_slots. NaN where n is 0.
    """

    bucket: Ints
    n: Ints
    mean: Floats
    low: Floats
    high: Floats
    device_slots: Ints


def span_of(stream: StreamTable, by: str) -> int:
    """Return the buckets of a span, of LENGTHS: 1 where one is as long, or does not divide it."""
    return dict(zip(LENGTHS, spans(stream), strict=True))[by]


def load_curve(
    plans: Mapping[int, Plan],
    kept: Sequence[tuple[int, int, bytes]],
    rows: CountRows,
    presence: Ints,
    span: int,
) -> LoadCurve:
    """Return the curve of the spans of `span` buckets that `kept` and `rows` are about.

    `kept`: (first bucket, epoch, stored sums) of hours that no span cuts; `rows`: counts of other
    hours' buckets, epochs and in them buckets rising; `presence`: (bucket, device-slots), rising.
    Raises CountsError, RowError.
    """
    parts: dict[int, list[tuple[Ints, Ints]]] = {}
    if kept:
        buckets, epochs, blobs = zip(*kept, strict=True)
        at, of = np.array(buckets, np.int64), np.array(epochs, np.int64)
        at -= at % span
        for epoch in np.unique(of).tolist():
            here = np.flatnonzero(of == epoch).tolist()
            sums = unpack_moments(_plan(plans, epoch), [blobs[i] for i in here])
            parts.setdefault(epoch, []).append((at[here], sums))
    for begin, end in pairwise([*np.flatnonzero(np.diff(rows.epoch, prepend=-1)), len(rows.epoch)]):
        mine, epoch = slice(begin, end), int(rows.epoch[begin])
        starts = rows.bucket[mine] - rows.bucket[mine] % span
        found = sums_of_rows(_plan(plans, epoch), starts, rows.code[mine], rows.count[mine])
        parts.setdefault(epoch, []).append(found)
    every = [at for found in parts.values() for at, _ in found]
    begins = np.unique(np.concatenate([np.zeros(0, np.int64), *every]))
    placed = {
        epoch: (_plan(plans, epoch), *_added_up(begins, found)) for epoch, found in parts.items()
    }
    return _with_presence(begins, averages(len(begins), placed), presence, span)


def curve_view(
    stream: StreamTable, curve: LoadCurve, least: int = 1, by: str = "hour"
) -> dict[str, Any]:
    """Return the JSON of `load-curve`.

    stream, unit; hours[], or days[]: from_s (seconds UTC), n: stream reports, mean, low, high
    (95 %, unit) of values truncated at θ, device_slots: slots in which devices were there, total =
    mean × device_slots; withheld: mean to total are null as fewer devices than query.min_devices
    may have been there. Hours without reports are left out.
    """
    slots = span_of(stream, by) * stream.bucket_slots
    columns = [column.tolist() for column in (curve.n, curve.mean, curve.low, curve.high)]
    rows = []
    for bucket, present, n, mean, low, high in zip(
        curve.bucket.tolist(), curve.device_slots.tolist(), *columns, strict=True
    ):
        row = {"from_s": bucket * stream.bucket_s, "n": n, "device_slots": present}
        shown = present >= least * slots or least <= 1
        figures = {"mean": mean, "low": low, "high": high, "total": mean * present}
        none = dict.fromkeys(figures)
        rows.append({**row, **(figures if n and shown else none), "withheld": not shown})
    return {"stream": stream.name, "unit": stream.unit, f"{by}s": rows}


def curve_text(view: Mapping[str, Any]) -> str:
    """Return a curve as people read it."""
    by = "hour" if "hours" in view else "day"
    lines = [f"{view['stream']} by {by} (UTC), {view['unit']}; values above θ count as θ"]
    for row in view[f"{by}s"]:
        at = time_text(row["from_s"])
        if row["mean"] is None:
            why = "withheld: too few devices" if row["withheld"] else "no stream reports"
            lines.append(f"{at}  {why}")
            continue
        lines.append(
            f"{at}  {row['mean']:12,.1f}  {row['low']:,.1f} to {row['high']:,.1f}"
            f"  n {row['n']:,}  total {row['total']:,.0f}"
        )
    return "\n".join([*lines, ""])


def _with_presence(begins: Ints, found: Averages, presence: Ints, span: int) -> LoadCurve:
    starts = presence[:, 0] - presence[:, 0] % span
    slots = np.zeros(len(begins), np.int64)
    place = np.searchsorted(begins, starts)
    known = place < len(begins)
    known[known] = begins[place[known]] == starts[known]
    np.add.at(slots, place[known], presence[known, 1])
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * found.se
    return LoadCurve(begins, found.n, found.mean, found.mean - half, found.mean + half, slots)


def _added_up(begins: Ints, found: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Return each span's place once, and its sums over all groups: integers are added first."""
    starts = np.concatenate([at for at, _ in found])
    rows = np.concatenate([sums for _, sums in found])
    places, where = np.unique(np.searchsorted(begins, starts), return_inverse=True)
    sums = np.zeros((len(places), rows.shape[1]), np.int64)
    np.add.at(sums, where.reshape(-1), rows)
    return places, sums


def _plan(plans: Mapping[int, Plan], epoch: int) -> Plan:
    if epoch not in plans:
        raise CountsError(f"of epoch {epoch}, which was never issued")
    return plans[epoch]
