"""Uniform integers from random bytes: one little-endian 64-bit word per draw, with rejection.

Every draw takes at least one word, also `draw(1)`, so how much entropy a report consumes does not
depend on what it is about. Source: DESIGN §4; rejection at the largest multiple of n is exact.
"""

from edge_ldp.device.errors import EntropyError, ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Entropy = Callable[[int], bytes]
    Uniform = Callable[[int], int]

WORD_BYTES = 8
WORD_RANGE = 1 << 64


def limit_of(n: int) -> int:
    """Words at or above this (the largest multiple of n below 2**64) are drawn again."""
    return WORD_RANGE - WORD_RANGE % n


class Draw:
    """A uniform integer in `0..n-1` per call, for 1 ≤ n ≤ 2**64, from `entropy(size) -> bytes`.

    Reads entropy in blocks of `block_words` words and overwrites each word once used.
    Raises EntropyError when the source gives fewer bytes than asked, ParameterError for a bad n.
    """

    __slots__ = ("_block", "_entropy", "_next", "_size")

    def __init__(self, entropy: "Entropy", block_words: int = 16) -> None:
        self._entropy = entropy
        self._size = block_words * WORD_BYTES
        self._block = bytearray()
        self._next = 0

    def __call__(self, n: int) -> int:
        """Return a uniform integer in `0..n-1`."""
        if not 1 <= n <= WORD_RANGE:
            raise ParameterError("n", "1..2**64")
        limit = limit_of(n)
        while True:
            word = self._word()
            if word < limit:
                return word % n

    def forget(self) -> None:
        """Overwrite and drop the words not yet used: after a fork or a restored snapshot."""
        for at in range(self._next, len(self._block)):
            self._block[at] = 0
        self._next = len(self._block)

    def _word(self) -> int:
        if self._next == len(self._block):
            fresh = self._entropy(self._size)
            if len(fresh) != self._size:
                raise EntropyError("the entropy source gave fewer bytes than asked for")
            self._block = bytearray(fresh)
            self._next = 0
        end = self._next + WORD_BYTES
        word = int.from_bytes(self._block[self._next : end], "little")
        for at in range(self._next, end):
            self._block[at] = 0
        self._next = end
        return word
