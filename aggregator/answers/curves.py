"""The distribution of a stream's values for operators: density, quantiles, how sure they are.

What is shown is the likeliest density, smoothed as far as held-out reports ask for
(`estimate.auto`): not at all where values heap, much where they are even. It is that of the
surveys, or, where there are several kinds of these, of all kinds and the stream reports together:
the better guess, and no promise. The bands are the promise: they come from the surveys' unbiased
shares (`edge_ldp.sums.shares`) and assume nothing about the density. So they do not lean on what
is shown; they are only widened to hold it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import floor, log10
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from aggregator.answers.parts import AnswerPart, InUnit, Reports, Share
from aggregator.counting.classes import effective
from edge_ldp import Mechanism
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate import Density, auto
from edge_ldp.estimate.joint import Evidence, jointly
from edge_ldp.protocol.plan import is_survey
from edge_ldp.sums import Band, CodeCounts, quantile_band, range_band, surveys_of

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
CELLS = 1024  # of a density from several kinds of surveys, at most
BANDS = "bands of unbiased shares"
FEW = 1000  # reports: fewer say little of a density
FEW_REPORTS = "fewer than 1,000 survey reports: the shape is mostly the estimator's"


@dataclass(frozen=True, slots=True)
class CurveQuestion:
    """What is asked of a density: quantiles of `shares`, above 0 and below 1, and ranges.

    After these so many ranges as `bins`, which follow each other and hold about the same share.
    """

    shares: tuple[float, ...] = SHARES
    ranges: tuple[tuple[float, float], ...] = ()
    bins: int = 0


class ShownDensity(AnswerPart, frozen=True, kw_only=True):
    """A density and its bands.

    edges (bucket k holds edges[k] ≤ v < edges[k+1]), probabilities, low, high (95 % each), n
    reports, iterations, method in words, warnings[].
    """

    edges: list[InUnit]
    probabilities: list[Share]
    low: list[Share]
    high: list[Share]
    n: Reports
    iterations: int
    method: str
    warnings: list[str]


class QuantileRow(AnswerPart, frozen=True, kw_only=True):
    """A quantile: share of the values that lie below value; low, high (95 %)."""

    share: Share
    value: InUnit
    low: InUnit
    high: InUnit


class RangeRow(AnswerPart, frozen=True, kw_only=True):
    """A range: share of the values v with low ≤ v < high, as asked for; share_low, share_high."""

    low: InUnit
    high: InUnit
    share: Share
    share_low: Share
    share_high: Share


class Curve(NamedTuple):
    """A density and what was asked of it, with 95 % bands around all of these.

    Each interval holds with at least 95 % whatever the density is, not all of them at once. A
    single cell's is wide: noise cannot tell it from its neighbours.
    """

    density: ShownDensity | None = None
    quantiles: Sequence[QuantileRow] = ()
    ranges: Sequence[RangeRow] = ()


def curve_of(
    counts: Mapping[Mechanism, Sequence[Any]],
    *,
    rng: "np.random.Generator",
    asked: CurveQuestion | None = None,
) -> Curve:
    """Return the curve of counts by mechanism (`merge_epochs`), of which some are of surveys.

    `rng` halves the reports to choose a smoothing, and is never privacy noise. Cost: 0.1 s for the
    bands, 0.2 s for the density, twice that where it is far from smooth. Raises NoReportsError,
    CountsError.
    """
    parts = _surveys(counts)
    asked = asked or CurveQuestion()
    try:
        surveys = surveys_of(parts)
    except ParameterError as exc:  # they are a store's, not a caller's: damage
        raise CountsError(f"not {exc.expected}") from exc
    found, method = _likeliest(counts, parts, rng)
    is_few = sum(float(np.sum(part.counts)) for part in parts) < FEW
    edges, quantiles = found.edges, [found.quantile(share) for share in asked.shares]
    cells = _around(found.probabilities, range_band(surveys, edges[:-1], edges[1:]))
    probabilities, low, high = map(list, zip(*cells, strict=True))
    of_quantiles = _around(quantiles, quantile_band(surveys, asked.shares))
    return Curve(
        ShownDensity.of(
            found,
            edges=edges.tolist(),
            probabilities=probabilities,
            low=low,
            high=high,
            method=method,
            warnings=[*found.warnings, *[FEW_REPORTS] * is_few],
        ),
        [
            QuantileRow(share=share, value=value, low=low, high=high)
            for share, (value, low, high) in zip(asked.shares, of_quantiles, strict=True)
        ],
        [
            RangeRow(low=lo, high=hi, share=share, share_low=low, share_high=high)
            for lo, hi in (*asked.ranges, *even_ranges(found, asked.bins))
            for share, low, high in _around([found.range(lo, hi)], range_band(surveys, lo, hi))
        ],
    )


def even_ranges(density: Density, count: int) -> list[tuple[float, float]]:
    """Return ranges of all values that hold about the same share each; ends between them are round.

    An end is the roundest number within an eighth of the way from its quantile to the next ones.
    """
    if not count:
        return []
    inner = [density.quantile(at / count) for at in range(1, count)]
    first, *_, last = density.edges.tolist()
    ends = [first]
    for before, at, after in zip([first, *inner], inner, [*inner[1:], last], strict=False):
        room = max(1.0, min(at - before, after - at) / 4)
        step = max(one for one in (1, 2, 5) if one * 10 ** floor(log10(room)) <= room)
        step *= 10 ** floor(log10(room))
        end = step * round(at / step)
        if ends[-1] < end < last:
            ends.append(end)
    return list(pairwise([*ends, last]))


def _likeliest(
    counts: Mapping[Mechanism, Sequence[Any]],
    surveys: Sequence[CodeCounts],
    rng: "np.random.Generator",
) -> tuple[Density, str]:
    """Return the density to show, and how it was found, in words."""
    if len(surveys) == 1:
        mechanism = surveys[0].mechanism
        chosen = auto(mechanism, effective(counts[mechanism]), rng=rng)
        return chosen.density, f"EMS of the surveys, strength {chosen.strength:g}; {BANDS}"
    low = min(part.mechanism.low for part in surveys)
    span = max(part.mechanism.high for part in surveys) + 1 - low
    cells = min(span, CELLS)
    edges = low + np.arange(cells + 1, dtype=np.int64) * span // cells
    evidence = [Evidence(mechanism, effective(powers)) for mechanism, powers in counts.items()]
    model, together = jointly(evidence, edges)
    chosen = auto(model, together, rng=rng)
    what = f"{len(surveys)} kinds of surveys and the stream reports"
    return chosen.density, f"EMS of {what}, strength {chosen.strength:g}; {BANDS}"


def _surveys(counts: Mapping[Mechanism, Sequence[Any]]) -> list[CodeCounts]:
    parts = [CodeCounts(m, *powers) for m, powers in counts.items() if is_survey(m)]
    parts = [part for part in parts if np.any(part.counts)]
    if not parts:
        raise NoReportsError
    return parts


def _around(shown: ArrayLike, ends: Band) -> list[list[float]]:
    """Return what is shown, an entry each, between the ends of a band widened to hold it."""
    at = np.asarray(shown, np.float64)
    columns = [at, np.minimum(ends.low, at), np.maximum(ends.high, at)]
    rows: list[list[float]] = np.array(columns).T.tolist()
    return rows
