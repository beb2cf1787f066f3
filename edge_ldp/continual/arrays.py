"""The same noise with NumPy: whole subtrees at once, bit for bit what `consistency` gives."""

import numpy as np
from numpy.typing import NDArray

from edge_ldp.arrays import Ints
from edge_ldp.continual import consistency
from edge_ldp.continual.consistency import FRACTION_BITS, weight
from edge_ldp.continual.noise import BLOCK, RADIX_BITS, WORD_BITS, Column, NodeNoise
from edge_ldp.continual.shape import Shape

Words = NDArray[np.uint32]

_GUIDE_BITS = 14  # 16384 cells of 2 bytes: fits a first-level cache
_SAFE = 1 << 62
_SIGNS = np.array([0, -1, 1], np.int64)


class ArrayNoise:
    """A chunk's noise as arrays; holds one guide of 32 kB a column."""

    def __init__(self, noise: NodeNoise, shape: Shape) -> None:
        self._noise = noise
        self._shape = shape
        self._guides = [_guide(column) for column in noise.columns]

    def chunk(self) -> Ints:
        """Return the consistent noise of every block of the chunk."""
        found = np.empty(self._shape.blocks, np.int64)
        for top in range(self._shape.tops):
            first = top * self._shape.subtree
            part = found[first : first + self._shape.subtree]
            part[:] = self.subtree(top)[: len(part)]
        return found

    def subtree(self, top: int) -> Ints:
        """Return the consistent noise of every block under a top node.

        When 64 bits might not hold a sum, it is done in Python's integers, with the same result.
        """
        shape = self._shape
        size = shape.subtree
        levels = []
        for level in range(shape.levels):
            levels.append(self.nodes(level, top * size, size))
            size //= shape.fanout
        most = max(int(np.abs(nodes).max()) for nodes in levels)
        if most * shape.levels * shape.subtree << FRACTION_BITS >= _SAFE:
            plain = consistency.consistent_leaves(
                [nodes.tolist() for nodes in levels], shape.fanout
            )
            return np.array(consistency.whole(plain), np.int64)
        fixed = _spread(levels, shape.fanout)
        np.cumsum(fixed, out=fixed)
        fixed >>= FRACTION_BITS
        fixed[1:] -= fixed[:-1].copy()
        return fixed

    def numbers(self, top: int) -> list[int]:
        """Return the same as Python's integers."""
        return [int(one) for one in self.subtree(top).tolist()]

    def nodes(self, level: int, first: int, count: int) -> Ints:
        """Return the noise of `count` nodes of a level from `first` on."""
        start = first // BLOCK
        end = -(-(first + count) // BLOCK)
        columns = len(self._guides)
        joined = b"".join([self._noise.words(level, number) for number in range(start, end)])
        words = np.frombuffer(joined, "<u4").reshape(-1, columns, BLOCK)
        cut = slice(first - start * BLOCK, first - start * BLOCK + count)
        found = np.zeros(count, np.int64)
        for at in range(columns - 1, 0, -1):
            found <<= RADIX_BITS
            found += self.digits(at, words[:, at].ravel()[cut], level, first)
        found += 1
        found *= _SIGNS[self.digits(0, words[:, 0].ravel()[cut], level, first)]
        return found

    def digits(self, at: int, words: Words, level: int, first: int) -> NDArray[np.int16]:
        """Return digits by the guide; where its cell holds a threshold, by search; ties exactly."""
        column = self._noise.columns[at]
        digits: NDArray[np.int16] = self._guides[at][words >> np.uint32(WORD_BITS - _GUIDE_BITS)]
        unsure = np.flatnonzero(digits < 0)
        if len(unsure):
            rising = np.array(column.thresholds, np.uint32)
            hard = words[unsure]
            above = np.searchsorted(rising, hard, side="right")
            digits[unsure] = len(rising) - above
            tied = (hard == 0) | ((above > 0) & (rising[above - 1] == hard))
            for place in unsure[tied].tolist():
                more = self._noise.further(level, first + place, at)
                digits[place] = column.tie(int(words[place]), more)
        return digits


def _guide(column: Column) -> NDArray[np.int16]:
    """Return the digit of all words with the same first 14 bits, -1 where they differ."""
    rising = np.array(column.thresholds, np.int64)
    edges = np.arange((1 << _GUIDE_BITS) + 1, dtype=np.int64) << (WORD_BITS - _GUIDE_BITS)
    low = np.searchsorted(rising, edges[:-1], side="left")
    high = np.searchsorted(rising, edges[1:], side="left")
    guide = (len(rising) - low).astype(np.int16)
    guide[low != high] = -1
    guide[0] = -1  # the word 0 is always a tie
    return guide


def _spread(levels: list[Ints], fanout: int) -> Ints:
    """Return `consistency.consistent_leaves` of these levels."""
    ups = [levels[0]]
    for level in range(1, len(levels)):
        ups.append(levels[level] * fanout**level + ups[-1].reshape(-1, fanout).sum(axis=1))
    down = (ups[-1] << FRACTION_BITS) // weight(fanout, len(levels) - 1)
    places = np.arange(fanout)
    for level in range(len(levels) - 2, -1, -1):
        own = ups[level].reshape(-1, fanout) << FRACTION_BITS
        if level:
            own //= weight(fanout, level)
        share, left = np.divmod(down - own.sum(axis=1), fanout)
        own += share[:, None]
        own += places < left[:, None]
        down = own.ravel()
    return down
