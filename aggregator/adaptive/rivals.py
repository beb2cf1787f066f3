"""What no rule can do: laws that reports hardly tell apart, and that no one θ suits.

Take M laws of which no θ is good for two: good is a cost of at most `factor` times the least. Who
looks at reports and then chooses θ guesses which law it was, so over the M laws good choices have
at most the share (1/M)·∫max of the reports' laws. On any tree that spans the laws, the largest of
them is at most its root and what each law on the way adds to the one before: so the share is at
most (1 + Σ TV along the tree's edges)/M, and least on the shortest tree. The first law is the one
asked about; a rival is the law nearest to it, or to the last rival on that side, for which larger
(or smaller) θ are good only: `nearest`.

Reports: any number of epochs, each with a survey over any of the ranges given, chosen by all that
came before. Affinities multiply: whatever was seen, the next report's is at least the least of all
ranges, so after n reports it is at least ρⁿ, and TV ≤ √(1 − ρ²ⁿ). `sure` counts with that: a proof
for every rule, for laws that are even within the cells. `likely` takes the log-likelihood ratio as
normal (TV = 2Φ(d/2) − 1, d² = −8n·ln ρ): what the best test of two laws reaches with many reports.
Sources: Le Cam's and Fano's method in total variation [recalled]; derived here; measured:
docs/adaptive-theta.md.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import ndtr

from aggregator.adaptive.design import STARTS
from aggregator.adaptive.likelihood import rows_of
from aggregator.adaptive.nearest import LESS, MORE, REACHES, Nearest, Rival
from aggregator.adaptive.regret import costs_on
from aggregator.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from aggregator.adaptive.decide import Setting
    from aggregator.adaptive.regret import Aim, Costs
    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MOST = 8  # laws
HALF, ONE_IN_20 = 0.5, 0.05  # of the runs
FACTORS = tuple(np.exp(np.geomspace(0.01, np.log(1000), 40)).tolist())  # ln: a sixth apart
_GIVEN_UP = 2.5  # above the largest that is exceeded in one of 20 runs, nothing more is looked for
_STEPS = 3  # of halving between two factors
TOPS = 24  # of ranges looked through
_LEAST = 8  # units: the lowest top of a range
_EVERY_CODE = 1 << 20


class Law(NamedTuple):
    """A law over the cells, and how it differs from the first.

    `kind`: more or less of its mass is high; `at`: all θ up to this, or from this on, are bad for
    it; `share`: of the mass that lies elsewhere than in the first.
    """

    masses: Floats
    kind: str
    at: int
    share: float

    @classmethod
    def beside(cls, itself: Floats, rival: Rival, side: str) -> Self:
        """Return a rival of the law with these masses, on this side of it."""
        return cls(rival.masses, side, rival.at, float(np.abs(rival.masses - itself).sum()) / 2)


class Unmet(NamedTuple):
    """Over `laws` taken equally often, no rule chooses badly less often than `sure`.

    `sure`, `likely`: least share of bad choices, 0..1; see the module. Above 1/2, the median misses
    for one of the laws at least, whatever the rule. `likely` may be of fewer or more laws.
    """

    sure: float
    likely: float
    laws: tuple[Law, ...]


class Limits(NamedTuple):
    """The factors that no rule keeps below in half of its runs, and in one of 20; 1: none found.

    `about`: `half` by what the best test tells, in the place of the most that it could.
    """

    half: float
    one_in_20: float
    about: float


class Ground(NamedTuple):
    """A law, what θ costs, and what each survey tells of a law."""

    costs: Costs
    rows: list[Floats]
    masses: Floats

    @classmethod
    def of(cls, masses: Floats, edges: Ints, aim: Aim, surveys: Sequence[Mechanism]) -> Self:
        """Return the ground of a law with these masses; `surveys`: what may be asked, any of them.

        Cost: half a second for a hundred surveys. Raises ArgumentError for none.
        """
        if not surveys:
            raise ArgumentError("surveys", "at least one")
        rows = [rows_of(survey, edges, _EVERY_CODE).matrix for survey in surveys]
        return cls(costs_on(edges, aim), rows, masses)


def unmet(ground: Ground, reports: float, factor: float) -> Unmet:
    """Return the largest `sure` of a law and its nearest rivals, after so many reports in all.

    Cost: about a second. Raises ArgumentError for a factor of at most 1.
    """
    if not factor > 1:
        raise ArgumentError("factor", "above 1")
    found = [_over(ground, reports, laws) for laws in _families(ground, factor)]
    likely = max(each.likely for each in found)
    return max(found, key=lambda each: each.sure)._replace(likely=likely)


def limits_of(ground: Ground, reports: float, factors: Sequence[float] = FACTORS) -> Limits:
    """Return the largest of the factors looked at that no rule keeps below.

    Any factor looked at is a proof, so the last two between which a share falls are looked between.
    Cost: some 40 times `unmet`. Raises ArgumentError for a factor of at most 1.
    """
    looked: dict[float, Unmet] = {}

    def largest(level: float, share: str) -> float:
        return max((f for f, u in looked.items() if getattr(u, share) >= level), default=1.0)

    for factor in factors:
        looked[factor] = unmet(ground, reports, factor)
        if largest(ONE_IN_20, "sure") < factor / _GIVEN_UP:
            break
    limits = (HALF, "sure"), (ONE_IN_20, "sure"), (HALF, "likely")
    for level, share in limits:
        for _ in range(_STEPS):
            last = largest(level, share)
            between = (last * min((f for f in looked if f > last), default=last)) ** 0.5
            looked[between] = unmet(ground, reports, between)
    return Limits(*(largest(level, share) for level, share in limits))


def _over(ground: Ground, reports: float, laws: Sequence[Law]) -> Unmet:
    """Return what no rule can do over as many of the first laws as make the most of it."""
    least = affinity(ground.rows, np.stack([law.masses for law in laws], axis=1))
    logs = reports * np.log(least)
    apart = np.array([[told_apart(log) for log in row] for row in logs.tolist()])
    best, likely = Unmet(0.0, 0.0, ()), 0.0
    for size in range(2, len(laws) + 1):
        sure, about = (1 - (1 + shortest(apart[:size, :size, k])) / size for k in (0, 1))
        likely = max(likely, about)
        if sure > best.sure:
            best = Unmet(sure, 0.0, tuple(laws[:size]))
    return best._replace(likely=likely)


def shortest(apart: Floats) -> float:
    """Return the length of the shortest tree that spans all, from their distances."""
    # scipy takes a distance of 0 for no edge
    return float(minimum_spanning_tree(1 + apart).sum()) - (len(apart) - 1)


def affinity(rows: list[Floats], laws: Floats) -> Floats:
    """Return the least affinity of one report, of all surveys (`rows`), under each two columns."""
    least = np.ones((laws.shape[1], laws.shape[1]))
    for each in rows:
        root = np.sqrt(each @ laws)
        least = np.minimum(least, root.T @ root)
    return least


def told_apart(log_affinity: float) -> tuple[float, float]:
    """Return total variation between two laws: the most it can be, and about what it is."""
    log = min(0.0, log_affinity)
    return float(np.sqrt(-np.expm1(2 * log))), 2 * float(ndtr(np.sqrt(-2 * log))) - 1


def every_survey(setting: Setting) -> tuple[Mechanism, ...]:
    """Return surveys over ranges up to TOPS tops, each from several starts, as the design's."""
    span = setting.ceiling - setting.low
    tops = np.unique(np.geomspace(min(_LEAST, span), span, TOPS).astype(int)).tolist()
    pairs = [(top // part if part else 0, top) for top in tops for part in STARTS]
    return tuple(
        setting.survey(setting.low + start, setting.low + top)
        for start, top in dict.fromkeys(pairs)
    )


def _families(ground: Ground, factor: float) -> Iterator[list[Law]]:
    """Yield laws that share no good θ, for each reach of a rival's θ."""
    around = Nearest(ground.costs, ground.rows, ground.masses)
    for reach in REACHES:
        yield list(islice(_laws(ground, around, factor, reach), MOST))


def _laws(ground: Ground, around: Nearest, factor: float, reach: float) -> Iterator[Law]:
    """Yield the law itself and others that share no good θ with an earlier one, the nearest first.

    On either side each is nearest to the last on that side.
    """
    costs, itself = ground.costs, ground.masses
    yield Law(itself, "itself", 0, 0.0)
    taken = costs.good(itself, factor)
    last, rivals = {MORE: around, LESS: around}, dict[str, Rival]()
    while True:
        for side in (side for side in last if side not in rivals):
            rivals[side] = last[side].rival(taken, factor, side, reach)
        side = min(rivals, key=lambda side: rivals[side].told)
        rival = rivals.pop(side)
        if not np.isfinite(rival.told):
            return
        good = costs.good(rival.masses, factor)
        if (good & taken).any():
            continue  # found before the other side's last was taken
        yield Law.beside(itself, rival, side)
        taken = taken | good
        last[side] = Nearest(ground.costs, ground.rows, rival.masses)
