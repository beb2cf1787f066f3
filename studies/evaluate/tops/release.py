"""Range sums of a released chunk for whole arrays: number for number what a `Curator` releases.

The library pushes one reading at a time; a study asks for 200 sums of 2^20 values thousands of
times. Only the sums' two ends need the smoother, the rest is arrays of `edge_ldp.continual`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.continual.arrays import ArrayNoise
from edge_ldp.continual.noise import NodeNoise
from edge_ldp.continual.smoothers import SMOOTHERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.continual import Shape

    Integers = NDArray[np.int64]


def range_sums(  # noqa: PLR0913 - a chunk's parameters, all named
    stream: Integers,
    pairs: Integers,
    *,
    shape: Shape,
    theta: int,
    epsilon: Fraction,
    key: bytes,
    smoother: str = "recent",
) -> Integers:
    """Return the released sum of each pair (i, j), half-open, of one chunk's values ≥ 0.

    Shapes: stream (shape.chunk,), pairs (n, 2), result (n,). kind "tree": by walking the nodes.
    """
    arrays = ArrayNoise(NodeNoise(key, shape.scale(theta, epsilon)), shape)
    sums = before(np.minimum(stream, theta))
    if shape.kind == "tree":
        return sums[pairs[:, 1]] - sums[pairs[:, 0]] + walked(arrays, shape, pairs)
    at = sums[:: shape.block]
    blocks = np.diff(at) + arrays.chunk()
    ends, place = np.unique(pairs, return_inverse=True)
    found = prefixes(blocks, ends, block=shape.block, theta=theta, smoother=smoother)
    released = found[place.reshape(pairs.shape)]
    return np.asarray(released[:, 1] - released[:, 0])


def before(values: Integers) -> Integers:
    """Return the sums of all values before each place, the end included."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(values)])


def prefixes(
    blocks: Integers, ends: Integers, *, block: int, theta: int, smoother: str
) -> Integers:
    """Return the released sums of values [0, end): noisy blocks, then shares of a prediction."""
    whole, rest = np.divmod(ends, block)
    found = before(blocks)[whole]
    if block == 1:
        return found
    rates = _predictions(blocks, set(whole[rest > 0].tolist()), block * theta, smoother)
    for at in np.flatnonzero(rest).tolist():
        rate = rates[int(whole[at])]
        found[at] += rate.numerator * int(rest[at]) // (rate.denominator * block)
    return found


def walked(arrays: ArrayNoise, shape: Shape, pairs: Integers) -> Integers:
    """Return the noise of the nodes that make up each range: `variance.walk` for all at once."""
    first, end = pairs[:, 0].copy(), pairs[:, 1].copy()
    total = np.zeros(len(pairs), np.int64)
    fanout, top = shape.fanout, shape.levels - 1
    for level in range(top):
        sums = before(arrays.nodes(level, 0, -(-shape.blocks // fanout**level)))
        left = np.minimum(-(-first // fanout) * fanout, end)
        right = np.maximum(end // fanout * fanout, left)
        total += sums[left] - sums[first] + sums[end] - sums[right]
        first, end = left // fanout, right // fanout
    sums = before(arrays.nodes(top, 0, shape.tops))
    return total + sums[end] - sums[first]


def _predictions(
    blocks: Integers, wanted: set[int], highest: int, smoother: str
) -> dict[int, Fraction]:
    """Return the library's prediction of each wanted block's total."""
    made = SMOOTHERS[smoother]()
    first = Fraction(highest, 2)
    found = {}
    made.total(first)  # an exponential one begins with it
    for at, total in enumerate(blocks.tolist()):
        if at in wanted:
            found[at] = made.total(first)
        made.add(total)
    return found
