"""Words of the entropy stream as arrays, in the order in which scalar draws would take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device.draw import WORD_BYTES, WORD_RANGE, limit_of
from edge_ldp.entropy import read_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.device.draw import Entropy

    WordArray = NDArray[np.uint64]


class Words:
    """Words of the entropy stream in order, with some put back."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._held = b""

    def take(self, count: int) -> WordArray:
        """Return the next `count` words."""
        return np.frombuffer(self.read(count * WORD_BYTES), "<u8")

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes; raises EntropyError when the source fails."""
        missing = size - len(self._held)
        if missing > 0:
            self._held += read_source(self._entropy, missing)
        taken, self._held = self._held[:size], self._held[size:]
        return taken

    def put_back(self, words: WordArray) -> None:
        """Return unused words to the front of the stream."""
        self._held = words.tobytes() + self._held


def over_limit(words: WordArray, n: int) -> NDArray[np.bool_]:
    """Say which words must be drawn again to give a uniform integer below n."""
    limit = limit_of(n)
    if limit == WORD_RANGE:
        return np.zeros(words.shape, bool)
    return words >= np.uint64(limit)


def remainder(words: WordArray, n: int) -> WordArray:
    """Return words % n; NumPy divides by one number with a multiplication, but not so for %."""
    if n & (n - 1) == 0:
        return words & np.uint64(n - 1)
    divisor = np.uint64(n)
    return words - words // divisor * divisor
