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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, isfinite
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from edge_ldp.checks import COUNTABLE, a, each, inner_chance, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.sums.counted import Epoch
from edge_ldp.sums.functionals import FunctionalEstimate
from edge_ldp.sums.merged_epochs import Key, MergedEpoch, merged_epochs
from edge_ldp.sums.strata import allot

LEVEL = 0.95


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


_EPOCHS = each(a("edge_ldp.sums.counted.Epoch"))


@taking(epochs=_EPOCHS, ceiling=COUNTABLE, level=inner_chance)
def estimate_mean(
    epochs: Sequence[Epoch], *, ceiling: int, level: float = LEVEL
) -> MeanEstimate | None:
    """Return the mean of one population from its own reports; None without any.

    Cost: O(codes), and the design's once. Raises ParameterError.
    """
    return estimate_means([epochs], ceiling=ceiling, level=level).whole


@taking(strata=each(_EPOCHS), ceiling=COUNTABLE, level=inner_chance, within=_EPOCHS, whole=_EPOCHS)
def estimate_means(
    strata: Sequence[Sequence[Epoch]],
    *,
    ceiling: int,
    level: float = LEVEL,
    within: Sequence[Epoch] = (),
    whole: Sequence[Epoch] = (),
) -> Means:
    """Return the mean of each stratum and of all together, each with its interval.

    `strata`: the epochs of each, strata being parts of one population (hours of the day, weeks);
    `ceiling`: the largest value considered possible. A stratum of surveys alone stands by itself.
    `within`: the epochs of a whole that all of these are a part of, as a group is of a fleet. What
    the coin made surveys of is then taken as the whole has it, so that the means of parts, by what
    they weigh, add up to its own. `whole`: the epochs of all strata, where their reports weigh
    otherwise together than in each. Cost: O(strata · codes). Raises ParameterError.
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    every = whole or [epoch for stratum in strata for epoch in stratum]
    all_of_it = _part(every, ceiling, merged_epochs(within))
    if all_of_it is None:
        return Means(None, (None,) * len(strata), 0.0, float("inf"))
    parts = [_part(stratum, ceiling) for stratum in strata]
    found = [None if part is None else _interval(part, part.alone, z, level) for part in parts]
    sharing = [
        (at, part, tail)
        for at, part in enumerate(parts)
        if part is not None and part.n and (tail := all_of_it.above(part.thetas)) is not None
    ]
    tails = [
        (part.alone.value, part.alone.se, part.usual_se(all_of_it), part.mean + tail, tail)
        for _, part, tail in sharing
    ]
    allotted = allot(*np.array(tails).reshape(-1, 5).T)
    for index, (at, part, _) in enumerate(sharing):
        own = _Tail(*(float(of[index]) for of in allotted[:4]))
        found[at] = _interval(part, own, z, level)
    together = _interval(all_of_it, all_of_it.alone, z, level)
    return Means(together, tuple(found), allotted.spread, allotted.unseen)


class _Tail(NamedTuple):
    """What is added to a truncated mean: see `edge_ldp.sums.strata.Allotted`."""

    value: float
    se: float
    own: float = 1.0
    carried: float = 0.0

    def plus(self, one: FunctionalEstimate, share: float) -> "_Tail":
        """Return the sum with a share of an independent estimate."""
        return _Tail(self.value + share * one.value, hypot(self.se, share * one.se))


class _Part(NamedTuple):
    """A stratum: its rows, truncated mean, and its own tail alone.

    `thetas`: (θ, share of the reports). `missing`: share of the reports whose surveys do not tell
    of a tail, at most `unseen` for each of them. `gap`: what surveys that end below the ceiling
    may miss. `slack`, `most`: how far a tail may be off as surveys do not tell values within a cell
    apart, and how large it can be, as functions of an upper limit of the truncated mean.
    """

    rows: dict[Key, MergedEpoch]
    mean: float
    se: float
    n: int
    surveys: int
    thetas: tuple[tuple[int, float], ...]
    alone: _Tail
    missing: float
    unseen: float
    gap: _Tail
    slack: "_AtMost"
    most: "_AtMost"

    def above(self, thetas: Sequence[tuple[int, float]]) -> float | None:
        """Return the tail above other thetas, of those that surveys tell of; None without any."""
        value = seen = 0.0
        for theta, share in thetas:
            rows = [row for row in self.rows.values() if row.sees(theta)]
            total = sum(row.total for row in rows)
            if total:
                seen += share
                value += share * sum(row.total / total * row.excess(theta).value for row in rows)
        return value / seen if seen else None

    def usual_se(self, every: "_Part") -> float:
        """Return what the tail's error would be with as many surveys of all strata's values."""
        total = sum(row.total for row in self.rows.values())
        tail = self.alone._replace(value=0.0, se=0.0)
        for key, row in self.rows.items():
            if row.sees(row.theta):
                of_all = row.surveys.spread_as(every.rows.get(key, row).surveys)
                tail = tail.plus(row._replace(surveys=of_all).excess(row.theta), row.total / total)
        return tail.se / (1 - self.missing) if self.missing < 1 else float("inf")


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
    epochs: Sequence[Epoch], ceiling: int, within: Mapping[Key, MergedEpoch] | None = None
) -> _Part | None:
    """Return a stratum's figures, or None without reports; `within`: the epochs of its whole."""
    found = merged_epochs(epochs, within)
    rows = found.values()
    if not rows:
        return None
    if ceiling < (most := max(row.most for row in rows)):
        raise ParameterError("ceiling", f"at least {most}, which reports could tell of")
    total = sum(row.total for row in rows)
    parts = [(row.total / total, row) for row in rows]
    seeing = [(share, row) for share, row in parts if row.sees(row.theta)]
    seen = sum(share for share, row in parts if row.sees(row.theta) or row.theta >= ceiling)
    tail = gap = _Tail(0.0, 0.0)
    for share, row in seeing:
        one = row.excess(row.theta)
        # (v − θ)⁺ up to the survey's end is at least (its end − θ) for what lies above that
        beyond = max(0, ceiling - row.survey.high) / (row.survey.high - row.theta)
        tail, gap = tail.plus(one, share), gap.plus(one, share * beyond)
    low = min(row.low for row in rows)
    costs = [(share, float(max(0, ceiling - row.theta)), row.theta) for share, row in parts]
    return _Part(
        rows=found,
        mean=sum(share * row.mean for share, row in parts),
        se=sum(share**2 * row.variance for share, row in parts) ** 0.5,
        n=sum(round(float(epoch.stream.checked().sum())) for epoch in epochs),
        surveys=sum(round(float(epoch.survey.checked().sum())) for epoch in epochs),
        thetas=tuple((row.theta, share) for share, row in parts),
        alone=_Tail(tail.value / seen, tail.se / seen) if seen else _Tail(0.0, float("inf")),
        missing=max(0.0, 1 - seen),
        unseen=max(cost for _, cost, _ in costs),
        gap=gap,
        slack=_AtMost(low, tuple((share, *row.cell) for share, row in seeing)),
        most=_AtMost(low, tuple(costs)),
    )
