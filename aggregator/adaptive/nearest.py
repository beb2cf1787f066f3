"""The law that reports tell least from a given one, among those that ask for another θ.

That all θ up to some value are bad for a law is a demand on two of its numbers, as the cost of θ is
convex in θ: the bias there is so large, and the bias at some larger θ, which then costs less, so
small. Both are linear in the masses. The law that meets such a demand and is told least by the most
telling survey is found by least squares with no mass below 0, the surveys weighed, and weighed
again towards the one that tells most; a few demands are tried. Whether the law does what was asked
is then looked up, so nothing said of it rests on the search: only how near it is.
Sources: the modulus of continuity of a linear functional, Donoho and Liu 1991 [recalled]; derived
here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cholesky
from scipy.optimize import nnls

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from aggregator.adaptive.regret import Costs

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Demand = tuple[int, Floats, Floats]  # the θ's index; rows @ masses = values, the last at most

MORE, LESS = "more", "less"  # of the mass is high
REACHES = (2.0, 40.0)  # the most that the θ that costs less may be over the last bad one
_BOLD = 4.0  # how much heavier the most telling survey gets
_SLACK = 1e-3  # of a demand: the check asks for more than the θ of its two numbers
_PATIENCE = 50  # steps of the least squares for each cell: 3 are common
_FIRM = 1e4  # weight of a demand in the least squares
_FAINT = 1e-13  # of the trace, on the diagonal: less is rounding


class Search(NamedTuple):
    """Which demands are tried, each list rising; `rounds`: of weighing the surveys for the best.

    `further`: θ that costs less, over the last bad one; `biased`: its bias at most, over that which
    costs as much as its noise; `nearer`: the first bad θ over one that costs less, and more.
    """

    further: tuple[float, ...]
    nearer: tuple[float, ...]
    biased: tuple[float, ...]
    rounds: int


QUICK = Search(
    further=(1.06, 1.15, 1.3, 1.6, 2, 4, 12, 40),
    nearer=(1.02, 1.06, 1.15, 1.3, 1.6),
    biased=(0.2, 0.6, 1.2),
    rounds=6,
)
FINE = Search(
    further=(1.03, 1.06, 1.1, 1.15, 1.22, 1.3, 1.45, 1.6, 1.8, 2, 2.5, 3, 4, 6, 8, 12, 20, 40),
    nearer=(1.01, 1.02, 1.04, 1.06, 1.1, 1.15, 1.2, 1.3, 1.45, 1.6, 2, 3),
    biased=(0.05, 0.2, 0.4, 0.6, 0.9, 1.2, 1.6),
    rounds=12,
)


class Rival(NamedTuple):
    """A law, the most that a report of one survey tells of it (its χ²), and where θ turns bad."""

    masses: Floats
    told: float
    at: int


class Nearest:
    """The laws about one, at the distances that surveys tell."""

    def __init__(
        self, costs: Costs, rows: list[Floats], masses: Floats, search: Search = QUICK
    ) -> None:
        """`rows`: likelihoods of the surveys, codes × cells. Cost: O(codes·cells²) for each."""
        self.costs, self.masses, self.search = costs, masses, search
        self._grams = np.stack([_gram(each, masses) for each in rows])
        self._weights = np.full(len(rows), 1 / len(rows))

    def rival(self, taken: Flags, factor: float, side: str, reach: float) -> Rival:
        """Return the nearest law found to which none of the `taken` θ, nor their neighbours, suit.

        `side`: the θ that suit it lie above them (MORE) or below; `reach`: one of REACHES: with
        less, fewer θ suit it, so that more laws find room. Its `told` is infinite if there is none.
        """
        near = taken | np.append(taken[1:], False) | np.append(False, taken[:-1])
        where, more = np.flatnonzero(taken), side == MORE
        asked = self._more(where, factor, reach) if more else self._less(where, factor)
        best, demand = Rival(self.masses, np.inf, 0), None

        def better(found: Rival) -> bool:
            suits = self.costs.good(found.masses, factor)
            return found.told < best.told and not suits[near].any()

        for each in asked:
            if better(found := self._meeting(each, 1)):
                best, demand = found, each
        if demand and better(found := self._meeting(demand, self.search.rounds)):
            best = found
        return best

    def _more(self, taken: NDArray[np.intp], factor: float, reach: float) -> Iterator[Demand]:
        """Yield demands that every θ up to the last taken one is bad."""
        thetas, (noise, weight) = self.costs.thetas, self._noise()
        at, before = min(int(taken[-1]) + 1, len(thetas) - 1), 0
        for further in (f for f in self.search.further if f <= reach):
            there = min(int(np.searchsorted(thetas, thetas[at] * further)), len(thetas) - 3)
            if there <= max(at, before):
                continue
            before = there
            for biased in self.search.biased:
                small = biased**2 * noise[there]
                large = factor * (1 + _SLACK) * (noise[there] + small) - noise[at]
                if large > 0:
                    values = np.sqrt(np.array([large, small]) / weight)
                    yield at, self.costs.cut[[at, there]], values

    def _less(self, taken: NDArray[np.intp], factor: float) -> Iterator[Demand]:
        """Yield demands that every θ from the first taken one on is bad."""
        thetas, (noise, weight) = self.costs.thetas, self._noise()
        at = int(taken[0]) - 1
        for nearer in self.search.nearer:
            there = int(np.searchsorted(thetas, thetas[at] / np.sqrt(factor) / nearer))
            small = noise[at] / factor * (1 - _SLACK) - noise[there]
            if at > there > 0 and small > 0:
                yield at, self.costs.cut[[there]], np.sqrt(np.array([small]) / weight)

    def _noise(self) -> tuple[Floats, float]:
        """Return the cost of each θ besides its bias, under the law itself; what bias² weighs."""
        return self.costs.scatter(self.masses), self.costs.weights[1]

    def _meeting(self, demand: Demand, rounds: int) -> Rival:
        """Return the nearest law that meets a demand."""
        at, rows, values = demand
        lengths, cells = np.linalg.norm(rows, axis=1), len(self.masses)
        whole = np.zeros((cells + 1 + len(rows), cells + 1))  # the last column: what it may lack
        whole[cells, :-1], whole[cells + 1 :, :-1] = _FIRM, _FIRM * rows / lengths[:, None]
        whole[-1, -1] = _FIRM
        asked = np.append(1, values / lengths) * _FIRM
        best = Rival(self.masses, np.inf, int(self.costs.thetas[at]))
        for _ in range(rounds):
            gram = np.tensordot(self._weights, self._grams, 1)
            gram[np.diag_indices_from(gram)] += np.trace(gram) * _FAINT
            whole[:cells, :-1] = cholesky(gram, check_finite=False)
            target = np.append(whole[:cells, :-1] @ self.masses, asked)
            found = nnls(whole, target, maxiter=_PATIENCE * cells)[0][:-1]
            found /= found.sum()
            away = found - self.masses
            told = (self._grams @ away) @ away
            if told.max() < best.told:
                best = best._replace(masses=found, told=float(told.max()))
            self._weights *= np.exp(_BOLD * told / told.max())
            self._weights /= self._weights.sum()
        return best


def _gram(rows: Floats, masses: Floats) -> Floats:
    """Return the matrix of the χ² distance of a report, a quadratic form of the masses' change."""
    law = rows @ masses
    seen = rows[law > 0] / np.sqrt(law[law > 0])[:, None]
    gram: Floats = seen.T @ seen
    return gram
