"""Noise of range sums, exactly: squares of what each node's noise is multiplied by.

A sum of released values is Σ c_i·(block i), c given as runs of equal weight. In units of one node's
variance it has the variance `coefficient(shape, runs)`, a rational. Consistent trees: the closed
form, Σ_{l<top} (E_l - E_{l+1})/S_l + E_top/S_top with E_l the sum of squared block sums of c over
b^l leaves, divided by b^l, and S_l = 1 + … + b^l. Roundings of releases to whole numbers, at most
2 a range, are not in it; nor is truncation by θ or what a smoother mispredicts.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import exp, expm1
from typing import TypeAlias

from edge_ldp.continual.consistency import weight
from edge_ldp.continual.shape import Shape
from edge_ldp.continual.smoothers import Smoother

Run: TypeAlias = tuple[int, int, Fraction]
Node: TypeAlias = tuple[int, int]


def node_variance(scale: Fraction) -> float:
    """Return the variance of one discrete Laplace number: 2q/(1-q)², q = e^(-1/scale)."""
    rate = float(1 / scale)
    return 2 * exp(-rate) / expm1(-rate) ** 2


def walk(shape: Shape, first: int, end: int) -> Iterator[Node]:
    """Yield the fewest nodes (level, index) that make up blocks [first, end), without a root."""
    for level in range(shape.levels):
        if level == shape.levels - 1:
            yield from ((level, index) for index in range(first, end))
            return
        while first < end and first % shape.fanout:
            yield level, first
            first += 1
        while first < end and end % shape.fanout:
            end -= 1
            yield level, end
        first //= shape.fanout
        end //= shape.fanout


def prefix(shape: Shape, end: int) -> Iterator[Node]:
    """Yield the nodes that make up blocks [0, end): the digits of `end` in base b."""
    for level in range(shape.levels):
        size = shape.fanout**level
        above = end // (size * shape.fanout) * shape.fanout if level < shape.levels - 1 else 0
        yield from ((level, index) for index in range(above, end // size))


def coefficient(shape: Shape, runs: list[Run]) -> Fraction:
    """Return the variance of Σ c_i·(block i) of one chunk, a node's variance being 1."""
    runs = disjoint(runs)
    if shape.kind == "flat":
        return sum((w * w * (end - start) for start, end, w in runs), Fraction(0))
    if shape.kind == "consistent":
        return _consistent(shape, runs)
    factors: dict[Node, Fraction] = {}
    for start, end, w in runs:
        if shape.kind == "tree":
            for node in walk(shape, start, end):
                factors[node] = factors.get(node, Fraction(0)) + w
            continue
        for edge, sign in ((end, w), (start, -w)):
            for node in prefix(shape, edge):
                factors[node] = factors.get(node, Fraction(0)) + sign
    return sum((factor * factor for factor in factors.values()), Fraction(0))


def value_runs(shape: Shape, smoother: Smoother, first: int, end: int) -> list[Run]:
    """Return the blocks' weights in the sum of released values [first, end), from value 0 on.

    A value in an unfinished block is a share of the prediction; the block's last value corrects it.
    """
    found: list[Run] = []
    whole_first, whole_end = first // shape.block, end // shape.block
    sign = Fraction(1)
    if whole_first < whole_end:
        found.append((whole_first, whole_end, sign))
    for edge, sign in ((end, Fraction(1)), (first, Fraction(-1))):
        blocks, rest = divmod(edge, shape.block)
        if rest:
            share = sign * Fraction(rest, shape.block)
            found += [(start, stop, share * w) for start, stop, w in smoother.weights(blocks)]
    return found


def disjoint(runs: list[Run]) -> list[Run]:
    """Return the same weights as runs that do not overlap, in order, without zeros."""
    changes: dict[int, Fraction] = {}
    for start, end, w in runs:
        changes[start] = changes.get(start, Fraction(0)) + w
        changes[end] = changes.get(end, Fraction(0)) - w
    found: list[Run] = []
    total = Fraction(0)
    last = 0
    for edge in sorted(changes):
        if total and edge > last:
            found.append((last, edge, total))
        total += changes[edge]
        last = edge
    return found


def runs_within_chunks(runs: list[Run], blocks: int) -> dict[int, list[Run]]:
    """Return runs over all blocks as runs within each chunk of so many blocks."""
    found: dict[int, list[Run]] = {}
    for start, end, w in disjoint(runs):
        for chunk in range(start // blocks, -(-end // blocks)):
            base = chunk * blocks
            piece = (max(start - base, 0), min(end - base, blocks), w)
            found.setdefault(chunk, []).append(piece)
    return found


def _consistent(shape: Shape, runs: list[Run]) -> Fraction:
    total = Fraction(0)
    energy = _energy(runs, 1)
    for level in range(shape.levels - 1):
        above = _energy(runs, shape.fanout ** (level + 1))
        total += (energy - above) / weight(shape.fanout, level)
        energy = above
    return total + energy / weight(shape.fanout, shape.levels - 1)


def _energy(runs: list[Run], size: int) -> Fraction:
    """Return the sum of squared sums over aligned blocks of `size`, divided by size."""
    edges: dict[int, Fraction] = {}
    inside = Fraction(0)
    for start, end, w in runs:
        first, last = start // size, (end - 1) // size
        if first == last:
            edges[first] = edges.get(first, Fraction(0)) + w * (end - start)
            continue
        edges[first] = edges.get(first, Fraction(0)) + w * ((first + 1) * size - start)
        edges[last] = edges.get(last, Fraction(0)) + w * (end - last * size)
        inside += (last - first - 1) * (w * size) ** 2
    return (inside + sum(one * one for one in edges.values())) / size
