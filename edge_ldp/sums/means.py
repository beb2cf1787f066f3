"""Means of a stream from merged counts, with intervals that assume nothing about the density.

A mean is the truncated mean, from stream reports, plus the tail above θ, from surveys: both
unbiased, independent, and each with a variance that is read off its own reports. The interval's
lower end is never below the truncated mean's own, as a tail cannot be negative; where surveys
do not reach the ceiling, or there are none, its upper end allows for the most that may lie there.
Strata of one population share a tail as far as their own surveys allow (`edge_ldp.sums.strata`).

What is assumed: devices are honest, and within a stratum and an epoch which slots gave a survey
report does not depend on the values (the plan's coin). Source: docs/sums.md; DESIGN §6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.device.errors import ParameterError
from edge_ldp.sums.functionals import Design, design_of, estimate, excess
from edge_ldp.sums.strata import allot
from edge_ldp.vectorized import decode_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.mechanisms import Mechanism

    Floats = NDArray[np.float64]

LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class CodeCounts:
    """Reports of one mechanism, counted by code: `counts` has mechanism.code_count integers."""

    mechanism: Mechanism
    counts: ArrayLike

    def checked(self) -> Floats:
        """Return the counts as floats; raises ParameterError for what are not counts."""
        found = np.asarray(self.counts, np.float64)
        if found.shape != (self.mechanism.code_count,):
            raise ParameterError("counts", f"{self.mechanism.code_count} numbers, one a code")
        if not np.isfinite(found).all() or found.min() < 0:
            raise ParameterError("counts", "finite numbers of at least 0")
        return found


class Epoch(NamedTuple):
    """What came under one plan within a stratum: stream reports up to θ, and surveys."""

    stream: CodeCounts
    survey: CodeCounts


class Interval(NamedTuple):
    """An estimate and the ends of its interval, in the stream's unit (times values, for sums)."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """The mean of the values behind a stratum's reports, in the stream's unit.

    `mean` = `truncated` + `bias`; [`low`, `high`] holds it with probability `level`. `n` stream
    reports, `surveys` survey reports of its own. `noise_se`: standard error of the truncated mean;
    `bias_se`: of the tail. `corrected` is False where no survey told of a tail: the interval's
    upper end then allows for all that could lie above θ. `own`: how far the tail is the stratum's
    own (1) or its population's (0).
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
    """The mean of all strata together, and of each (None: no stream reports).

    `spread`: how much the strata's tails differ beyond noise, unit; `unseen`: a difference that
    would not have shown in most cases (infinite: each stratum stands by its own surveys).
    """

    whole: MeanEstimate | None
    strata: tuple[MeanEstimate | None, ...]
    spread: float
    unseen: float


class _Part(NamedTuple):
    """A stratum's truncated mean and its own tail; `gap`: what surveys could not reach at most."""

    mean: float
    se: float
    n: int
    shares: tuple[tuple[int, float], ...]
    low: int
    tail: float
    tail_se: float
    surveys: int
    gap: float


def estimate_mean(
    epochs: Sequence[Epoch], *, ceiling: int, level: float = LEVEL
) -> MeanEstimate | None:
    """Return the mean of one population from its own reports; None without stream reports.

    Cost: O(codes), and the design's once. Raises ParameterError.
    """
    return estimate_means([epochs], ceiling=ceiling, level=level).whole


def estimate_means(
    strata: Sequence[Sequence[Epoch]], *, ceiling: int, level: float = LEVEL
) -> Means:
    """Return the mean of each stratum and of all together, each with its interval.

    `strata`: the epochs of each, strata being parts of one population (hours of the day, weeks);
    `ceiling`: the largest value considered possible. Cost: O(strata · codes). Raises
    ParameterError.
    """
    if not 0 < level < 1:
        raise ParameterError("level", "a probability between 0 and 1")
    z = NormalDist().inv_cdf((1 + level) / 2)
    design = _design(epoch.survey for stratum in strata for epoch in stratum)
    whole = _part([epoch for stratum in strata for epoch in stratum], design, ceiling, z)
    parts = [_part(stratum, design, ceiling, z) for stratum in strata]
    if whole is None:
        return Means(None, (None,) * len(strata), 0.0, float("inf"))
    some = [part for part in parts if part is not None]
    everything = _merged([epoch for stratum in strata for epoch in stratum])
    pooled = [_tail(everything, design, part.shares)[0] for part in some]
    found = allot(
        np.array([part.tail for part in some]),
        np.array([part.tail_se for part in some]),
        np.array([part.mean for part in some]),
        np.array(pooled),
    )
    allotted = iter(
        _interval(part, (tail, se, carried, own), ceiling, level)
        for part, tail, se, carried, own in zip(
            some,
            found.tails.tolist(),
            found.se.tolist(),
            found.carried.tolist(),
            found.own.tolist(),
            strict=True,
        )
    )
    means = tuple(None if part is None else next(allotted) for part in parts)
    own = _interval(whole, (whole.tail, whole.tail_se, 0.0, 1.0), ceiling, level)
    return Means(own, means, found.spread, found.unseen)


def _interval(
    part: _Part, tail: tuple[float, float, float, float], ceiling: int, level: float
) -> MeanEstimate:
    z = NormalDist().inv_cdf((1 + level) / 2)
    value, tail_se, carried, own = tail
    noise = z * part.se
    theta = sum(share * at for at, share in part.shares)
    # at most so much lies above θ: Markov's inequality, from the truncated mean itself
    above = min(1.0, max(0.0, part.mean + noise - part.low) / max(1.0, theta - part.low))
    most = (ceiling - theta) * above
    corrected = bool(np.isfinite(tail_se))
    ends = part.mean - noise, part.mean + noise + most
    bias = 0.0
    if corrected:
        half = z * float(np.hypot(part.se * (1 + carried), tail_se))
        bias = min(max(0.0, value), most)
        ends = (
            max(ends[0], part.mean + value - half),
            min(ends[1], max(part.mean + noise, part.mean + value + half) + part.gap),
        )
    return MeanEstimate(
        mean=min(max(part.mean + bias, ends[0]), ends[1]),
        low=ends[0],
        high=ends[1],
        n=part.n,
        surveys=part.surveys,
        noise_se=part.se,
        bias=bias,
        bias_se=tail_se if corrected else float("inf"),
        corrected=corrected,
        level=level,
        own=own,
    )


def _part(epochs: Sequence[Epoch], design: Design | None, ceiling: int, z: float) -> _Part | None:
    """Return a stratum's figures, or None without stream reports."""
    merged = _merged(epochs)
    streams = [row for row in merged if row.stream.sum()]
    if not streams:
        return None
    total = sum(row.total for row in streams)
    mean = variance = 0.0
    for row in streams:
        table, largest = _decoding(row.epoch.stream.mechanism)
        n, share = float(row.stream.sum()), row.total / total
        centre = float(row.stream @ table) / n
        mean += share * centre
        variance += (share / n) ** 2 * (float(row.stream @ (table - centre) ** 2) + largest)
    shares = tuple((row.epoch.stream.mechanism.high, row.total / total) for row in streams)
    low = min(row.epoch.stream.mechanism.low for row in streams)
    tail, tail_se, surveys, (gap, gap_se) = _tail(merged, design, shares, ceiling)
    slack = 0.0
    if design is not None:
        theta = min(at for at, _ in shares)
        widths = np.diff(design.edges)[design.edges[1:] > theta]
        most = min(1.0, max(0.0, mean + z * variance**0.5 - low) / max(1, theta - low))
        slack = float(widths.max(initial=0) - 1) / 2 * most
    return _Part(
        mean=mean,
        se=variance**0.5,
        n=round(sum(float(row.stream.sum()) for row in streams)),
        shares=shares,
        low=low,
        tail=tail,
        tail_se=tail_se,
        surveys=surveys,
        gap=max(0.0, gap + z * gap_se) + max(0.0, slack),
    )


class _Row(NamedTuple):
    epoch: Epoch
    stream: Floats
    survey: Floats
    total: float


def _merged(epochs: Iterable[Epoch]) -> list[_Row]:
    """Return the counts, those of the same two mechanisms added up."""
    found: dict[tuple[Mechanism, Mechanism], _Row] = {}
    for epoch in epochs:
        key = epoch.stream.mechanism, epoch.survey.mechanism
        stream, survey = epoch.stream.checked(), epoch.survey.checked()
        if key in found:
            stream, survey = stream + found[key].stream, survey + found[key].survey
        found[key] = _Row(epoch, stream, survey, float(stream.sum() + survey.sum()))
    return list(found.values())


def _design(surveys: Iterable[CodeCounts]) -> Design | None:
    """Return the joint design of all surveys with reports."""
    reports: dict[Mechanism, float] = {}
    for part in surveys:
        n = float(part.checked().sum())
        if n:
            reports[part.mechanism] = reports.get(part.mechanism, 0.0) + n
    if not reports:
        return None
    return design_of(tuple(reports), [round(n) for n in reports.values()])


def _tail(
    rows: Sequence[_Row],
    design: Design | None,
    shares: tuple[tuple[int, float], ...],
    ceiling: int | None = None,
) -> tuple[float, float, int, tuple[float, float]]:
    """Return the unbiased tail, its standard error, its reports, and (gap, se) up to `ceiling`.

    An epoch counts by all its reports, not by its surveys alone: a survey share that changed on
    the way does not move what the mean is about.
    """
    nothing = float("nan"), float("inf"), 0, (0.0, 0.0)
    if design is None:
        return nothing
    surveyed = [row for row in rows if row.survey.sum()]
    present = {row.epoch.survey.mechanism for row in surveyed}
    if len(present) < len(design.mechanisms):
        if not present:
            return nothing
        design = design_of(tuple(m for m in design.mechanisms if m in present))
    tails = [(share, _weights(design, theta)) for theta, share in shares]
    beyond = 0.0 if ceiling is None else max(0.0, float(ceiling - (design.edges[-1] - 1)))
    value, gap = np.zeros(2), np.zeros(2)
    n = 0
    for at, (mechanism, law) in enumerate(zip(design.mechanisms, design.laws, strict=True)):
        w = sum(share * weights[at] for share, weights in tails)
        top = beyond * _weights(design, None)[at] if beyond else None
        mine = [row for row in surveyed if row.epoch.survey.mechanism == mechanism]
        total = sum(row.total for row in mine)
        for row in mine:
            n += round(float(row.survey.sum()))
            value += _counted(np.asarray(w), law, row, total)
            if top is not None:
                gap += _counted(top, law, row, total)
    return float(value[0]), float(value[1]) ** 0.5, n, (float(gap[0]), float(gap[1]) ** 0.5)


def _counted(w: Floats, law: Floats, row: _Row, total: float) -> Floats:
    """Return what an epoch adds to an estimate and its variance."""
    share, one = row.total / total, estimate([w], [law], [row.survey])
    return np.array([share * one.value, (share * one.se) ** 2])


@lru_cache(maxsize=64)
def _weights(design: Design, theta: int | None) -> tuple[Floats, ...]:
    """Return the weights of the excess over θ; None: of the share in the highest cell."""
    if theta is None:
        return design.weights(np.append(np.zeros(len(design.edges) - 2), 1.0))
    return design.weights(excess(design.edges, theta))


@lru_cache(maxsize=256)
def _decoding(mechanism: Mechanism) -> tuple[Floats, float]:
    """Return what each code decodes to, and the largest variance of a decoded report, unit²."""
    span = mechanism.high - mechanism.low
    return decode_table(mechanism), mechanism.worst_variance + span * span / 4
