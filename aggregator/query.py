"""What an operator asks: means, totals and the density of a stream, each with its uncertainty.

Pure over counts. Means come from stream reports alone, corrected for truncation by the tail that
the surveys of the whole stream show, whatever their ranges; density and quantiles from the surveys
of the range asked for. A total is mean × device-slots: the devices that were there in each slot,
reporting or not (DESIGN §6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from aggregator.curves import Asked, Curve, curve_of
from aggregator.errors import ArgumentError, NoReportsError
from aggregator.strata import merge_epochs, split_epochs
from aggregator.sums import CodeCounts, estimate_mean, estimate_tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aggregator.config import StreamTable
    from aggregator.estimate import Density
    from aggregator.records import CountRows
    from aggregator.tail import Tail
    from edge_ldp.plan import Plan

    Ints = NDArray[np.int64]
    Parts = Mapping[int, tuple[Ints, Ints]]

HOUR_S = 3600
DAY_HOURS = 24
TAIL_SEED = 0  # of the draws behind intervals: no privacy noise; same counts, same answer
GROUPINGS = ("none", "hour-of-day")


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What the store knows of one stream.

    `rows`: counts in the range asked for; `totals`: of all time; `presence`: (bucket,
    device-slots) in the range, rising; `spans`: first and last bucket of each device with reports;
    `enrolled`: devices that may report; `least`: figures of fewer devices are withheld (AGG-13).
    """

    plans: Mapping[int, Plan]
    rows: CountRows
    totals: CountRows
    presence: Ints
    spans: Ints
    enrolled: int
    least: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """Answer for one set of time buckets; values in the stream's unit, totals in unit × slots.

    `group`: hour of the day, or None for the whole range. `n` stream reports; with n = 0 there is
    no mean (None). [`low`, `high`] holds the mean with 95 %. `bias`: what was added for truncation
    (0 if not `corrected`: then mean and total are those of values truncated at θ). `devices`: heard
    in these buckets; `missing`: enrolled, not heard; `device_slots`: what total is the mean times.
    `withheld`: fewer devices were heard than figures are given out of; they are all None, n is 0.
    """

    group: int | None
    devices: int
    missing: int
    device_slots: int
    n: int = 0
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    total: float | None = None
    total_low: float | None = None
    total_high: float | None = None
    bias: float = 0.0
    corrected: bool = False
    withheld: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Everything `query` tells of a stream; the buckets it is about are first..last."""

    whole: Group
    groups: Sequence[Group]
    curve: Curve | None
    first_bucket: int | None
    last_bucket: int | None

    @property
    def density(self) -> Density | None:
        """The density, or None without surveys."""
        return None if self.curve is None else self.curve.density


def answer(stream: StreamTable, facts: Facts, by: str, asked: Asked | None = None) -> Answer:
    """Return the answer for the range that `facts` was read for, grouped `by`.

    `asked` of the density: quantiles and ranges.

    Sums begin where stream reports begin: the first survey's slots are in the density only. Cost:
    about 0.5 s for the tail, a second for density and bands, 2 ms a group. Raises CountsError
    (damaged), ArgumentError (by).
    """
    hours = by == "hour-of-day"
    if by not in GROUPINGS or (hours and stream.bucket_s > HOUR_S):
        raise ArgumentError("by", "none, or hour-of-day where buckets are no longer than an hour")
    present = facts.presence[facts.presence[:, 0] >= _begin(facts)]
    buckets = present[:, 0]
    tail = _tail(facts)
    groups = []
    if hours:
        row_hours, present_hours = _hours(stream, facts.rows.bucket), _hours(stream, buckets)
        for hour in np.unique(present_hours).tolist():
            here = present[present_hours == hour]
            groups.append(_group(hour, facts, tail, row_hours == hour, here))
    whole = _group(None, facts, tail, np.ones(len(facts.rows.code), dtype=bool), present)
    crowd = _heard(facts.spans, facts.presence[:, 0])  # surveys begin before stream reports do
    return Answer(
        whole=whole,
        groups=groups,
        curve=_curve(facts, asked) if crowd >= facts.least else None,
        first_bucket=int(buckets[0]) if len(buckets) else None,
        last_bucket=int(buckets[-1]) if len(buckets) else None,
    )


def _group(
    group: int | None, facts: Facts, tail: Tail | None, chosen: NDArray[np.bool_], present: Ints
) -> Group:
    rows = facts.rows
    parts = split_epochs(facts.plans, rows.epoch[chosen], rows.code[chosen], rows.count[chosen])
    heard = _heard(facts.spans, present[:, 0])
    missing = max(0, facts.enrolled - heard)
    device_slots = int(present[:, 1].sum())
    if heard < facts.least and facts.least > 1:
        return Group(group, heard, missing, device_slots, withheld=True)
    try:
        mean = estimate_mean(_sums(facts, parts), tail)
    except NoReportsError:
        return Group(group, heard, missing, device_slots)
    total = mean.total(device_slots)
    return Group(
        group=group,
        devices=heard,
        missing=missing,
        device_slots=device_slots,
        n=mean.n,
        mean=mean.mean,
        low=mean.low,
        high=mean.high,
        total=total.estimate,
        total_low=total.low,
        total_high=total.high,
        bias=mean.bias,
        corrected=mean.corrected,
    )


def _begin(facts: Facts) -> int:
    """Return the first bucket with stream reports; where there is none, the range's first."""
    rows = facts.rows
    firsts = [
        int(rows.bucket[mine].min())
        for epoch, plan in facts.plans.items()
        if (mine := (rows.epoch == epoch) & (rows.code < plan.stream_mechanism.code_count)).any()
    ]
    return min(firsts, default=0)


def _tail(facts: Facts) -> Tail | None:
    totals = facts.totals
    parts = split_epochs(facts.plans, totals.epoch, totals.code, totals.count)
    surveys = [CodeCounts(facts.plans[e].survey_mechanism, part) for e, (_, part) in parts.items()]
    try:
        rng = np.random.default_rng(TAIL_SEED)
        return estimate_tail(surveys, _sums(facts, parts), rng=rng)
    except NoReportsError:
        return None


def _curve(facts: Facts, asked: Asked | None) -> Curve | None:
    """Return density and quantiles from the range's reports, if there are surveys among them."""
    try:
        merged = merge_epochs(facts.plans, facts.rows)
        return curve_of(merged, rng=np.random.default_rng(TAIL_SEED), asked=asked)
    except NoReportsError:
        return None


def _sums(facts: Facts, parts: Parts) -> list[CodeCounts]:
    return [CodeCounts(facts.plans[e].stream_mechanism, part) for e, (part, _) in parts.items()]


def _heard(spans: Ints, buckets: Ints) -> int:
    """Return how many devices were there in any of the buckets (rising)."""
    after = np.searchsorted(buckets, spans[:, 0], side="left")
    until = np.searchsorted(buckets, spans[:, 1], side="right")
    return int((until > after).sum())


def _hours(stream: StreamTable, buckets: Ints) -> Ints:
    hours: Ints = (buckets * stream.bucket_s + stream.utc_offset_s) // HOUR_S % DAY_HOURS
    return hours
