"""AHEAD: a tree that grows only where there is mass, asked level by level.

Each round a fresh cohort reports, at full ε, which node of the frontier holds its value. A node is
split in two for the next round only if its estimate stands above the noise; one that is not split
is asked again, and the answers are averaged by making the whole tree consistent. So empty stretches
are never cut into noisy cells, while single values can be told apart: far better than a smoother on
spiky densities, worse on smooth ones. The state is a value; reports come in as supports.
Source: AHEAD, CCS 2021, arXiv 2110.07505, as given in docs/methods.md, Densities (fanout B = 2).
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edge_ldp.arrays import Ints
from edge_ldp.checks import integer_in, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.estimate.density import Density, category_edges, density
from edge_ldp.estimate.hierarchy import FrequencyTree, consistency
from edge_ldp.estimate.pure import Supports, norm_sub

FANOUT = 2
ENDED = "the tree stopped growing before the finest cells: some of them were never told apart"


@dataclass(frozen=True, slots=True, eq=False)
class Ahead:
    """A growing tree over the categories 0..size−1; start with `ahead(size)`.

    `frontier`: first category of each node to ask for next, and size: its length less one is the
    oracle's size, `searchsorted(frontier, value, side="right") − 1` a value's node. `rounds`: how
    many are to be asked in all. `asked`: the frontiers asked so far, with their supports.
    """

    size: int
    rounds: int
    frontier: Ints
    asked: tuple[tuple[Ints, Supports], ...] = ()

    @property
    def done(self) -> bool:
        """Whether every round was asked."""
        return len(self.asked) >= self.rounds

    def grown(self, given: Supports) -> "Ahead":
        """Return the state after one cohort's supports of the frontier's nodes.

        Splits nodes whose Norm-Sub estimate exceeds √((B + 1)·variance): for OUE and a cohort of
        n/c reporters, docs/methods.md, Densities: √((B + 1)·4Ec/(n(E − 1)²)). Raises CountsError
        for another frontier's supports, ParameterError after the last round.
        """
        if self.done:
            raise ParameterError("given", "no reports after the last round")
        if given.size != len(self.frontier) - 1:
            raise CountsError("not of this frontier's nodes")
        threshold = ((FANOUT + 1) * given.variance) ** 0.5
        heavy = norm_sub(given.frequencies()) > threshold
        asked = (*self.asked, (self.frontier, given))
        return replace(self, frontier=_split(self.frontier, heavy), asked=asked)

    def density(self, *, edges: ArrayLike | None = None) -> Density:
        """Return the estimate over the finest nodes asked: consistent, then Norm-Sub.

        Cells are unequal runs of categories (k from k to k + 1, or by `edges`, size + 1 of them).
        Warns where the asking stopped early. Raises NoReportsError before the first round.
        """
        if not self.asked:
            raise NoReportsError
        cuts = self.asked[-1][0]
        answers = [given for _, given in self.asked]
        nearest = consistency(self._tree(), [given.variance for given in answers])
        leaves = nearest.of([given.frequencies() for given in answers])[-1]
        return density(
            norm_sub(leaves),
            category_edges(self.size, edges)[cuts],
            n=sum(given.n for given in answers),
            warnings=() if self.done else (ENDED,),
        )

    def _tree(self) -> FrequencyTree:
        frontiers = [cuts for cuts, _ in self.asked]
        parents = [np.zeros(len(frontiers[0]) - 1, np.intp)]
        for above, cuts in pairwise(frontiers):
            parents.append(np.searchsorted(above, cuts[:-1], side="right") - 1)
        return FrequencyTree(tuple(parents), tuple(np.zeros(len(at), bool) for at in parents))


@taking(size=integer_in(2, 1 << 24))
def ahead(size: int) -> Ahead:
    """Return the state before the first round: two halves to ask for, log₂(size) rounds.

    Share the reporters out evenly, each in one round only. Raises ParameterError for sizes below 2.
    """
    whole = np.array([0, size])
    return Ahead(size, (size - 1).bit_length(), _split(whole, np.array([True])))


def _split(frontier: Ints, heavy: NDArray[np.bool_]) -> Ints:
    """Return the frontier with the heavy nodes halved, where they have two categories."""
    left, right = frontier[:-1], frontier[1:]
    cut = heavy & (right - left > 1)
    return np.sort(np.concatenate([frontier, (left[cut] + right[cut] + 1) // 2]))
