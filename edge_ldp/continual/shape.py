"""What a chunk looks like: kind of structure, fan-out, length, pruned layers. Public integers."""

from dataclasses import dataclass
from fractions import Fraction

from edge_ldp.checks import exact_integer, taking, word
from edge_ldp.device.errors import ParameterError
from edge_ldp.ratio import exact_epsilon

KINDS = ("flat", "tree", "causal", "consistent")
MAX_CHUNK = 1 << 26
MAX_FANOUT = 1 << 10
_BIAS_SHARE = 36  # (b^s / 2 · θ / 3)² = b^2s·θ² / 36


@taking(kind=word(*KINDS), fanout=exact_integer, chunk=exact_integer, pruned=exact_integer)
@dataclass(frozen=True, slots=True)
class Shape:
    """A chunk of `chunk` values under nodes of `fanout` children, the lowest `pruned` levels away.

    kind: "flat" (noise on every block, no nodes above), "tree" (noisy nodes, sums by walking them),
    "causal" (the same nodes, each finished prefix released), "consistent" (least squares). Level 0
    has blocks of fanout^pruned values, level l nodes of fanout^l blocks; no root. Raises
    ParameterError unless chunk is a multiple of the block; it need not be a power of fanout: the
    last top node then reaches beyond it.
    """

    kind: str
    fanout: int
    chunk: int
    pruned: int = 0

    def __post_init__(self) -> None:
        for name, number, low, high in (
            ("fanout", self.fanout, 2, MAX_FANOUT),
            ("chunk", self.chunk, 1, MAX_CHUNK),
            ("pruned", self.pruned, 0, max(0, self.height - 1)),
        ):
            if not low <= number <= high:
                raise ParameterError(name, f"an integer in {low}..{high}")
        if self.pruned and self.kind == "tree":
            raise ParameterError("pruned", "0 for a tree whose nodes are walked")
        if self.chunk % self.block:
            raise ParameterError("chunk", "a multiple of fanout**pruned values")

    @property
    def height(self) -> int:
        """Levels before pruning, ⌈log_b r⌉ and at least 1."""
        if self.fanout < 2:  # noqa: PLR2004
            return 1  # refused by name, above
        height = 1
        while self.fanout**height < self.chunk:
            height += 1
        return height

    @property
    def levels(self) -> int:
        """Levels that get noise, each value being in one node of each."""
        return 1 if self.kind == "flat" else self.height - self.pruned

    @property
    def block(self) -> int:
        """Values under one node of level 0."""
        return int(self.fanout**self.pruned)

    @property
    def blocks(self) -> int:
        """Nodes of level 0 in the chunk."""
        return self.chunk // self.block

    @property
    def subtree(self) -> int:
        """Blocks under one top node."""
        return int(self.fanout ** (self.levels - 1))

    @property
    def tops(self) -> int:
        """Top nodes; the last may reach beyond the chunk."""
        return -(-self.blocks // self.subtree)

    @property
    def looks_ahead(self) -> bool:
        """Whether a block is released with noise of nodes that end later: least squares do that."""
        return self.kind == "consistent" and self.levels > 1

    def scale(self, theta: int, epsilon: Fraction) -> Fraction:
        """Return the noise's scale: a changed value moves one node a level by at most θ."""
        return Fraction(theta * self.levels) / epsilon


@taking(epsilon=lambda _, epsilon: exact_epsilon(epsilon))
def best_pruning(fanout: int, chunk: int, epsilon: Fraction) -> int:
    """Return the integer s that minimises (b-1)(h-s)³·2/ε² + b^2s/36 ([ToPS] eq 7, over θ²).

    At most h - 1; the least of equals.
    """
    height = Shape("consistent", fanout, chunk).height

    def cost(s: int) -> Fraction:
        noise = 2 * (fanout - 1) * (height - s) ** 3 / epsilon**2
        return noise + Fraction(fanout ** (2 * s), _BIAS_SHARE)

    return min((s for s in range(height) if chunk % fanout**s == 0), key=cost)
