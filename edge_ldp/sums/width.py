"""What half-width one interval will have, before anything is asked: the objective of θ and shares.

The terms are those of `edge_ldp.sums.means`, with expectations in the place of counts: the noise
of a stratum's truncated mean, what allotting the pooled tail adds, and the printed interval's lower
end, which is never below the truncated mean's own. Mechanisms and numbers of reports decide nearly
all of it; of the density the spread of values enters, the tail, and how much strata's tails may
differ. All three are guesses: no phantom in an estimated density moves the width far.
Source: docs/sums.md; held against simulation in docs/forecast.md.
"""

from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from edge_ldp.arrays import Floats
from edge_ldp.checks import MECHANISM, a, finite, floats, inner_chance, ints, optional, row, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms import Mechanism
from edge_ldp.sums.functionals import design_of, excess
from edge_ldp.sums.strata import FITTED, expected_cases

DIFFER = (
    0.25  # of a tail: how much strata may differ about their line (hours of homes: 0.2 to 0.24)
)
_NORMAL = NormalDist()
_AMOUNT = finite(0, 1e100)


class Question(NamedTuple):
    """What an operator asks: `reports` in all, of `strata` equal parts (1: the whole)."""

    reports: float
    strata: int = 1


class Width(NamedTuple):
    """The half-width of a 95 % interval, in the unit, and the variances that it is made of."""

    half: float
    noise: float
    tail: float


@taking(
    question=a("edge_ldp.sums.width.Question"),
    unit_variance=_AMOUNT,
    span=_AMOUNT,
    share=inner_chance,
    tail_sd=_AMOUNT,
    reach=_AMOUNT,
    tail=_AMOUNT,
    variance=_AMOUNT,
    slope=finite(-1e100, 1e100),
    differ=_AMOUNT,
    level=inner_chance,
)
def half_width(  # noqa: PLR0913 (the arguments of one formula)
    question: Question,
    *,
    unit_variance: float,
    span: float,
    share: float,
    tail_sd: float,
    reach: float = 0.0,
    tail: float = 0.0,
    variance: float = 0.0,
    slope: float = 0.0,
    differ: float = DIFFER,
    level: float = 0.95,
) -> Width:
    """Return the expected half-width of one stratum's mean.

    `unit_variance`: of the stream mechanism on [−1, 1]; `span` = θ − low; `share` of the reports
    are surveys; `tail_sd`: standard deviation of one survey's weight of the tail above θ; `reach` =
    ceiling − θ: with few reports what is printed is mostly the one of largest variance that is
    counted beside them. Guessed: `tail`, the mean excess; `variance` of the truncated values,
    unit²; `slope`: how far strata's tails move with their truncated means, and `differ`: how far
    else, as a share of the tail. Raises ParameterError.
    """
    if not 0 < share < 1 or question.reports <= 0 or question.strata < 1:
        raise ParameterError("share, reports, strata", "0 < share < 1, reports > 0, strata >= 1")
    each = question.reports / question.strata
    streams, surveys = each * (1 - share), each * share
    noise = (unit_variance * (span / 2) ** 2 + variance) / streams
    told = noise + (unit_variance + 1) * (span / 2) ** 2 / streams**2
    varies = tail_sd**2 / surveys  # a stratum's own tail
    own = varies + (tail_sd**2 + (reach / 2) ** 2) / surveys**2
    spread = (differ * tail) ** 2 if question.strata > 1 else 0.0
    tails, leanings = expected_cases(question.strata, (varies + spread) / own - 1 if own else 0.0)
    line = FITTED / question.strata
    # the slope is found from noise as well: a mean carries its own into the tail that it predicts
    steep = (own + spread) / max(1, question.strata - FITTED)
    z = _NORMAL.inv_cdf((1 + level) / 2)
    half = variances = 0.0
    # how far a stratum leans on its own tail is itself found from noise: the mean over its cases,
    # as the root of a mean is larger than the mean of roots
    for put, lean in zip(tails.tolist(), leanings.tolist(), strict=True):
        printed = own * put
        actual = varies * (lean**2 + (1 - lean**2) * line) + spread
        carried = told * (1 + (1 - lean) * slope) ** 2 + (1 - lean) ** 2 * steep
        half += _printed(told, carried + printed, z, (tail, actual))
        variances += printed
    return Width(half / len(leanings), noise, variances / len(leanings))


def _printed(noise: float, variance: float, z: float, tail: tuple[float, float]) -> float:
    """Return the expected half-width where no interval starts below the truncated mean's own.

    That is z·√variance unless the tail's estimate, normal with mean and variance `tail`, is small.
    """
    mean, sd = tail[0], max(tail[1], np.finfo(float).tiny) ** 0.5
    extra = z * (variance**0.5 - noise**0.5)
    between = sd * (_above((mean + extra) / sd) - _above((mean - extra) / sd))
    half: float = z * noise**0.5 + between / 2
    return half


def _above(x: float) -> float:
    """Return E max(0, x + Z) for a standard normal Z."""
    return x * _NORMAL.cdf(x) + _NORMAL.pdf(x)


@taking(survey=MECHANISM, thetas=row(ints), masses=optional(floats))
def tail_sds(survey: Mechanism, thetas: Sequence[int], masses: Floats | None = None) -> Floats:
    """Return the standard deviation of one survey's weight of the tail above each θ, unit.

    `masses`: of the survey's cells; even unless given, which differs by 1 to 3 % at ε = 1, and
    far more from ε = 4 on. Cost: O(codes · cells) a θ; the last 64 without masses are kept.
    """
    if not len(thetas):
        raise ParameterError("thetas", "one or more")
    if masses is None:
        return np.array(_even_sds(survey, tuple(thetas)))
    return _sds(survey, thetas, masses)


@lru_cache(maxsize=64)
def _even_sds(survey: Mechanism, thetas: tuple[int, ...]) -> tuple[float, ...]:
    cells = len(design_of(survey).edges) - 1
    return tuple(_sds(survey, thetas, np.full(cells, 1 / cells)).tolist())


def _sds(survey: Mechanism, thetas: Sequence[int], masses: Floats) -> Floats:
    design = design_of(survey)
    h = np.stack([excess(design.edges, theta) for theta in thetas], axis=1)
    if masses.shape != (len(design.edges) - 1,):
        raise ParameterError("masses", f"{len(design.edges) - 1} of them, one a cell")
    weights = design.weights(h)
    law = design.law @ masses
    found: Floats = np.sqrt(np.maximum(law @ weights**2 - (masses @ h) ** 2, 0))
    return found
