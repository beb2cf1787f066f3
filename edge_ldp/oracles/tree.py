"""What oracles over a tree share: each device reports on one random level of it ([SW] §4.2)."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from fractions import Fraction

from edge_ldp.oracles.base import Oracle


class Tree(Oracle):
    """An oracle with estimates for the nodes of every level; level 0 as the client numbers it."""

    @abstractmethod
    def decode_levels(self, report: Sequence[int]) -> list[list[Fraction]]:
        """Return [level][node]: the unbiased estimate of each node that one report stands for.

        All 0 but on the report's own level, which counts as many times as there are levels.
        """

    @abstractmethod
    def estimate_levels(self, reports: Iterable[Sequence[int]]) -> list[list[float]]:
        """Return [level][node]: the sum of `decode_levels`, unbiased for all reporters.

        Times count/(levels · count of the level's own reports) it varies less: level by level the
        estimate from those who were asked.
        """

    @abstractmethod
    def node_variance(self, value: int, level: int, node: int) -> Fraction:
        """Return the exact variance of one node's entry in `decode_levels(perturb(value))`."""
