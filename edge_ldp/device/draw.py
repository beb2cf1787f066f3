"""Uniform integers from random bytes: one little-endian 64-bit word per draw, with rejection.

Every draw takes at least one word, also `draw(1)`, so how much entropy a report consumes does not
depend on what it is about. Source: docs/design.md, The kernel; rejection at the largest multiple of
n is exact.
"""

from array import array
from struct import pack, unpack

from edge_ldp.device.errors import EntropyError, ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Entropy = Callable[[int], bytes]
    Uniform = Callable[[int], int]

WORD_BYTES = 8
WORD_RANGE = 1 << 64
_SMALL = 1 << 48
_SURE = WORD_RANGE - _SMALL
_LITTLE = pack("H", 1) == pack("<H", 1)  # then a block's bytes are its words


def limit_of(n: int) -> int:
    """Words at or above this (the largest multiple of n up to 2**64) are drawn again."""
    return WORD_RANGE - WORD_RANGE % n


def fold(word: int, n: int) -> int:
    """Return `word` as a uniform integer in `0..n-1`, or -1 if it must be drawn again.

    Raises ParameterError unless 1 ≤ n ≤ 2**64.
    """
    if not 1 <= n <= WORD_RANGE:
        raise ParameterError("n", "1..2**64")
    return word % n if word < limit_of(n) else -1


class Draw:
    """A uniform integer in `0..n-1` per call, for 1 ≤ n ≤ 2**64, from `entropy(size) -> bytes`.

    Reads entropy in blocks of `block_words` words and overwrites each word once used. Not for two
    threads at a time: each needs its own.
    Raises EntropyError when the source gives fewer bytes than asked, ParameterError for a bad n.
    """

    __slots__ = ("_entropy", "_next", "_size", "_block")

    def __init__(self, entropy: "Entropy", block_words: int = 64) -> None:
        self._entropy = entropy
        self._size = block_words * WORD_BYTES
        self._block = array("Q")
        self._next = 0

    def below(self, n: int) -> int:
        """Return a uniform integer in `0..n-1`."""
        words = self._block
        at = self._next
        if at == len(words):
            words = self._refill()
            at = 0
        self._next = at + 1
        word = words[at]
        words[at] = 0
        if word < _SURE and 0 < n <= _SMALL:  # the limit lies above: it need not be known
            return word % n
        folded = fold(word, n)
        while folded < 0:
            folded = fold(self.below(WORD_RANGE), n)
        return folded

    __call__ = below

    def forget(self) -> None:
        """Overwrite and drop the words not yet used: after a report, a fork, a snapshot."""
        for at in range(self._next, len(self._block)):
            self._block[at] = 0
        self._next = len(self._block)

    def _refill(self) -> "array[int]":
        fresh = self._entropy(self._size)
        if len(fresh) != self._size:
            raise EntropyError("the entropy source gave fewer bytes than asked for")
        self._block = array("Q", fresh if _LITTLE else unpack(f"<{len(fresh) // 8}Q", fresh))
        return self._block
