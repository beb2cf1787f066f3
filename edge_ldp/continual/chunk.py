"""One chunk of a released stream: clamping, blocks, noise, prediction. Whole numbers throughout."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from edge_ldp.continual.consistency import lean_noise, subtree_noise
from edge_ldp.continual.noise import BoundNoise, NodeNoise
from edge_ldp.continual.shape import Shape
from edge_ldp.continual.smoothers import Smoother
from edge_ldp.continual.variance import prefix

MEMORIES = ("subtree", "lean", "numpy")


@dataclass(frozen=True, slots=True)
class ChunkState:
    """Where a chunk stands. `open`: the running block's and, in a tree, the running nodes' totals.

    Totals carry their noise, so none is true; key and totals together do tell readings, which is
    why the key is stored until the chunk ends and never longer. `seen`: a keyed digest of every
    slot and value so far, where noise is bound to them (`BoundNoise`); b"" where it is not. With
    it a causal tree's `open` also holds the noise in its prefix, level by level.
    """

    key: bytes
    position: int = 0
    open: tuple[int, ...] = ()
    seen: bytes = b""


class Chunk:
    """Takes the chunk's values in order and returns what is released for each.

    A value in an unfinished block is the smoother's prediction; the block's last one makes the
    block's released values add up to its noisy total.
    """

    def __init__(  # noqa: PLR0913 - one chunk's parameters, all named
        self,
        *,
        shape: Shape,
        theta: int,
        epsilon: Fraction,
        smoother: Smoother,
        memory: str,
        state: ChunkState,
    ) -> None:
        scale = shape.scale(theta, epsilon)
        self.noise = NodeNoise(state.key, scale)
        self._bound = BoundNoise(state.key, scale, state.seen) if state.seen else None
        self.position = state.position
        self._shape = shape
        self._theta = theta
        self._smoother = smoother
        self._block = shape.block
        self._fanout = shape.fanout
        self._is_tree = shape.kind == "tree"
        blocks, self._at = divmod(state.position, shape.block)
        self._open = state.open[0] if self._at else 0
        self._nodes = list(state.open) or [0] * (shape.levels - 1) if self._is_tree else []
        if self._is_tree and state.open:
            self._nodes = self._masked(-1)
        self._predict()
        self._sent = self._rate[0] * self._at // self._rate[1]
        self._memory = memory
        in_prefix = _in_prefix(shape, state.position, state.seen)
        self._held = list(state.open[-in_prefix:] if in_prefix else [0] * shape.levels)
        self._noises = self._block_noise(blocks + (self._at > 0))
        self._above = [
            self.noise.stream(level, state.position // shape.fanout**level, shape.chunk)
            for level in range(1, len(self._nodes) + 1)
        ]

    @property
    def is_over(self) -> bool:
        """Whether every value was taken."""
        return self.position == self._shape.chunk

    def push(self, value: int, slot: int) -> int:
        """Return what is released for a slot's value ≥ 0; above θ it counts as θ."""
        value = min(value, self._theta)
        self.position += 1
        if self._bound is not None:
            self._bound.see(slot, value)
        if self._block == 1:
            return value + next(self._noises) + self._rebound()
        at = self._at
        if not at:
            self._open = next(self._noises)
            self._predict()
        self._open += value
        if at + 1 < self._block:
            self._at = at = at + 1
            num, den = self._rate
            before, self._sent = self._sent, num * at // den
            return self._sent - before
        return self._finish()

    def finished_nodes(self, value: int) -> tuple[int, ...]:
        """Return the noisy totals of the nodes above level 0 that end with this value, low first.

        For a tree only: call it after `push`, with the same value. O(1) a value on average.
        """
        total = min(value, self._theta)
        end = self.position
        done: list[int] = []
        nodes, fanout = self._nodes, self._fanout
        for level, held in enumerate(nodes, start=1):
            total += held
            end, rest = divmod(end, fanout)
            if rest:
                nodes[level - 1] = total
                break
            nodes[level - 1] = 0
            bound = self._bound
            done.append(
                total + (bound.noise(level, end - 1) if bound else next(self._above[level - 1]))
            )
        return tuple(done)

    def state(self) -> ChunkState:
        """Return what a restart continues from."""
        held = self._masked(1) if self._is_tree else [self._open] if self._at else []
        seen = self._bound.seen if self._bound is not None else b""
        if _in_prefix(self._shape, self.position, seen):
            held += self._held
        return ChunkState(self.noise.key, self.position, tuple(held), seen)

    def wipe(self) -> None:
        """Overwrite the key: nothing can be asked for any more."""
        self.noise.wipe()
        self._bound = None

    def _masked(self, sign: int) -> list[int]:
        """Return the running nodes' totals with their noise added, or taken away again."""
        end = self.position
        found = []
        for level, total in enumerate(self._nodes, start=1):
            end //= self._shape.fanout
            found.append(total + sign * self.noise.one(level, end))
        return found

    def _block_noise(self, first: int) -> Iterator[int]:
        """Return the noise that blocks from `first` on begin with.

        Where it is bound, that of their place alone, which is never released (`_rebound`).
        """
        if self._bound is None:
            return block_noise(self.noise, self._shape, self._memory, first)
        return self.noise.stream(0, first, self._shape.blocks)

    def _rebound(self) -> int:
        """Return what makes a finished block's noise that of its slots and values."""
        if self._bound is None:
            return 0
        index = (self.position - 1) // self._block
        mask, own = self.noise.one(0, index), self._bound.noise
        if self._shape.kind != "causal":
            return own(0, index) - mask
        return causal_step(self._held, self._fanout, index, own) - mask

    def _finish(self) -> int:
        self._open += self._rebound()
        released = self._open - self._sent
        self._smoother.add(self._open)
        self._at = self._sent = 0
        return released

    def _predict(self) -> None:
        first = Fraction(self._block * self._theta, 2)
        rate = self._smoother.total(first) / self._block if self._block > 1 else Fraction(0)
        self._rate: tuple[int, int] = (rate.numerator, rate.denominator)


def fits(shape: Shape, state: ChunkState) -> bool:
    """Say whether a stored chunk can be one of this shape: it is not over, its totals are there."""
    is_open = state.position % shape.block > 0
    totals = shape.levels - 1 if shape.kind == "tree" else int(is_open)
    totals += _in_prefix(shape, state.position, state.seen)
    return 0 <= state.position < shape.chunk and len(state.open) == totals


def _in_prefix(shape: Shape, position: int, seen: bytes) -> int:
    """Return how many levels' noise a state holds: bound noise cannot be made again later."""
    return shape.levels if position and seen and shape.kind == "causal" and shape.levels > 1 else 0


def block_noise(noise: NodeNoise, shape: Shape, memory: str, first: int) -> Iterator[int]:
    """Yield the noise of blocks first, first + 1, …; the same for every `memory`.

    memory, consistent trees only: "subtree" holds one top node's blocks, "lean" O(b·h) and works
    about `levels` times as long, "numpy" makes them with arrays (raises ImportError without NumPy).
    """
    if shape.kind == "consistent":
        return _consistent(noise, shape, memory, first)
    if shape.kind == "causal":
        return _causal(noise, shape, first)
    return noise.stream(0, first, shape.blocks)


def _consistent(noise: NodeNoise, shape: Shape, memory: str, first: int) -> Iterator[int]:
    if memory == "lean":
        return lean_noise(noise, shape, first)
    make: Callable[[int], list[int]] = partial(subtree_noise, noise, shape)
    if memory == "numpy":  # now, so that a missing NumPy shows before a slot is taken
        from edge_ldp.continual.arrays import ArrayNoise  # noqa: PLC0415 - NumPy is optional

        make = ArrayNoise(noise, shape).numbers
    return _by_top(make, shape, first)


def _by_top(make: Callable[[int], list[int]], shape: Shape, first: int) -> Iterator[int]:
    for top in range(first // shape.subtree, shape.tops):
        yield from make(top)[max(0, first - top * shape.subtree) :]


def causal_step(held: list[int], fanout: int, leaf: int, own: Callable[[int, int], int]) -> int:
    """Return how a prefix's noise changes with a leaf; `held`: of each level, what is in it.

    A finished family's nodes leave the prefix, their parent enters it; O(1) a block on average.
    `own(level, index)`: a node's noise, first used when it is finished.
    """
    change = own(0, leaf)
    held[0] += change
    level, end = 0, leaf + 1
    while level + 1 < len(held) and end % fanout == 0:
        end //= fanout
        entering = own(level + 1, end - 1)
        change += entering - held[level]
        held[level] = 0
        level += 1
        held[level] += entering
    return change


def _causal(noise: NodeNoise, shape: Shape, first: int) -> Iterator[int]:
    held = [0] * shape.levels
    for level, index in prefix(shape, first):
        held[level] += noise.one(level, index)
    for leaf in range(first, shape.blocks):
        yield causal_step(held, shape.fanout, leaf, noise.one)
