"""The noise of one chunk as a keyed function of the node: a restart finds the same, never other.

Nodes are numbered from 0 in each level. Node i is in block i // 256; the block's 32-bit words are
SHAKE-128 of key, level and block: first all signs, then all lowest digits, and so on.
Further words, for ties, come from SHAKE-128 of key, level, node and column. That SHAKE-128 with a
fresh 32-byte key in front cannot be told from random is the only assumption that is no theorem.

Numbers are discrete Laplace by table: digits by certified integer thresholds, ties by further bits,
as for a whole chunk's nodes the samplers of `exact` are too slow. A geometric number's base-256
digits are independent: digit i < top has mass ∝ e^(-256^i·d/scale) on 0..255, the top one is
geometric. A digit is the number of survival probabilities S_1 > S_2 > … that lie above a uniform
real U. Its first 32 bits decide unless a threshold has the same 32 bits; then 32 more are asked
for, and so on, so the law is exact. All bounds are integers around e^(-1/scale), of rising
precision.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from hashlib import shake_128
from itertools import count, repeat
from struct import unpack
from sys import byteorder
from typing import TypeAlias

from edge_ldp.device.errors import ParameterError
from edge_ldp.entropy import Uniform
from edge_ldp.ratio import exp_bounds

More: TypeAlias = Callable[[int], int]  # the nth further 32-bit word, n = 0, 1, …

RADIX_BITS = 8
RADIX = 1 << RADIX_BITS
WORD_BITS = 32
MAX_SCALE = 1 << 40
_TOP_SCALE = 26  # then the top digit has at most 600 thresholds above 2^-32
_EXTRA_BITS = 96  # beyond the bits compared: for the division by 1 - e^(-256·x), x ≥ 2^-40


@dataclass(frozen=True, slots=True)
class Column:
    """The law of one digit: `kind` "sign", "digit" or "top" of a geometric with e^-rate.

    `thresholds`: ⌊S_k·2^32⌋ rising, those above 0 only; S_k = P(digit ≥ k).
    """

    kind: str
    rate: Fraction
    thresholds: tuple[int, ...]
    ties: frozenset[int]  # words that do not decide

    def digit(self, word: int, more: More) -> int:
        """Return the digit of a 32-bit word; `more(n)` gives the further words, used for ties."""
        if word in self.ties:
            return self.tie(word, more)
        return len(self.thresholds) - bisect_right(self.thresholds, word)

    def tie(self, word: int, more: More) -> int:
        """Compare with further bits; a threshold is never rational, so this ends."""
        bits, taken = WORD_BITS, 0
        while True:
            digit = 0
            is_sure = True
            for low, high in survivals(self.kind, self.rate, bits):
                if low <= word:  # not surely above; surely not, with all later ones, if high is so
                    is_sure = high <= word
                    break
                digit += 1
            if is_sure:
                return digit
            word = word << WORD_BITS | more(taken)
            taken += 1
            bits += WORD_BITS


@lru_cache(maxsize=8)
def laplace_columns(scale: Fraction) -> tuple[Column, ...]:
    """Return the columns of one discrete Laplace number: sign first, then digits, low to high.

    Raises ParameterError unless 2^-10 ≤ scale ≤ 2^40.
    """
    if not Fraction(1, 1 << 10) <= scale <= MAX_SCALE:
        raise ParameterError("noise scale", "2**-10..2**40")
    columns = [_column("sign", 1 / scale)]
    rate = 1 / scale
    while 1 / rate > _TOP_SCALE:
        columns.append(_column("digit", rate))
        rate *= RADIX
    return (*columns, _column("top", rate))


def _column(kind: str, rate: Fraction) -> Column:
    """Return a column whose thresholds are certified: both bounds have the same first 32 bits."""
    extra = WORD_BITS
    while True:
        found: list[int] = []
        is_sure = True
        for low, high in survivals(kind, rate, WORD_BITS + extra):
            is_sure &= low >> extra == high >> extra
            if not high >> extra:
                break
            found.append(low >> extra)
        if is_sure:
            return Column(kind, rate, tuple(reversed(found)), frozenset(found) | {0})
        extra *= 2


def survivals(kind: str, rate: Fraction, bits: int) -> Iterator[tuple[int, int]]:
    """Yield integers low ≤ S_k·2^bits ≤ high for k = 1, 2, …; without end for a top digit."""
    work = bits + _EXTRA_BITS
    one = 1 << work
    down, up = _minus_exp(rate, work)
    if kind == "sign":  # 1: not zero, 2q/(1+q); 2: above zero, half of it
        for shift in (bits + 1, bits):
            yield (down << shift) // (one + down), -(-(up << shift) // (one + up))
        return
    end_down, end_up = _minus_exp(rate * RADIX, work) if kind == "digit" else (0, 0)
    low, high = down, up
    for _ in range(RADIX - 1) if kind == "digit" else count():
        yield (
            (max(0, low - end_up) << bits) // (one - end_up),
            -((end_down - high) << bits) // (one - end_down) + 1,
        )
        low = low * down >> work
        high = (high * up >> work) + 1


def _minus_exp(x: Fraction, work: int) -> tuple[int, int]:
    """Return integers around e^-x·2^work."""
    low, high = exp_bounds(x, work)
    return (1 << 2 * work) // high, (1 << 2 * work) // low + 1


BLOCK = 256  # nodes that share one call of the hash
KEY_BYTES = 32
_STEP = 32  # nodes that `one` makes at a time: a divisor of BLOCK
_WORD_BYTES = WORD_BITS // 8
_WORDS = "I" if array("I").itemsize == _WORD_BYTES else "L"
_LITTLE = byteorder == "little"  # then the bytes are the words
_ZERO = 2  # of the sign's thresholds none is above: plus; one: minus; both: zero


def fresh_key(draw: Uniform) -> bytes:
    """Return a key of 32 bytes from four 64-bit words."""
    return b"".join(draw(1 << 64).to_bytes(8, "little") for _ in range(KEY_BYTES // 8))


class NodeNoise:
    """Discrete Laplace noise of one scale for every node (level, index) of a chunk.

    Memory: tables of at most 600 integers a column; a block of words and 32 noises a level.
    Raises ParameterError for a bad key, a scale that `laplace_columns` refuses, and after `wipe`.
    """

    __slots__ = ("_held", "_key", "_most", "_words", "columns", "scale")

    def __init__(self, key: bytes, scale: Fraction) -> None:
        if len(key) != KEY_BYTES:
            raise ParameterError("key", f"{KEY_BYTES} bytes")
        self.scale = scale
        self.columns = laplace_columns(scale)
        self._most = 1 + sum(
            len(column.thresholds) << RADIX_BITS * place
            for place, column in enumerate(self.columns[1:])
        )
        self._key = bytearray(key)
        self._held: dict[int, tuple[int, list[int]]] = {}
        self._words: dict[int, tuple[int, array[int]]] = {}

    @property
    def key(self) -> bytes:
        """The chunk's key, to be stored with its state until the chunk ends."""
        return bytes(self._key)

    def one(self, level: int, index: int) -> int:
        """Return the noise of one node; nodes asked for in order cost least."""
        number, at = divmod(index, _STEP)
        held = self._held.get(level)
        if held is None or held[0] != number:
            held = self._held[level] = (number, self.many(level, number * _STEP, _STEP))
        return held[1][at]

    def many(self, level: int, first: int, count: int) -> list[int]:
        """Return the noise of `count` nodes from `first` on."""
        found: list[int] = []
        for number in range(first // BLOCK, -(-(first + count) // BLOCK)):
            base = number * BLOCK
            found += self._block(
                level, number, max(first - base, 0), min(first + count - base, BLOCK)
            )
        return found

    def stream(self, level: int, first: int, end: int) -> Iterator[int]:
        """Yield the noise of nodes first, …, end - 1: what `one` gives, cheaper in order."""
        while first < end:
            count = min(_STEP - first % _STEP, end - first)
            yield from self.many(level, first, count)
            first += count

    def words(self, level: int, number: int) -> bytes:
        """Return a block's words as bytes, column after column, little-endian."""
        if not self._key:
            raise ParameterError("key", "one that was not wiped")
        size = BLOCK * len(self.columns) * _WORD_BYTES
        return shake_128(self._key + b"node" + _name(level, number)).digest(size)

    def further(self, level: int, index: int, column: int) -> Callable[[int], int]:
        """Return what gives the further words of one node's column."""
        return partial(_further, bytes(self._key) + b"more" + _name(level, index), column)

    def wipe(self) -> None:
        """Overwrite the key and drop all noise: nothing can be asked for any more."""
        for at in range(len(self._key)):
            self._key[at] = 0
        self._key.clear()
        self._held.clear()
        self._words.clear()

    def _block(self, level: int, number: int, first: int, end: int) -> list[int]:
        """Return noise first..end of a block: a digit is its column's length less what is above."""
        words = self._loaded(level, number)
        base = number * BLOCK + first
        last = len(self.columns) - 1
        sizes = self.above(last, words[last * BLOCK + first : last * BLOCK + end], level, base)
        for at in range(last - 1, 0, -1):
            lower = self.above(at, words[at * BLOCK + first : at * BLOCK + end], level, base)
            sizes = [(s << RADIX_BITS) + d for s, d in zip(sizes, lower, strict=True)]
        signs = self.above(0, words[first:end], level, base)
        most = self._most
        return [
            (0 if sign == _ZERO else s - most) if sign else most - s
            for sign, s in zip(signs, sizes, strict=True)
        ]

    def _loaded(self, level: int, number: int) -> "array[int]":
        loaded = self._words.get(level)
        if loaded is None or loaded[0] != number:
            fresh = self.words(level, number)
            count = len(fresh) // _WORD_BYTES
            words = array(_WORDS, fresh if _LITTLE else unpack(f"<{count}I", fresh))
            loaded = self._words[level] = (number, words)
        return loaded[1]

    def above(self, at: int, words: "array[int]", level: int, base: int) -> list[int]:
        """Return how many thresholds of a column each word is not below: its length less digits."""
        column = self.columns[at]
        rising = column.thresholds
        above = list(map(bisect_right, repeat(rising), words))
        if not column.ties.isdisjoint(words):
            for place, word in enumerate(words):
                if word in column.ties:
                    digit = column.tie(word, self.further(level, base + place, at))
                    above[place] = len(rising) - digit
        return above


class BoundNoise:
    """Noise of a chunk's nodes, each a function of the key and of all slots and values up to it.

    A copy that goes on from the same state with another slot or value therefore meets other noise
    from there on, and one that repeats what was pushed meets the same. For nodes whose noise is
    first used when they are finished. To random functions in place of the hash, every node has its
    own argument in a run, so its law is that of NodeNoise. The idea is SIV's: Rogaway and
    Shrimpton, "Deterministic authenticated-encryption", EUROCRYPT 2006.
    """

    __slots__ = ("_key", "_scale", "seen")

    def __init__(self, key: bytes, scale: Fraction, seen: bytes) -> None:
        self._key = key
        self._scale = scale
        self.seen = seen

    def see(self, slot: int, value: int) -> None:
        """Take the next slot and the value that is pushed for it, as it counts."""
        message = b"seen" + self.seen + slot.to_bytes(8, "little") + value.to_bytes(8, "little")
        self.seen = shake_128(self._key + message).digest(KEY_BYTES)

    def noise(self, level: int, index: int) -> int:
        """Return the noise of a node that ends with what was seen last."""
        own = shake_128(self._key + b"bound" + self.seen).digest(KEY_BYTES)
        return NodeNoise(own, self._scale).one(level, index)


def nothing_seen(key: bytes) -> bytes:
    """Return what a bound chunk has seen at its beginning."""
    return shake_128(key + b"begin").digest(KEY_BYTES)


def _name(level: int, index: int) -> bytes:
    return level.to_bytes(2, "little") + index.to_bytes(8, "little")


def _further(prefix: bytes, column: int, nth: int) -> int:
    stream = shake_128(prefix + bytes([column])).digest((nth + 1) * _WORD_BYTES)
    return int.from_bytes(stream[-_WORD_BYTES:], "little")
