"""What half-width an interval will have, before anything is asked: the objective of θ and shares.

The terms are those of `edge_ldp.sums.means`, with expectations in the place of counts: the noise
of a stratum's truncated mean, the pooled tail's, and what allotting it adds. Mechanisms and
numbers of reports decide nearly all of it; of the density only the spread of values enters, and how
much strata's tails may differ, for which a quarter of the tail itself is taken (measured by hour of
day on homes: 0.20 to 0.24 for θ from 4 to 20 kW). So no phantom in an estimated density moves it
far. Source: docs/sums.md.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.device.errors import ParameterError
from edge_ldp.sums.functionals import design_of, excess
from edge_ldp.sums.strata import expected_variance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edge_ldp.mechanisms import Mechanism

    Floats = NDArray[np.float64]

DIFFER = 0.25  # of a tail: how much it is expected to differ between strata, about their line


class Question(NamedTuple):
    """What an operator asks: `reports` in all, of `strata` equal parts (1: the whole)."""

    reports: float
    strata: int = 1


class Width(NamedTuple):
    """The half-width of a 95 % interval, in the unit, and the variances that it is made of."""

    half: float
    noise: float
    tail: float
    allotting: float


def half_width(  # noqa: PLR0913 (the arguments of one formula)
    question: Question,
    *,
    unit_variance: float,
    span: float,
    share: float,
    tail_sd: float,
    tail: float = 0.0,
    variance: float = 0.0,
    level: float = 0.95,
) -> Width:
    """Return the expected half-width of one stratum's mean.

    `unit_variance`: of the stream mechanism on [−1, 1]; `span` = θ − low; `share` of the reports
    are surveys; `tail_sd`: standard deviation of one survey's weight of the tail above θ; `tail`:
    the mean excess, `variance`: of the truncated values (unit², both only guessed). Raises
    ParameterError.
    """
    if not 0 < share < 1 or question.reports <= 0 or question.strata < 1:
        raise ParameterError("share, reports, strata", "0 < share < 1, reports > 0, strata >= 1")
    each = question.reports / question.strata
    noise = (unit_variance * (span / 2) ** 2 + variance) / (each * (1 - share))
    pooled = tail_sd**2 / (question.reports * share)
    own = tail_sd**2 / (each * share)
    allotting = 0.0
    if question.strata > 1:
        differ = (DIFFER * tail) ** 2 / own if own > 0 else 0.0
        allotting = own * expected_variance(question.strata, differ)
        pooled = pooled if allotting < own else 0.0
    z = NormalDist().inv_cdf((1 + level) / 2)
    return Width(z * (noise + pooled + allotting) ** 0.5, noise, pooled, allotting)


def tail_sds(survey: Mechanism, thetas: Sequence[int], masses: Floats | None = None) -> Floats:
    """Return the standard deviation of one survey's weight of the tail above each θ, unit.

    `masses`: of the survey's cells; even unless given, which differs by 1 to 3 % at ε = 1. Cost:
    O(codes · cells) a θ; the last 64 without masses are kept.
    """
    if masses is None:
        return np.array(_even_sds(survey, tuple(thetas)))
    return _sds(survey, thetas, masses)


@lru_cache(maxsize=64)
def _even_sds(survey: Mechanism, thetas: tuple[int, ...]) -> tuple[float, ...]:
    cells = len(design_of([survey]).edges) - 1
    return tuple(_sds(survey, thetas, np.full(cells, 1 / cells)).tolist())


def _sds(survey: Mechanism, thetas: Sequence[int], masses: Floats) -> Floats:
    design = design_of([survey])
    h = np.stack([excess(design.edges, theta) for theta in thetas], axis=1)
    (weights,) = design.weights(h)
    law = design.laws[0] @ masses
    found: Floats = np.sqrt(np.maximum(law @ weights**2 - (masses @ h) ** 2, 0))
    return found
