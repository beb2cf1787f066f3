"""Least-squares consistency of a tree's noise, in integers, one top node's subtree at a time.

[ToPS] eqs 10, 11 (Hay et al. 2010) with the fractions multiplied out: let S_l = 1 + b + … + b^l for
level l, leaves being level 0. Up: Y = N on leaves, Y = b^l·N + Σ Y of the children; Y/S is the
averaged node. Down: the top keeps Y/S, a child gets its own Y/S and an equal share of what its
parent has more than all children. Fractions of 2^-8 are kept; what a division by b leaves over goes
to the first children, so that children always add up to their parent.

Adding whole true counts to the nodes adds just them to every intermediate result (Y gains S·T, what
is shared stays). So adding a value to a leaf's noise is post-processing of the noisy tree, rounding
included: this is theorem 3.1, and why nothing here may be a float.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from edge_ldp.continual.noise import BLOCK, NodeNoise
from edge_ldp.continual.shape import Shape

FRACTION_BITS = 8


def weight(fanout: int, level: int) -> int:
    """Return S_l = 1 + b + … + b^l."""
    return int((fanout ** (level + 1) - 1) // (fanout - 1))


def subtree_noise(noise: NodeNoise, shape: Shape, top: int) -> list[int]:
    """Return the consistent noise of every block under a top node: whole numbers.

    Prefix sums from the node's first block are the exact ones rounded down (up to 2^-8 a node).
    Cost: one noise a node. Memory: O(subtree).
    """
    size = shape.subtree
    levels = []
    for level in range(shape.levels):
        levels.append(noise.many(level, top * size, size))
        size //= shape.fanout
    return whole(consistent_leaves(levels, shape.fanout))


def consistent_leaves(levels: Sequence[Sequence[int]], fanout: int) -> list[int]:
    """Return a subtree's consistent leaves in units of 2^-8, from noisy nodes, leaves first."""
    ups = [list(levels[0])]
    for level in range(1, len(levels)):
        ups.append(gather(ups[-1], levels[level], fanout, level))
    down = [_fixed(ups[-1][0], weight(fanout, len(levels) - 1))]
    for level in range(len(levels) - 2, -1, -1):
        down = _share(down, ups[level], fanout, level)
    return down


def gather(below: Sequence[int], nodes: Sequence[int], fanout: int, level: int) -> list[int]:
    """Return Y of a level's nodes from Y of their children and their own noise."""
    own = fanout**level
    return [
        own * node + sum(below[at * fanout : (at + 1) * fanout]) for at, node in enumerate(nodes)
    ]


def children(parent: int, ups: Sequence[int], level: int) -> list[int]:
    """Return the children (of `level`) of one consistent parent, in units of 2^-8."""
    size = weight(len(ups), level)
    own = [(up << FRACTION_BITS) // size for up in ups]
    share, left = divmod(parent - sum(own), len(ups))
    return [one + share + (at < left) for at, one in enumerate(own)]


def whole(fixed: Sequence[int]) -> list[int]:
    """Return whole numbers whose prefix sums are those of `fixed` rounded down."""
    floors = [total >> FRACTION_BITS for total in accumulate(fixed)]
    return [after - before for before, after in zip([0, *floors], floors, strict=False)]


def lean_noise(noise: NodeNoise, shape: Shape, first: int) -> Iterator[int]:
    """Yield the consistent noise of blocks from `first` on, in memory O(b·h) and for 256 nodes.

    The same numbers as `subtree_noise`. Whatever is needed of later nodes is computed again from
    the key, once for each level with more than 256 blocks, and a large node's start is a pause.
    """
    for top in range(first // shape.subtree, shape.tops):
        top_up = _up(noise, shape, shape.levels - 1, top)
        fixed = _fixed(top_up, weight(shape.fanout, shape.levels - 1))
        skipped = max(0, first - top * shape.subtree)
        total = 0
        for at, leaf in enumerate(_walk(noise, shape, (shape.levels - 1, top), fixed)):
            before, total = total, total + leaf
            if at >= skipped:
                yield (total >> FRACTION_BITS) - (before >> FRACTION_BITS)


def _walk(noise: NodeNoise, shape: Shape, node: tuple[int, int], fixed: int) -> Iterator[int]:
    level, index = node
    if not level:
        yield fixed
        return
    if level == 1 or shape.fanout**level <= BLOCK:
        yield from _at_once(noise, shape.fanout, node, fixed)
        return
    first = index * shape.fanout
    ups = [_up(noise, shape, level - 1, first + at) for at in range(shape.fanout)]
    for at, child in enumerate(children(fixed, ups, level - 1)):
        yield from _walk(noise, shape, (level - 1, first + at), child)


def _at_once(noise: NodeNoise, fanout: int, node: tuple[int, int], fixed: int) -> list[int]:
    """Return the leaves below a node that has no more of them than share a call of the hash."""
    level, index = node
    ups: list[list[int]] = []
    for below in range(level):
        size = fanout ** (level - below)
        own = noise.many(below, index * size, size)
        ups.append(gather(ups[-1], own, fanout, below) if below else own)
    down = [fixed]
    for below in range(level - 1, -1, -1):
        down = _share(down, ups[below], fanout, below)
    return down


def _up(noise: NodeNoise, shape: Shape, level: int, index: int) -> int:
    """Return Y of one node from all noise below it: Σ over levels of b^l·(sum of the level)."""
    total = 0
    count = 1
    for below in range(level, -1, -1):
        own = 0
        for start in range(0, count, BLOCK):
            own += sum(noise.many(below, index * count + start, min(BLOCK, count - start)))
        total += shape.fanout**below * own
        count *= shape.fanout
    return total


def _share(parents: Sequence[int], ups: Sequence[int], fanout: int, level: int) -> list[int]:
    found: list[int] = []
    for at, parent in enumerate(parents):
        found += children(parent, ups[at * fanout : (at + 1) * fanout], level)
    return found


def _fixed(up: int, size: int) -> int:
    return (up << FRACTION_BITS) // size
