"""A stream's sums by hour, day or week: what a year of a fleet looked like, at once.

From the sums of hours that are kept (`aggregator.store.moments`) and, for hours still open, from
the counts: the same numbers to the bit wherever they come from. Means are of values truncated at θ
and not corrected: the correction needs the tail of the whole stream, which takes longer than all
this.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from aggregator.answers.crowds import Reported, withheld
from aggregator.answers.local_time import LENGTHS, Spans
from aggregator.counting.classes import Weights
from aggregator.counting.reporters import NOBODY, STREAMS, united
from aggregator.counting.tally import MOST, CountRows, whose_of
from aggregator.store import moments
from aggregator.store.rows import SumsRow
from edge_ldp.errors import CountsError
from edge_ldp.protocol.plan import Plan
from edge_ldp.sums.functionals import distinct

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class LoadCurve:
    """Columns of equal length, an entry a span with reports: `bucket`, its first, rises.

    `n` stream reports; [`low`, `high`] holds the mean of truncated values (unit) with 95 %;
    `device_slots` were there, so the span's total is mean × device_slots. NaN where n is 0.
    `cells`: who reported in each.
    """

    bucket: Ints
    n: Ints
    mean: Floats
    low: Floats
    high: Floats
    device_slots: Ints
    cells: Sequence[Reported] = ()

    def withheld(self, least: int, of: Spans) -> list[bool]:
        """Say which spans, `of` time, tell of fewer than `least` devices, or would with others.

        Hours are subtracted from their day, days from their week, weeks from the whole.
        """
        longer = dict(pairwise(LENGTHS)).get(of.by)
        starts = self.bucket * 0
        if longer is not None:
            starts = Spans(of.stream, longer, of.zone).first_of(self.bucket)
        cells = self.cells or [Reported((int(n), 0), 1) for n in self.n.tolist()]
        hidden = np.zeros(len(starts), np.bool_)
        for start in distinct([starts]).tolist():
            places = np.flatnonzero(starts == start)
            found = withheld([cells[at] for at in places.tolist()], least, (STREAMS,))
            hidden[places[sorted(found)]] = True
        return [bool(one) for one in hidden]


def load_curve(  # noqa: PLR0913, PLR0917 (what there is)
    plans: Mapping[int, Plan],
    kept: Sequence[SumsRow],
    rows: CountRows,
    presence: Ints,
    of: Spans,
    who: Sequence[tuple[int, bytes]] = (),
    beside: Mapping[int, bytes] | None = None,
    slots: Mapping[int, int] | None = None,
) -> LoadCurve:
    """Return the curve of the spans `of` time that `kept` and `rows` are about.

    `kept`: sums of hours that no span cuts; `rows`: counts of other hours' buckets, epochs and in
    them buckets rising; `presence`: (bucket, device-slots), rising; `who` reported in a bucket, a
    pair for each set that is known; `beside`: who else reported, by bucket; `slots`: device-slots
    of this time by group and class (`Weights`). Raises CountsError, RowError.
    """
    parts: dict[int, list[tuple[Ints, Ints, Ints]]] = {}
    if kept:
        buckets, epochs, groups, classes, _, blobs = zip(*kept, strict=True)
        at, under = of.first_of(np.array(buckets, np.int64)), np.array(epochs, np.int64)
        whose = np.array(list(map(whose_of, groups, classes)), np.int64)
        for epoch in sorted(set(epochs)):
            here = np.flatnonzero(under == epoch).tolist()
            sums = moments.unpack_moments(_plan(plans, epoch), [bytes(blobs[i]) for i in here])
            parts.setdefault(epoch, []).append((at[here], whose[here], sums))
    for begin, end in pairwise([*np.flatnonzero(np.diff(rows.epoch, prepend=-1)), len(rows.epoch)]):
        mine, epoch = slice(begin, end), int(rows.epoch[begin])
        several, keys = distinct([rows.whose[mine]]), of.first_of(rows.bucket[mine])
        codes, counts = rows.code[mine], rows.count[mine]
        if len(several) > 1:  # else they rise as they are
            keys = keys * len(several) + np.searchsorted(several, rows.whose[mine])
            order = np.argsort(keys, kind="stable")
            keys, codes, counts = keys[order], codes[order], counts[order]
        keys, sums = moments.sums_of_rows(_plan(plans, epoch), keys, codes, counts)
        starts, of_whom = np.divmod(keys, len(several))
        parts.setdefault(epoch, []).append((starts, several[of_whom], sums))
    every = [at for found in parts.values() for at, _, _ in found]
    begins = distinct([np.zeros(0, np.int64), *every])
    added = {epoch: _added_up(begins, found) for epoch, found in parts.items()}
    made = [(whose, _reports(_plan(plans, at), sums)) for at, (_, whose, sums) in added.items()]
    nothing = np.zeros(0, np.int64)
    named, n = (np.concatenate(one) for one in zip((nothing, nothing), *made, strict=True))
    weights = Weights(named, n, slots or {}).of_parts
    placed = {
        epoch: (_plan(plans, epoch), *_weighed(weights, *found)) for epoch, found in added.items()
    }
    mean, half = moments.averages(len(begins), placed), NormalDist().inv_cdf((1 + LEVEL) / 2)
    ends = (mean.mean - half * mean.se, mean.mean + half * mean.se)
    curve = LoadCurve(begins, mean.n, mean.mean, *ends, _slots(begins, presence, of))
    return replace(curve, cells=_cells(curve, of, who, [*(beside or {}).items()]))


def _cells(
    curve: LoadCurve,
    of: Spans,
    who: Sequence[tuple[int, bytes]],
    beside: Sequence[tuple[int, bytes]],
) -> list[Reported]:
    """Return who reported in each span, of those asked for and beside them."""
    mine, others = (_by_span(of, several) for several in (who, beside))
    slots = (of.sizes(curve.bucket) * of.stream.bucket_slots).tolist()
    columns = (column.tolist() for column in (curve.bucket, curve.n, curve.device_slots))
    return [
        Reported((n, 0), size, mine.get(at, NOBODY), others.get(at, NOBODY), there // size)
        for at, n, there, size in zip(*columns, slots, strict=True)
    ]


def _by_span(of: Spans, several: Sequence[tuple[int, bytes]]) -> dict[int, bytes]:
    """Return who reported by the first bucket of a span: mostly each is a span's only one."""
    starts = of.first_of(np.array([bucket for bucket, _ in several], np.int64)).tolist()
    alone = {start: bytes(one) for start, (_, one) in zip(starts, several, strict=True)}
    if len(alone) == len(starts):
        return alone
    found: dict[int, set[bytes]] = {}
    for start, (_, one) in zip(starts, several, strict=True):
        found.setdefault(start, set()).add(bytes(one))
    return {start: united(sets) for start, sets in found.items()}


def _slots(begins: Ints, presence: Ints, of: Spans) -> Ints:
    """Return the device-slots in each span."""
    starts = of.first_of(presence[:, 0])
    slots = np.zeros(len(begins), np.int64)
    place = np.searchsorted(begins, starts)
    known = place < len(begins)
    known[known] = begins[place[known]] == starts[known]
    np.add.at(slots, place[known], presence[known, 1])
    return slots


def _added_up(begins: Ints, found: Sequence[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    """Return the place of each span, whose its sums are, and these: integers are added first."""
    starts, whose, rows = (np.concatenate(column) for column in zip(*found, strict=True))
    several, of = np.unique(whose, return_inverse=True)
    keys = np.searchsorted(begins, starts) * len(several) + of.reshape(-1)
    places, where = np.unique(keys, return_inverse=True)
    most = np.bincount(keys // len(several)).max(initial=0)
    if float(rows.max(initial=0)) * float(most) > MOST:
        raise CountsError(moments.AT_THE_END)
    sums = np.zeros((len(places), rows.shape[1]), np.int64)
    np.add.at(sums, where.reshape(-1), rows)
    return places // len(several), several[places % len(several)], sums


def _weighed(
    weights: Weights, places: Ints, whose: Ints, sums: Ints
) -> tuple[Ints, moments.Powers]:
    """Return each span's place once, and its sums over all groups and classes, weighted."""
    powers = weights.powers(whose[:, None], sums)
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    found = [np.add.reduceat(power, starts) if len(starts) else power for power in powers]
    return places[starts], moments.Powers(found[0], found[-2:][0], found[-1])


def _reports(plan: Plan, sums: Ints) -> Floats:
    """Return about how many reports there were, surveys too, where so many were of sums."""
    surveys, of = plan.share
    found: Floats = moments.stream_reports(plan, sums) * (of / max(1, of - surveys))
    return found


def _plan(plans: Mapping[int, Plan], epoch: int) -> Plan:
    if epoch not in plans:
        raise CountsError(f"of epoch {epoch}, which was never issued")
    return plans[epoch]
