"""Means and sums of a stream from merged counts of codes, with intervals that hold.

Decoded stream reports are unbiased for values truncated at θ: their average carries noise and a
bias. The noise is measured by the reports' own variance (mechanism and sampling together); the
bias is estimated from surveys, and its uncertainty is in the interval: with the variance alone it
does not cover. Sources: DESIGN §6, METHODS §3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from aggregator.adaptive.posterior import infer
from aggregator.errors import ArgumentError, NoReportsError
from aggregator.estimate.em import checked_counts
from aggregator.estimate.joint import Evidence, cells
from aggregator.estimate.operator import operator_of
from aggregator.tail import Tail, Truncation
from edge_ldp.vectorized import decode_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from aggregator.adaptive.posterior import Posterior
    from edge_ldp import Mechanism


@dataclass(frozen=True, slots=True, eq=False)
class CodeCounts:
    """Reports of one mechanism, counted by code: `counts` has mechanism.code_count integers."""

    mechanism: Mechanism
    counts: ArrayLike


class Interval(NamedTuple):
    """An estimate and the ends of its interval, in the stream's unit (times values, for sums)."""

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """The mean of the values behind n stream reports, in the stream's unit.

    `mean` = average of the decoded reports + `bias`; [`low`, `high`] holds it with probability
    `level`. `noise_se`: standard error of the average; `bias_se`: of the correction, apart from
    that noise. `corrected` is False when there was no tail to correct with: then `mean` and the
    interval are those of the values truncated at θ, and must be labelled so.
    """

    mean: float
    low: float
    high: float
    n: int
    noise_se: float
    bias: float
    bias_se: float
    corrected: bool
    level: float

    def total(self, values: float) -> Interval:
        """Return the sum over `values` values: mean × values, with its interval."""
        return Interval(self.mean * values, self.low * values, self.high * values)


class Average(NamedTuple):
    """Average of decoded stream reports: unbiased for the mean of the truncated values."""

    mean: float
    se: float
    n: int
    truncation: Truncation


def estimate_tail(
    surveys: Sequence[CodeCounts],
    streams: Sequence[CodeCounts] = (),
    *,
    rng: np.random.Generator,
) -> Tail:
    """Return the tail of a stream from all its surveys, anchored to all its stream reports.

    Surveys of different ranges tell of one density: they are estimated jointly, by the posterior
    that θ is chosen by. Make it once for all strata: it costs some 0.5 s. `rng` draws sampling
    noise. Raises NoReportsError without surveys, CountsError.
    """
    found = posterior_of([Evidence(part.mechanism, part.counts) for part in surveys], rng=rng)
    x = found.mean
    centres = (found.edges[:-1] + found.edges[1:] - 1) / 2
    tail = Tail(centres, x, found.samples.T, reference=x)
    if not any(_total(part) for part in streams):
        return tail
    pooled = average(streams)
    return tail.anchored(pooled.truncation, pooled.mean, pooled.n)


def posterior_of(evidence: Sequence[Evidence], *, rng: np.random.Generator) -> Posterior:
    """Return the posterior of the density given reports of any mechanisms, on fine enough cells.

    Raises NoReportsError, CountsError.
    """
    if not evidence:
        raise NoReportsError
    low = min(part.mechanism.low for part in evidence)
    found = infer(evidence, cells(low, max(part.mechanism.high for part in evidence)), rng=rng)
    while len(edges := found.finer()) > len(found.coarse):
        found = infer(evidence, edges, rng=rng)
    return found


def estimate_mean(
    streams: Sequence[CodeCounts], tail: Tail | None = None, *, level: float = 0.95
) -> MeanEstimate:
    """Return the mean of the values of a stratum (or of the whole run) from its stream reports.

    `streams`: counts per plan epoch; epochs of different θ are combined by their counts. `tail`:
    of the whole stream (`estimate_tail`); without it the result is not corrected. The lower end
    never lies below the truncated mean's own, as a bias cannot be negative; the upper end counts
    from the bias before shrinking. Coverage measured: `benchmarks/README.md`. Cost: about 2 ms.
    Raises NoReportsError, CountsError, ArgumentError.
    """
    if not 0 < level < 1:
        raise ArgumentError("level", "a probability between 0 and 1")
    z = NormalDist().inv_cdf((1 + level) / 2)
    part = average(streams)
    noise = z * part.se
    if tail is None:
        ends = part.mean - noise, part.mean + noise
        return MeanEstimate(
            part.mean, *ends, part.n, part.se, 0.0, 0.0, corrected=False, level=level
        )
    fix = tail.correction(part.truncation, part.mean, part.se, part.n)
    half = z * float(np.hypot(part.se * (1 + fix.slope), fix.se))
    return MeanEstimate(
        mean=part.mean + fix.bias,
        low=max(part.mean + fix.bias - half, part.mean - noise),
        high=part.mean + fix.most + half,
        n=part.n,
        noise_se=part.se,
        bias=fix.bias,
        bias_se=fix.se,
        corrected=True,
        level=level,
    )


def average(streams: Sequence[CodeCounts]) -> Average:
    """Return the average of all decoded reports and its standard error, from counts alone.

    Variance: empirical within each mechanism, with one more observation of the largest variance
    possible, so that a handful of equal reports does not look certain. Raises NoReportsError.
    """
    counted = [(part.mechanism, _checked(part)) for part in streams if _total(part)]
    if not counted:
        raise NoReportsError
    n = sum(int(counts.sum()) for _, counts in counted)
    mean = variance = 0.0
    for mechanism, counts in counted:
        table, largest = _decoding(mechanism)
        reports = float(counts.sum())
        centre = float(counts @ table) / reports
        spread = (float(counts @ (table - centre) ** 2) + largest) / reports
        mean += reports / n * centre
        variance += reports / n**2 * spread
    shares = tuple(float(counts.sum()) / n for _, counts in counted)
    truncation = Truncation(tuple(m.high for m, _ in counted), shares)
    return Average(mean, variance**0.5, n, truncation)


def _checked(part: CodeCounts) -> NDArray[np.float64]:
    return checked_counts(operator_of(part.mechanism), part.counts)


def _total(part: CodeCounts) -> bool:
    """Say whether there is anything to count or to refuse; an epoch without reports is skipped."""
    return bool(np.any(np.asarray(part.counts)))


@lru_cache(maxsize=256)
def _decoding(mechanism: Mechanism) -> tuple[NDArray[np.float64], float]:
    """Return what each code decodes to, and the largest variance of a decoded report, unit²."""
    span = mechanism.high - mechanism.low
    return decode_table(mechanism), mechanism.worst_variance + span * span / 4
