"""Means of a stream from merged counts, with intervals that assume nothing about the density.

A mean is the truncated mean, from stream reports, plus the tail above θ, from surveys: both
unbiased, independent, and each with a variance that is read off its own reports. Every epoch is
estimated from its own reports, and counts by all of them: neither θ, nor a survey share or range
that changed on the way, moves what the mean is about. An epoch of surveys alone has its θ at low.
The interval's lower end is never below the truncated mean's own, as a tail cannot be negative;
where surveys do not reach the ceiling, or there are none, its upper end allows for the most that
may lie there, by Markov's inequality. Strata of one population share a tail as far as their own
surveys allow (`edge_ldp.sums.strata`).

What is assumed: devices are honest, and within a stratum and an epoch which slots gave a survey
report does not depend on the values (the plan's coin). Source: docs/sums.md; docs/design.md,
Estimation.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import hypot, isfinite
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.checks import (
    COUNTABLE,
    MECHANISM,
    a,
    chance,
    each,
    floats,
    inner_chance,
    integer_in,
    optional,
    taking,
)
from edge_ldp.device.errors import ParameterError
from edge_ldp.sums.functionals import (
    FunctionalEstimate,
    design_of,
    excess,
    largest_variance,
)
from edge_ldp.sums.strata import allot
from edge_ldp.vectorized import decode_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.mechanisms import Mechanism

    Floats = NDArray[np.float64]

LEVEL = 0.95


@taking(mechanism=MECHANISM)
@dataclass(frozen=True, slots=True, eq=False)
class CodeCounts:
    """Reports of one mechanism, counted by code: `counts` has mechanism.code_count integers.

    Where reports do not stand for equally many values: `weights` has the sum of what those of each
    code stand for, in any unit, and `squares` that of the squares.
    """

    mechanism: Mechanism
    counts: ArrayLike
    weights: ArrayLike | None = None
    squares: ArrayLike | None = None

    def checked(self) -> Floats:
        """Return the counts as floats; raises ParameterError for what are not counts."""
        return self._row("counts", self.counts)

    def weighed(self) -> Weighed:
        """Return sums of weights; raises ParameterError."""
        if self.weights is None and self.squares is None:
            counts = self.checked()
            return Weighed(counts, counts)
        if self.weights is None or self.squares is None:
            raise ParameterError("weights, squares", "both, or none")
        return Weighed(self._row("weights", self.weights), self._row("squares", self.squares))

    def _row(self, name: str, given: ArrayLike) -> Floats:
        found: Floats = floats(name, given)
        if found.shape != (self.mechanism.code_count,):
            raise ParameterError(name, f"{self.mechanism.code_count} numbers, one a code")
        if not np.isfinite(found).all() or found.min() < 0:
            raise ParameterError(name, "finite numbers of at least 0")
        return found


class Weighed(NamedTuple):
    """By code: the sum of the reports' weights, and of their squares."""

    sums: Floats
    squares: Floats

    @property
    def total(self) -> float:
        """The weight of all."""
        return float(self.sums.sum())

    @property
    def heaviest(self) -> float:
        """About the largest weight."""
        some = self.sums > 0
        return float((self.squares[some] / self.sums[some]).max(initial=0.0))

    def plus(self, other: Weighed) -> Weighed:
        """Return these and those."""
        return Weighed(self.sums + other.sums, self.squares + other.squares)

    def mean(self, of: Floats, most: float, share: _Share | None = None) -> FunctionalEstimate:
        """Return that of a function of the code, of variance `most` at most for one report.

        `share`: what a part takes over from its whole. One more report of the largest weight and
        variance is added to what is read off these.
        """
        size, centre, heaviest = share or (self.total, float(self.sums @ of) / self.total, 0.0)
        off = of - centre
        mean = centre + (float(self.sums @ off) / size if share else 0.0)
        heaviest = max(heaviest, self.heaviest)
        variance = (float(self.squares @ off**2) + heaviest**2 * most) / size**2
        return FunctionalEstimate(mean, variance**0.5, round(self.total))


class _Share(NamedTuple):
    """What a part takes over from its whole, so that parts add up to it.

    `size`: the weight that its reports of this kind would have, had the coin given it as many as
    the whole; `mean`: the whole's, in the place of those missing; `heaviest`: of its reports.
    """

    size: float
    mean: float
    heaviest: float


def _share(name: str, given: object) -> object:
    """Return a share as it is; as a pair it is a fraction. Raises ParameterError."""
    if given is None or not isinstance(given, tuple):
        return optional(chance)(name, given)
    num, den = each(integer_in(least=0), 2)(name, given)
    if not num <= den != 0:
        raise ParameterError(name, "0..1, or that as (num, den)")
    return given


@taking(
    stream=a("edge_ldp.sums.means.CodeCounts"),
    survey=a("edge_ldp.sums.means.CodeCounts"),
    share=_share,
)
@dataclass(frozen=True, slots=True, eq=False)
class Epoch:
    """What came under one plan within a stratum: stream reports up to θ, and surveys.

    `share`: of surveys, as the plan has it. Epochs of the same mechanisms and share are one.
    """

    stream: CodeCounts
    survey: CodeCounts
    share: float | tuple[int, int] | None = None


class Interval(NamedTuple):
    """An estimate and the ends of its interval, in the stream's unit (times values, for sums)."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """The mean of the values behind a stratum's reports, in the stream's unit.

    `mean` is the truncated mean + `bias`, both unbiased, so that parts add up to their whole. `low`
    to `high` holds the true mean with probability `level`; it leaves out what cannot be, so a noisy
    `mean` may lie outside, and `bias` below 0. `n` stream reports, `surveys` survey reports of its
    own. `noise_se`: standard error of the truncated mean; `bias_se`: of the tail. `corrected` is
    False where no survey told of a tail: `high` then allows for all that could lie above θ.
    `own`: how far the tail is the stratum's own (1) or its population's (0).
    """

    mean: float
    low: float
    high: float
    n: int
    surveys: int
    noise_se: float
    bias: float
    bias_se: float
    corrected: bool
    level: float
    own: float = 1.0

    def total(self, values: float) -> Interval:
        """Return the sum over `values` values: mean × values, with its interval."""
        return Interval(self.mean * values, self.low * values, self.high * values)


@dataclass(frozen=True, slots=True)
class Means:
    """The mean of all strata together, and of each (None: no reports).

    `spread`: how much the strata's tails differ beyond noise, unit; `unseen`: a difference that
    would not have shown in most cases (infinite: each stratum stands by its own surveys).
    """

    whole: MeanEstimate | None
    strata: tuple[MeanEstimate | None, ...]
    spread: float
    unseen: float


_EPOCHS = each(a("edge_ldp.sums.means.Epoch"))


@taking(epochs=_EPOCHS, ceiling=COUNTABLE, level=inner_chance)
def estimate_mean(
    epochs: Sequence[Epoch], *, ceiling: int, level: float = LEVEL
) -> MeanEstimate | None:
    """Return the mean of one population from its own reports; None without any.

    Cost: O(codes), and the design's once. Raises ParameterError.
    """
    return estimate_means([epochs], ceiling=ceiling, level=level).whole


@taking(strata=each(_EPOCHS), ceiling=COUNTABLE, level=inner_chance, within=_EPOCHS)
def estimate_means(
    strata: Sequence[Sequence[Epoch]],
    *,
    ceiling: int,
    level: float = LEVEL,
    within: Sequence[Epoch] = (),
) -> Means:
    """Return the mean of each stratum and of all together, each with its interval.

    `strata`: the epochs of each, strata being parts of one population (hours of the day, weeks);
    `ceiling`: the largest value considered possible. A stratum of surveys alone stands by itself.
    `within`: the epochs of a whole that all of these are a part of, as a group is of a fleet. What
    the coin made surveys of is then taken as the whole has it, so that the means of parts, by what
    they weigh, add up to its own. Cost: O(strata · codes). Raises ParameterError.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    rows = {row.key: row for row in _rows(within)}
    whole = _part([epoch for stratum in strata for epoch in stratum], ceiling, rows)
    if whole is None:
        return Means(None, (None,) * len(strata), 0.0, float("inf"))
    parts = [_part(stratum, ceiling) for stratum in strata]
    found = [None if part is None else _interval(part, part.alone, z, level) for part in parts]
    sharing = [
        (at, part, tail)
        for at, part in enumerate(parts)
        if part is not None and part.n and (tail := whole.above(part.thetas)) is not None
    ]
    pooled = np.array([tail for _, _, tail in sharing])
    allotted = allot(
        np.array([part.alone.value for _, part, _ in sharing]),
        np.array([part.alone.se for _, part, _ in sharing]),
        np.array([part.mean for _, part, _ in sharing]) + pooled,
        pooled,
    )
    for index, (at, part, _) in enumerate(sharing):
        own = _Tail(*(float(every[index]) for every in allotted[:4]))
        found[at] = _interval(part, own, z, level)
    together = _interval(whole, whole.alone, z, level)
    return Means(together, tuple(found), allotted.spread, allotted.unseen)


class _Tail(NamedTuple):
    """What is added to a truncated mean: see `edge_ldp.sums.strata.Allotted`."""

    value: float
    se: float
    own: float = 1.0
    carried: float = 0.0

    def plus(self, one: FunctionalEstimate, share: float) -> _Tail:
        """Return the sum with a share of an independent estimate."""
        return _Tail(self.value + share * one.value, hypot(self.se, share * one.se))


class _Row(NamedTuple):
    """Epochs that are one: of a `total` weight, the mean of their values truncated at `theta`.

    `most`: the largest value that its reports can stand for; `sees`: whether the surveys tell what
    lies above θ; `within`: the same of the whole that it is a part of.
    """

    key: object
    survey: Mechanism
    surveys: Weighed
    total: float
    low: int
    theta: int
    most: int
    mean: float
    variance: float
    sees: bool
    within: _Row | None = None
    heaviest: float = 1.0

    @property
    def coin(self) -> float:
        """The share of surveys that there were."""
        return self.surveys.total / self.total


class _Part(NamedTuple):
    """A stratum: its rows, truncated mean, and its own tail alone.

    `thetas`: (θ, share of the reports). `missing`: share of the reports whose surveys do not tell
    of a tail, at most `unseen` for each of them. `gap`: what surveys that end below the ceiling
    may miss. `slack`, `most`: how far a tail may be off as surveys do not tell values within a cell
    apart, and how large it can be, as functions of an upper limit of the truncated mean.
    """

    rows: list[_Row]
    mean: float
    se: float
    n: int
    surveys: int
    thetas: tuple[tuple[int, float], ...]
    alone: _Tail
    missing: float
    unseen: float
    gap: _Tail
    slack: _AtMost
    most: _AtMost

    def above(self, thetas: Sequence[tuple[int, float]]) -> float | None:
        """Return the tail above other thetas, of those that surveys tell of; None without any."""
        value = seen = 0.0
        for theta, share in thetas:
            rows = [row for row in self.rows if _sees(row, theta)]
            total = sum(row.total for row in rows)
            if total:
                seen += share
                value += share * sum(row.total / total * _excess(row, theta).value for row in rows)
        return value / seen if seen else None


class _AtMost(NamedTuple):
    """The most of Σ share · cost · P(value ≥ height), given the mean of the truncated values.

    Markov's inequality for each row, shared out where it costs most.
    """

    low: int
    costs: tuple[tuple[float, float, int], ...]

    def __call__(self, mean: float) -> float:
        free = sum(share * cost for share, cost, height in self.costs if height <= self.low)
        dearest = max(
            (cost / (height - self.low) for _, cost, height in self.costs if height > self.low),
            default=0.0,
        )
        every = sum(share * cost for share, cost, _ in self.costs)
        return float(min(every, free + max(0.0, mean - self.low) * dearest))


def _interval(part: _Part, tail: _Tail, z: float, level: float) -> MeanEstimate:
    noise = z * part.se
    upper = part.mean + noise
    most = part.most(upper)
    corrected = isfinite(tail.se)
    low, high = part.mean - noise, upper + most
    bias = 0.0
    if corrected:
        half = z * hypot(part.se * (1 + tail.carried), tail.se)
        bias = tail.value
        slack = part.slack(upper)
        missing = tail.own * part.missing
        gap = max(0.0, part.gap.value + z * part.gap.se)
        lost = missing * max(0.0, tail.value)
        low = max(low, part.mean + tail.value - lost - half - slack)
        reach = max(upper, part.mean + tail.value + half)
        high = min(high, reach + slack + gap + min(missing * part.unseen, most))
        if low > high:  # surveys and stream reports contradict each other
            low, high = part.mean - noise, upper + most
    return MeanEstimate(
        mean=part.mean + bias,
        low=low,
        high=high,
        n=part.n,
        surveys=part.surveys,
        noise_se=part.se,
        bias=bias,
        bias_se=tail.se if corrected else float("inf"),
        corrected=corrected,
        level=level,
        own=tail.own,
    )


def _part(
    epochs: Sequence[Epoch], ceiling: int, within: Mapping[object, _Row] | None = None
) -> _Part | None:
    """Return a stratum's figures, or None without reports; `within`: the rows of its whole."""
    rows = _rows(epochs, within or {})
    if not rows:
        return None
    if ceiling < (most := max(row.most for row in rows)):
        raise ParameterError("ceiling", f"at least {most}, which reports could tell of")
    total = sum(row.total for row in rows)
    shares = [row.total / total for row in rows]
    seeing = [(share, row) for share, row in zip(shares, rows, strict=True) if row.sees]
    seen = sum(
        share for share, row in zip(shares, rows, strict=True) if row.sees or row.theta >= ceiling
    )
    tail = gap = _Tail(0.0, 0.0)
    for share, row in seeing:
        one = _excess(row, row.theta)
        # (v − θ)⁺ up to the survey's end is at least (its end − θ) for what lies above that
        beyond = max(0, ceiling - row.survey.high) / (row.survey.high - row.theta)
        tail, gap = tail.plus(one, share), gap.plus(one, share * beyond)
    low = min(row.low for row in rows)
    cells = [(share, *_cell(row)) for share, row in seeing]
    costs = [
        (share, float(max(0, ceiling - row.theta)), row.theta)
        for share, row in zip(shares, rows, strict=True)
    ]
    return _Part(
        rows=rows,
        mean=sum(share * row.mean for share, row in zip(shares, rows, strict=True)),
        se=sum(share**2 * row.variance for share, row in zip(shares, rows, strict=True)) ** 0.5,
        n=sum(round(float(epoch.stream.checked().sum())) for epoch in epochs),
        surveys=sum(round(float(epoch.survey.checked().sum())) for epoch in epochs),
        thetas=tuple((row.theta, share) for share, row in zip(shares, rows, strict=True)),
        alone=_Tail(tail.value / seen, tail.se / seen) if seen else _Tail(0.0, float("inf")),
        missing=max(0.0, 1 - seen),
        unseen=max(cost for _, cost, _ in costs),
        gap=gap,
        slack=_AtMost(low, tuple(cells)),
        most=_AtMost(low, tuple(costs)),
    )


def _rows(epochs: Iterable[Epoch], within: Mapping[object, _Row] | None = None) -> list[_Row]:
    """Return what came, epochs of the same mechanisms and share added up."""
    found: dict[object, tuple[Epoch, Weighed, Weighed]] = {}
    for epoch in epochs:
        key = epoch.stream.mechanism, epoch.survey.mechanism, epoch.share
        stream, survey = epoch.stream.weighed(), epoch.survey.weighed()
        if key in found:
            stream, survey = stream.plus(found[key][1]), survey.plus(found[key][2])
        found[key] = epoch, stream, survey
    return [
        _row(key, *merged, (within or {}).get(key))
        for key, merged in found.items()
        if merged[1].total or merged[2].total
    ]


def _row(key: object, epoch: Epoch, stream: Weighed, surveys: Weighed, within: _Row | None) -> _Row:
    survey, mechanism = epoch.survey.mechanism, epoch.stream.mechanism
    total = stream.total + surveys.total
    theta, low = mechanism.high, survey.low
    if not stream.total if within is None else within.coin == 1:  # all of the mean is tail
        first = key, survey, surveys, total, low, low, survey.high, float(low), 0.0
        return _Row(*first, sees=True, within=within, heaviest=surveys.heaviest)
    table, largest = _decoding(mechanism)
    heaviest = max(stream.heaviest, surveys.heaviest)
    share = None if within is None else _Share((1 - within.coin) * total, within.mean, heaviest)
    found = stream.mean(table, largest, share)
    most = max(theta, survey.high) if surveys.total else theta
    row = _Row(
        key,
        survey,
        surveys,
        total,
        mechanism.low,
        theta,
        most,
        found.value,
        found.se**2,
        False,
        within,
        heaviest,
    )
    return row._replace(sees=_sees(row, theta))


def _sees(row: _Row, theta: int) -> bool:
    """Say whether there are surveys, of the whole at least, that tell of θ and what is above it."""
    there = (row.within or row).surveys.total
    return there > 0 and row.survey.low <= theta < row.survey.high


def _excess(row: _Row, theta: int) -> FunctionalEstimate:
    weights, most, _ = _weights(row.survey, theta)
    if row.within is None:
        return row.surveys.mean(weights, most)
    mean = _excess(row.within, theta).value
    share = _Share(row.within.coin * row.total, mean, row.heaviest)
    return row.surveys.mean(weights, most, share)


def _cell(row: _Row) -> tuple[float, int]:
    """Return how far E (v − θ)⁺ may be from h within a cell, and where the first such cell starts.

    Of a cell above θ it is half the cell's width, of the one around θ less.
    """
    _, _, cell = _weights(row.survey, row.theta)
    return cell


@lru_cache(maxsize=64)
def _weights(survey: Mechanism, theta: int) -> tuple[Floats, float, tuple[float, int]]:
    """Return the weights of the excess over θ, their largest variance, and what `_cell` says."""
    design = design_of([survey])
    edges = design.edges
    (weights,) = design.weights(excess(edges, theta))
    first = int(np.searchsorted(edges, theta + 1, side="right")) - 1
    widest = int(np.diff(edges[first:]).max(initial=1))
    most = largest_variance(weights, design.laws[0])
    return weights, most, ((widest - 1) / 2, min(theta, int(edges[first])))


@lru_cache(maxsize=256)
def _decoding(mechanism: Mechanism) -> tuple[Floats, float]:
    """Return what each code decodes to, and the largest variance of a decoded report, unit²."""
    span = mechanism.high - mechanism.low
    return decode_table(mechanism), mechanism.worst_variance + span * span / 4
