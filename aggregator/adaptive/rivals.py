"""What no rule can do: laws that reports hardly tell apart, and that no one θ suits.

Take M laws of which no θ is good for two: good is a cost of at most `factor` times the least. Who
looks at reports and then chooses θ guesses which law it was, so over the M laws good choices have
at most the share (1/M)·∫max of the reports' laws, which is at most (1 + Σ TV to one of them)/M,
whichever that is. The first law is the one asked about; a rival has a share of its mass elsewhere:
heaped up in one cell, spread evenly up to some value (a law that falls still falls then), or none
of it above some value.

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
from scipy.special import ndtr

from aggregator.adaptive.design import STARTS
from aggregator.adaptive.likelihood import rows_of
from aggregator.adaptive.regret import costs_on
from aggregator.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from aggregator.adaptive.decide import Setting
    from aggregator.adaptive.regret import Aim, Costs
    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Ints = NDArray[np.int64]

SHARES = np.geomspace(1e-6, 1, 150)  # of the mass that a rival has elsewhere
MOST = 6  # laws
TOPS = 24  # of ranges looked through
_LEAST = 8  # units: the lowest top of a range
_EVERY_CODE = 1 << 20
_HEAVY = 0.5  # a cell with more is no other place


class Law(NamedTuple):
    """A law over the cells, and how it differs from the first: `share` of it is `kind` `at`."""

    masses: Floats
    kind: str
    at: int
    share: float


class Unmet(NamedTuple):
    """Over `laws` taken equally often, no rule chooses badly less often than this.

    `sure`, `likely`: least share of bad choices, 0..1; see the module. Above 1/2, the median misses
    for one of the laws at least, whatever the rule.
    """

    sure: float
    likely: float
    laws: tuple[Law, ...]


class Ground(NamedTuple):
    """A law, what surveys tell of it, and where a share of its mass may lie instead."""

    costs: Costs
    rows: list[Floats]
    others: list[Law]
    there: Floats  # their masses, cells × others
    told: Floats  # the most that a report tells of a share there, in standard deviations

    @classmethod
    def of(cls, masses: Floats, edges: Ints, aim: Aim, surveys: Sequence[Mechanism]) -> Self:
        """Return the ground of a law with these masses; `surveys`: what may be asked, any of them.

        Cost: half a second for a hundred surveys. Raises ArgumentError for none.
        """
        if not surveys:
            raise ArgumentError("surveys", "at least one")
        rows = [rows_of(survey, edges, _EVERY_CODE).matrix for survey in surveys]
        others = list(_elsewhere(masses, edges))
        there = np.stack([other.masses for other in others], axis=1)
        told = np.sqrt(np.max([_distance(each, masses, there) for each in rows], axis=0))
        itself = Law(masses, "itself", 0, 0.0)
        return cls(costs_on(edges, aim), rows, [itself, *others], there, told)


def unmet(ground: Ground, reports: float, factor: float) -> Unmet:
    """Return the largest `sure` of a law and its nearest rivals, after so many reports in all.

    Cost: a third of a second. Raises ArgumentError for a factor of at most 1.
    """
    if not factor > 1:
        raise ArgumentError("factor", "above 1")
    laws = [ground.others[0], *islice(_rivals(ground, factor), MOST - 1)]
    least = _affinity(ground.rows, np.stack([law.masses for law in laws], axis=1))
    logs = reports * np.log(least)
    apart = np.array([[told_apart(log) for log in row] for row in logs.tolist()])
    best = Unmet(0.0, 0.0, ())
    for size in range(2, len(laws) + 1):
        away = apart[:size, :size].sum(axis=1).min(axis=0)  # the middle one is nearest to all
        sure, likely = (1 - (1 + away) / size).tolist()
        if sure > best.sure:
            best = Unmet(sure, likely, tuple(laws[:size]))
    return best


def _affinity(rows: list[Floats], laws: Floats) -> Floats:
    """Return the least affinity of one report, of all surveys, under each two laws."""
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


def _rivals(ground: Ground, factor: float) -> Iterator[Law]:
    """Yield laws that share no good θ with an earlier one, the hardest to tell first."""
    itself, *others = ground.others
    good = _good(ground.costs, itself.masses, ground.there, factor)
    taken = good[:, 0, 0]  # with a share of 1e-6: the law itself
    while True:
        near = taken | np.append(taken[1:], False) | np.append(False, taken[:-1])
        apart = ~good[near].any(axis=0)
        first = apart.argmax(axis=1)
        share = np.where(apart.any(axis=1), SHARES[first], np.inf)
        at = int((share * ground.told).argmin())
        if not np.isfinite(share[at]):
            return
        mixed = (1 - share[at]) * itself.masses + share[at] * others[at].masses
        yield others[at]._replace(masses=mixed, share=float(share[at]))
        taken = taken | good[:, at, first[at]]


def _elsewhere(masses: Floats, edges: Ints) -> Iterator[Law]:
    """Yield where a share of the mass may lie in a rival: the laws that it is mixed with."""
    width, cells = np.diff(edges), np.arange(len(masses))
    for cell in cells.tolist():
        if masses[cell] < _HEAVY:
            yield Law((cells == cell).astype(float), "heap", int(edges[cell]), 0.0)
    for cell in cells[1:].tolist():
        upto = cells <= cell
        for kind, parts in (("even", width * upto), ("cut", masses * upto)):
            if parts.sum() > 0 and (parts != masses).any():
                yield Law(parts / parts.sum(), kind, int(edges[cell + 1]), 0.0)


def _distance(rows: Floats, masses: Floats, there: Floats) -> Floats:
    """Return the chi-squared distance of a report under each column, from that under `masses`."""
    law = rows @ masses
    seen = law > 0
    away = rows[seen] @ there - law[seen, None]
    distance: Floats = (away * away / law[seen, None]).sum(axis=0)
    return distance


def _good(costs: Costs, masses: Floats, there: Floats, factor: float) -> Flags:
    """Return which θ are good for which mixtures: thetas × columns × shares."""
    noise, bias = costs.scatter(masses)[:, None], (costs.cut @ masses)[:, None]
    other_noise, other_bias = costs.scatter(there), costs.cut @ there
    good = np.empty((*other_noise.shape, len(SHARES)), np.bool_)
    for k, share in enumerate(SHARES.tolist()):
        cost = (1 - share) * noise + share * other_noise
        cost += costs.weights[1] * ((1 - share) * bias + share * other_bias) ** 2
        good[..., k] = cost <= factor * cost.min(axis=0)
    return good
