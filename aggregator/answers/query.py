"""What an operator asks: means, totals and the density of a stream, each with its uncertainty.

Pure over counts of the range asked for. A mean is a truncated mean, from stream reports, and the
tail above θ, from surveys; its interval assumes nothing about the density (`edge_ldp.sums`). It is
about the very values that these devices had in these slots. Density and quantiles are from surveys
of the range. A total is mean × device-slots: the devices that were there in each slot, reporting or
not (docs/design.md, Estimation).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np
from msgspec import convert, structs
from numpy.typing import NDArray

from aggregator.answers.crowds import Reported, is_crowd, joined, withheld
from aggregator.answers.curves import Curve, CurveQuestion, curve_of
from aggregator.answers.local_time import GROUPINGS, Grouping, group_name
from aggregator.answers.parts import AnswerPart, InUnit, Kwh, Reports, Share, UnitSlots
from aggregator.answers.units import ends, energies
from aggregator.config import StreamTable
from aggregator.counting.classes import Weights, effect_of, unweighted
from aggregator.counting.reporters import NOBODY, united
from aggregator.counting.retention import HOUR_S
from aggregator.counting.tally import MOST, CountRows, exact_sum, merge_epochs, weigh_epochs
from aggregator.store.moments import AT_THE_END
from aggregator.store.rows import ReportSum
from edge_ldp.arrays import Ints
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.protocol.plan import Plan
from edge_ldp.sums import CodeCounts, Epoch, MeanEstimate, estimate_means
from edge_ldp.sums.clustered import widened
from edge_ldp.sums.shares import prepare

Flags = NDArray[np.bool_]

SEED = 0  # of the draws that halve reports: no privacy noise; same counts, same answer
WHOLE = Grouping()  # all of a range, as one


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What the store knows of one stream.

    `rows`: counts in the range asked for, by bucket or by what `part_of` made of them; `presence`:
    (bucket, device-slots) in the range, rising; `spans`: first and last bucket of each device with
    reports; `enrolled`: devices that may report; `least`: figures of fewer devices are withheld
    (AGG-13); `beside`: who reported, by bucket, of devices that a group leaves out; `records`:
    theirs that are in; `weights`: what reports stand for; `within`: the counts of all devices,
    where `rows` are a group's. Without `spans` and what follows of devices it is of counts alone.
    """

    plans: Mapping[int, Plan]
    rows: CountRows
    presence: Ints
    spans: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    enrolled: int = 0
    least: int = 1
    beside: Mapping[int, bytes] | None = None
    records: Sequence[ReportSum] = ()
    weights: Weights = field(default_factory=unweighted)
    within: CountRows | None = None


class Figures(AnswerPart, frozen=True, kw_only=True):
    """Figures of the slots of a range, or of a part of it.

    mean; low, high: hold it with 95 % and assume nothing about the density; total = mean ×
    device_slots, energy_kwh the same as energy, each with its ends; all null without reports; n:
    stream reports; surveys; bias: the part of the mean that only surveys saw, values above θ;
    corrected: false if there was no survey (high then allows for all that may lie there); own: how
    far that part is by these slots' own surveys (1) or by all of the range (0); devices heard and
    missing; device_slots: the slots in which devices were there (each device counts by its own,
    however often it reports); withheld: the figures are null, because fewer devices than
    query.min_devices reported, or because the figures shown beside them would reveal so few.
    """

    devices: int | None
    missing: int | None
    device_slots: int | None
    n: Reports | None
    mean: InUnit | None
    low: InUnit | None
    high: InUnit | None
    total: UnitSlots | None
    total_low: UnitSlots | None
    total_high: UnitSlots | None
    bias: InUnit | None
    corrected: bool | None
    surveys: Reports | None
    own: Share | None
    withheld: bool
    energy_kwh: Kwh | None
    energy_kwh_low: Kwh | None
    energy_kwh_high: Kwh | None


WITHHELD = convert({**dict.fromkeys(Figures.__struct_fields__), "withheld": True}, Figures)


class GroupFigures(Figures, frozen=True, kw_only=True):
    """Figures of one group of slots.

    group: the hour of the day, or the first second (UTC) of the day or week; at: its
    name by the zone's clocks.
    """

    group: int
    at: str


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Everything `query` tells of a stream; the buckets it is about are first..last.

    `spread`: how much the groups' tails differ beyond their noise, unit; `unseen`: how much they
    could without showing (None: each group stands by its own surveys). `leaves_few`: it is withheld
    for the devices that the group leaves out. `untold`: see `Weights`. `cell`: who reported.
    """

    whole: Figures
    groups: Sequence[GroupFigures]
    curve: Curve | None
    first_bucket: int | None
    last_bucket: int | None
    spread: float = 0.0
    unseen: float | None = None
    leaves_few: bool = False
    untold: float = 0.0
    cell: Reported = field(default_factory=Reported)


def part_of(stream: StreamTable, by: Grouping, begin: int) -> Callable[[int], tuple[int, bool]]:
    """Return what says which buckets' counts may be added up for an answer, and it is the same.

    `begin`: the first bucket with stream reports; surveys before it are in the density alone.
    """

    @cache  # a bucket has counts of each group and epoch
    def part(bucket: int) -> tuple[int, bool]:
        return by.of(stream, bucket), bucket >= begin

    return part


def prepare_curve(plans: Mapping[int, Plan]) -> None:
    """Do what part of `curve_shown` needs no counts, so that it can be done while they are read."""
    np.random.default_rng(SEED)  # NumPy loads its generators with the first
    if plans:
        prepare(plans[max(plans)].survey_mechanism)


def curve_shown(
    plans: Mapping[int, Plan],
    rows: CountRows,
    asked: CurveQuestion | None = None,
    weights: Weights | None = None,
) -> Curve | None:
    """Return the curve that an answer from these counts shows, None without surveys.

    Most of an answer's work. Raises CountsError.
    """
    counts = merge_epochs(plans, rows, weights)
    try:
        return curve_of(counts, rng=np.random.default_rng(SEED), asked=asked)
    except NoReportsError:
        return None


def answer(
    stream: StreamTable,
    facts: Facts,
    by: Grouping = WHOLE,
    *,
    curve: Callable[[], Curve | None] | None = None,
) -> Answer:
    """Return the answer for the range that `facts` was read for, grouped `by`.

    `curve`: gives `curve_shown` of these facts, which may be under way, or None where no density
    is wanted; it is asked for last, or not at all.

    Sums begin where stream reports begin: the first survey's slots are in the density only. Cost:
    that of the curve, and a millisecond a group. Raises CountsError (damaged),
    ParameterError (by).
    """
    if by.by not in GROUPINGS or (by.by == "hour-of-day" and stream.bucket_s > HOUR_S):
        raise ParameterError("by", "none, day, week; hour-of-day where buckets are at most an hour")
    if facts.rows.count.max(initial=0) == MOST:
        raise CountsError(AT_THE_END)
    within = facts.within or facts.rows
    begin = first_streamed(facts.plans, within)
    present = facts.presence[facts.presence[:, 0] >= begin]
    strata = by.of_all(stream, present[:, 0])
    named = sorted(set(strata.tolist()))
    parts = [present[strata == name] for name in named]
    since = facts.rows.bucket >= begin
    of_rows = by.of_all(stream, facts.rows.bucket)
    ceiling = max([stream.ceiling, *(plan.ceiling for plan in facts.plans.values())])
    every = _epochs(facts, facts.rows, since & np.isin(of_rows, named))
    epochs = [every] * len(named)
    if by.by != "none":
        parts_of = replace(facts, weights=facts.weights.of_parts)
        epochs = [_epochs(parts_of, facts.rows, since & (of_rows == name)) for name in named]
    found = estimate_means(
        epochs,
        ceiling=ceiling,
        within=_epochs(facts, within, within.bucket >= begin) if facts.within else (),
        whole=every,
    )
    # what schedules that walk badly add to intervals (AGG-31)
    effect = effect_of(facts.rows.whose[since], facts.rows.count[since])
    wider = partial(widened, effect=effect, ceiling=ceiling)
    # the groups of few devices are withheld, but the whole is of all
    beside = np.array([*(facts.beside or ())], np.int64)
    left_out = beside[beside >= begin]
    of_left = by.of_all(stream, left_out)
    cells = [
        _reported(stream, facts, since & (of_rows == name), part, left_out[of_left == name])
        for name, part in zip(named, parts, strict=True)
    ]
    few = withheld(cells, facts.least)
    means = [mean and wider(mean, own) for mean, own in zip(found.strata, epochs, strict=True)]
    groups = [
        GroupFigures.of(
            WITHHELD if at in few else _figures(stream, facts, mean, part),
            group=name,
            at=group_name(name, by.zone),
        )
        for at, (name, mean, part) in enumerate(zip(named, means, parts, strict=True))
    ]
    whole = found.whole and wider(found.whole, every)
    all_of_it = joined(cells)
    is_told = is_crowd(all_of_it, facts.least)
    # surveys begin before stream reports do
    with_surveys = _reported(stream, facts, facts.rows.bucket >= 0, facts.presence, beside)
    return Answer(
        whole=_figures(stream, facts, whole, present) if is_told else WITHHELD,
        groups=[] if by.by == "none" else groups,
        curve=curve() if curve and is_crowd(with_surveys, facts.least) else None,
        first_bucket=int(present[0, 0]) if len(present) else None,
        last_bucket=int(present[-1, 0]) if len(present) else None,
        spread=found.spread,
        unseen=found.unseen if np.isfinite(found.unseen) else None,
        leaves_few=not is_told and is_crowd(replace(all_of_it, beside=NOBODY), facts.least),
        untold=facts.weights.untold,
        cell=all_of_it,
    )


def _reported(
    stream: StreamTable, facts: Facts, chosen: Flags, present: Ints, beside: Ints
) -> Reported:
    """Return who reported in the rows that are chosen; `beside`: buckets of those left out."""
    rows = facts.rows
    streams = {epoch: plan.stream_mechanism.code_count for epoch, plan in facts.plans.items()}
    epochs, of = np.unique(rows.epoch[chosen], return_inverse=True)
    borders = np.array([streams.get(epoch, 0) for epoch in epochs.tolist()], np.int64)
    is_survey = rows.code[chosen] >= borders[of.reshape(-1)]
    counts = rows.count[chosen]
    others = facts.beside or {}
    return Reported(
        (exact_sum(counts[~is_survey]), exact_sum(counts[is_survey])),
        len(present) * stream.bucket_slots,
        united(rows.reporters.get(at, NOBODY) for at in set(rows.bucket[chosen].tolist())),
        united(others[at] for at in beside.tolist()),
        _heard(facts.spans, present[:, 0]),
    )


def _figures(
    stream: StreamTable, facts: Facts, mean: MeanEstimate | None, present: Ints
) -> Figures:
    """Return the figures of a mean, None where there are no reports."""
    heard, slots = _heard(facts.spans, present[:, 0]), int(present[:, 1].sum())
    there = {
        "devices": heard,
        "missing": max(0, facts.enrolled - heard),
        "device_slots": slots,
        "withheld": False,
    }
    if mean is None:
        return structs.replace(WITHHELD, **there, n=0, surveys=0, bias=0.0, corrected=False)
    total = mean.total(slots)
    return Figures.of(mean, **there, **ends("total", *total), **energies(stream, *total))


def first_streamed(plans: Mapping[int, Plan], rows: CountRows) -> int:
    """Return the first bucket with stream reports, 0 where there is none."""
    firsts = [
        int(rows.bucket[mine].min())
        for epoch, plan in plans.items()
        if (mine := (rows.epoch == epoch) & (rows.code < plan.stream_mechanism.code_count)).any()
    ]
    return min(firsts, default=0)


def _epochs(facts: Facts, rows: CountRows, chosen: Flags) -> list[Epoch]:
    found = weigh_epochs(facts.plans, rows.some(chosen), facts.weights)
    return [
        Epoch(
            CodeCounts(facts.plans[epoch].stream_mechanism, *streams),
            CodeCounts(facts.plans[epoch].survey_mechanism, *surveys),
            facts.plans[epoch].share,
        )
        for epoch, (streams, surveys) in found.items()
    ]


def _heard(spans: Ints, buckets: Ints) -> int:
    """Return how many devices were there in any of the buckets (rising)."""
    after = np.searchsorted(buckets, spans[:, 0], side="left")
    until = np.searchsorted(buckets, spans[:, 1], side="right")
    return int((until > after).sum())
