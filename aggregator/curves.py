"""The distribution of a stream's values for operators: density, quantiles, and how sure they are.

From surveys of one mechanism: accelerated EMS to look at, bootstrap bands to trust. Surveys of
several ranges (adaptive θ narrows them) have no bootstrap of one mechanism; they are estimated
jointly, with the stream reports, by the posterior that θ is chosen by, and its draws give the
bands. Source: DESIGN §6.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from aggregator.errors import NoReportsError
from aggregator.estimate import ems
from aggregator.estimate.bands import Band, Bands, bands
from aggregator.estimate.joint import Evidence, cells, joint
from aggregator.screen import is_survey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from aggregator.estimate import Density
    from edge_ldp import Mechanism

    Ints = NDArray[np.int64]

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
RESAMPLES = 100  # half of what bands take: a query should answer at once
FEW = 1000  # reports: fewer say little of a density
FEW_REPORTS = "fewer than 1,000 survey reports: the shape is mostly the estimator's"


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """A density, and 95 % bands around its cells and around what was asked of it.

    Each interval holds with 95 %, not all of them at once. `method`: how, in words. `quantiles`: of
    the shares asked for; `ranges`: the share of values v with lo ≤ v < hi for each (lo, hi).
    """

    density: Density
    cells: Band
    quantiles: Band
    method: str
    asked: Asked
    ranges: tuple[Band, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a density: quantiles of `shares`, above 0 and below 1, and ranges."""

    shares: tuple[float, ...] = SHARES
    ranges: tuple[tuple[float, float], ...] = ()


def curve_of(
    counts: Mapping[Mechanism, Ints],
    *,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    asked: Asked | None = None,
) -> Curve:
    """Return the curve of counts by mechanism, of which some are of surveys.

    `rng` draws sampling noise, never privacy noise. Cost: about a second. Raises NoReportsError,
    CountsError.
    """
    surveys = {mechanism: n for mechanism, n in counts.items() if is_survey(mechanism)}
    if not surveys:
        raise NoReportsError
    if len(surveys) == 1:
        ((mechanism, n),) = surveys.items()
        shown = ems(mechanism, n, accelerate=True, early=True)
        spread = bands(mechanism, n, rng=rng, resamples=resamples)
        method = "EMS of the surveys, bootstrap bands"
    else:
        shown, spread = _jointly(counts)
        method = f"posterior of {len(surveys)} kinds of surveys and of the sums' reports"
    if sum(int(n.sum()) for n in surveys.values()) < FEW:
        shown = replace(shown, warnings=(*shown.warnings, FEW_REPORTS))
    asked = asked or Asked()
    return Curve(
        density=shown,
        cells=_around(spread.density(), shown),
        quantiles=spread.quantiles(asked.shares),
        method=method,
        asked=asked,
        ranges=tuple(spread.range(lo, hi) for lo, hi in asked.ranges),
    )


def _jointly(counts: Mapping[Mechanism, Ints]) -> tuple[Density, Bands]:
    low, high = min(m.low for m in counts), max(m.high for m in counts)
    shown = joint([Evidence(*part) for part in counts.items()], cells(low, high))
    return shown, Bands(shown, (shown, shown))


def _around(band: Band, shown: Density) -> Band:
    """Return the band about what is shown: bands are made around a less smoothed estimate."""
    x = shown.probabilities
    return Band(np.minimum(band.low, x), x, np.maximum(band.high, x))
