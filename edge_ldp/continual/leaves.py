"""The noise that each block of a chunk is released with, in order, from any block on."""

from collections.abc import Callable, Iterator
from functools import partial

from edge_ldp.continual.consistency import lean_noise, subtree_noise
from edge_ldp.continual.noise import NodeNoise
from edge_ldp.continual.shape import Shape
from edge_ldp.continual.variance import prefix

MEMORIES = ("subtree", "lean", "numpy")


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
