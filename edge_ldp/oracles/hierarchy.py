"""HH: GRR or OLH on one random level of a tree over the categories. Source: [SW] §4.2."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Self

from edge_ldp.checks import exact_integer, iterable, taking
from edge_ldp.device import oracle
from edge_ldp.device.channel import MAX_SIZE
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms.base import integer
from edge_ldp.oracles.base import Tree, checked
from edge_ldp.oracles.support import Grr, Olh, hash_range
from edge_ldp.ratio import Epsilon, Ratio, floor_ratio

PADDING = -1  # ends a report shorter than others where rows must have one length


class Hierarchy(Tree):
    """HH: GRR or OLH on one level of a tree of the given fanout ([SW] §4.2).

    Report (level, *report of that level's oracle), public but for the last. Level 0 has `fanout`
    nodes; the last has one for each category, and some above them that no value has. Entries of
    `decode_levels` estimate whether the value lies below the node; items are the last level alone.
    """

    name = "hh"
    client: oracle.Hierarchy

    @taking(size=exact_integer, fanout=exact_integer)
    def __init__(self, *, epsilon: Epsilon, size: int, fanout: int = 4) -> None:
        self._use(self._client(size, floor_ratio(epsilon), fanout))

    @staticmethod
    def _client(size: int, ratio: Ratio, fanout: int = 4) -> oracle.Hierarchy:
        levels = tuple(_level(ratio, nodes) for nodes in oracle.level_sizes(size, fanout))
        return oracle.hierarchy(size, fanout, levels)

    @classmethod
    def from_plan(cls, table: Mapping[str, object]) -> Self:
        """Return the oracle that `to_plan` described; raises ParameterError for the field."""
        rows = table.get("levels")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise ParameterError("levels", "a list of tables of grr or olh")
        levels = tuple(_parse_level(row) for row in rows)
        return cls.of(oracle.hierarchy(integer(table, "size"), integer(table, "fanout"), levels))

    def _shape(self) -> dict[str, object]:
        levels = [level.to_plan() for level in self.levels]
        return {"fanout": self.client.fanout, "levels": levels}

    @cached_property
    def levels(self) -> tuple[Grr | Olh, ...]:
        """The oracle of each level, over its nodes."""
        return tuple(
            Grr.of(level) if isinstance(level, oracle.Grr) else Olh.of(level)
            for level in self.client.levels
        )

    @property
    def max_ratio(self) -> Fraction:
        """Largest factor between two values' probabilities of one report, exactly."""
        return max(level.max_ratio for level in self.levels)

    @property
    def report_length(self) -> int:
        """Integers of the longest report."""
        return 1 + max(level.report_length for level in self.levels)

    @property
    def report_bits(self) -> int:
        """Bits of the level and of the longest report on one."""
        longest = max(level.report_bits for level in self.levels)
        return (len(self.levels) - 1).bit_length() + longest

    def split(self, report: Sequence[int]) -> tuple[tuple[int, ...], int]:
        """Return ((level, *public part there), code); raises ParameterError for no report."""
        level, inner = self.split_level(report)
        public, code = self.levels[level].split(inner)
        return (level, *public), code

    def split_level(self, report: Sequence[int]) -> tuple[int, Sequence[int]]:
        """Return (level, report of its oracle) without padding; raises ParameterError."""
        (level,) = checked("report", report[:1], len(self.levels))
        end = 1 + self.levels[level].report_length
        if len(report) > self.report_length or any(rest != PADDING for rest in report[end:]):
            raise ParameterError("report", "a level, and a report of its oracle")
        return level, report[1:end]

    def probabilities(self, value: int, public: Sequence[int]) -> list[Fraction]:
        """Return the exact probability of every code under `value`, given (level, …)."""
        self.check_value(value)
        (level,) = checked("public", public[:1], len(self.levels))
        node = value // self.client.widths[level]
        return self.levels[level].probabilities(node, public[1:])

    def decode_levels(self, report: Sequence[int]) -> list[list[Fraction]]:
        """Return [level][node]: the unbiased estimate of 1 for the value's node, 0 for others."""
        chosen, inner = self.split_level(report)
        levels = [[Fraction(0)] * level.size for level in self.levels]
        levels[chosen] = [len(levels) * entry for entry in self.levels[chosen].decode(inner)]
        return levels

    @taking(reports=iterable)
    def estimate_levels(self, reports: Iterable[Sequence[int]]) -> list[list[float]]:
        """Return [level][node]: the unbiased count of reporters below each node."""
        groups: list[list[Sequence[int]]] = [[] for _ in self.levels]
        for report in reports:
            level, inner = self.split_level(report)
            groups[level].append(inner)
        return [
            [len(groups) * entry for entry in level.estimate(group)]
            for level, group in zip(self.levels, groups, strict=True)
        ]

    def node_variance(self, value: int, level: int, node: int) -> Fraction:
        """Return the exact variance of one node's entry in `decode_levels(perturb(value))`."""
        self.check_value(value)
        (level,) = checked("level", [level], len(self.levels))
        own = value // self.client.widths[level]
        inner = self.levels[level].variance(own, node)
        return len(self.levels) * (inner + (own == node)) - (own == node)

    def decode(self, report: Sequence[int]) -> list[Fraction]:
        """Return the last level of `decode_levels`, one entry for each item."""
        return self.decode_levels(report)[-1][: self.size]

    @taking(reports=iterable)
    def estimate(self, reports: Iterable[Sequence[int]]) -> list[float]:
        """Return the last level of `estimate_levels`, one count for each item."""
        return self.estimate_levels(reports)[-1][: self.size]

    def variance(self, value: int, item: int) -> Fraction:
        """Return the exact variance of one item's entry in `decode(perturb(value))`."""
        self.check_value(item)
        return self.node_variance(value, len(self.levels) - 1, item)

    @property
    def worst_variance(self) -> float:
        """The larger variance of the own item's entry and of another's."""
        return float(max(self.variance(0, 0), self.variance(0, 1)))

    @property
    def influence(self) -> float:
        """Largest entry of any decoded report: what one liar can add to an item's count."""
        return len(self.levels) * self.levels[-1].influence


def _level(ratio: Ratio, nodes: int) -> oracle.Grr | oracle.Olh:
    """Return the oracle of the smaller variance ([SW] §2.1): GRR below 3E + 2 nodes, else OLH."""
    if nodes * ratio.den < 3 * ratio.num + 2 * ratio.den and nodes <= MAX_SIZE:
        return oracle.grr(nodes, ratio.num, ratio.den)
    return oracle.olh(nodes, hash_range(ratio), ratio.num, ratio.den)


def _parse_level(table: Mapping[str, object]) -> oracle.Grr | oracle.Olh:
    kinds: dict[str, type[Grr | Olh]] = {kind.name: kind for kind in (Grr, Olh)}
    kind = kinds.get(str(table.get("mechanism")))
    if kind is None:
        raise ParameterError("levels", "tables of grr or olh")
    return kind.from_plan(table).client
