"""Every sequence of draws, given to the C kernel as words; models written from the law itself.

A model is a function of a draw. Its every outcome is run; the C kernel, given words that stand for
the same answers, must come to the same result. The words are not the answers themselves but some
multiple of n above them, so that a kernel which draws from another n comes to another result.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from hashlib import shake_256
from itertools import accumulate
from math import prod
from typing import TypeVar

from tests.edge_ldp.laws import Uniform, outcomes

T = TypeVar("T")

WORD_BYTES = 8
WORD_RANGE = 1 << 64
PRIME = (1 << 31) - 1

Report = tuple[int, ...]
Sequence = tuple[tuple[int, int], ...]  # the n asked for and the answer, draw by draw
OfValue = Callable[[int, Uniform], Report]


def all_runs(model: Callable[[Uniform], T]) -> list[tuple[Sequence, T]]:
    """Return every sequence of draws a model can see, and what it comes to."""

    def noting(draw: Uniform) -> tuple[Sequence, T]:
        seen: list[tuple[int, int]] = []

        def noted(n: int) -> int:
            seen.append((n, draw(n)))
            return seen[-1][1]

        report = model(noted)
        return tuple(seen), report

    return [result for _, result in outcomes(noting)]


def chance(sequence: Sequence) -> Fraction:
    """Return the probability of one sequence of draws."""
    return Fraction(1, prod(n for n, _ in sequence))


def words_for(sequences: Iterable[Sequence]) -> bytes:
    """Return words that a right kernel folds into the answers of these sequences."""
    made = []
    for place, (n, answer) in enumerate(draw for sequence in sequences for draw in sequence):
        noise = int.from_bytes(shake_256(place.to_bytes(4, "little")).digest(WORD_BYTES), "little")
        made.append(answer + n * (noise % (WORD_RANGE // n)))
    return b"".join(word.to_bytes(WORD_BYTES, "little") for word in made)


def random_words(label: str, count: int) -> bytes:
    """Return words that are the same in every run of the tests."""
    return shake_256(f"c kernel {label}".encode()).digest(count * WORD_BYTES)


# the weights of channels, code by code


def wave_rows(d: int, c: int, r_num: int, r_den: int) -> list[list[int]]:
    """Return a wave's weights, one row an input."""
    return profile_rows(d, [r_num] * (2 * c + 1), r_den)


def profile_rows(d: int, weights: list[int], r_den: int) -> list[list[int]]:
    """Return a profile's weights, one row an input."""
    return [profile_row(d, weights, r_den, i) for i in range(d)]


def profile_row(d: int, weights: list[int], r_den: int, index: int) -> list[int]:
    """Return the weights of one input."""
    return [r_den] * index + weights + [r_den] * (d - 1 - index)


def sampled(d: int, r_num: int, r_den: int, index: int, draw: Uniform) -> int:
    """Return a code of Wave(d, 0, r_num, r_den): near codes first, then the others in order."""
    row = profile_row(d, [r_num], r_den, index)
    order = [index, *(j for j in range(d) if j != index)]
    u = draw(sum(row))
    sums = accumulate(row[j] for j in order)
    return next(j for j, above in zip(order, sums, strict=True) if u < above)


# oracles, straight from their definitions


def grr(size: int, r_num: int, r_den: int, value: int, draw: Uniform) -> Report:
    """[code]: the value itself, or some other."""
    return (sampled(size, r_num, r_den, value, draw),)


def olh(g: int, r_num: int, r_den: int, value: int, draw: Uniform) -> Report:
    """[a, b, code] of a random hash to 0..g-1."""
    a = 1 + draw(PRIME - 1)
    b = draw(PRIME)
    return a, b, sampled(g, r_num, r_den, (a * value + b) % PRIME % g, draw)


def hrr(size: int, r_num: int, r_den: int, value: int, draw: Uniform) -> Report:
    """[row, bit] of a Hadamard matrix of the least power of two that holds `size`."""
    row = draw(1 << (size - 1).bit_length())
    return row, sampled(2, r_num, r_den, (row & value).bit_count() % 2, draw)


def haar_hrr(size: int, r_num: int, r_den: int, value: int, draw: Uniform) -> Report:
    """[level, row, bit]: one coefficient of the Haar tree through a Hadamard matrix."""
    height = (size - 1).bit_length()
    level = draw(height)
    row = draw((1 << height) >> (level + 1))
    bit = ((row & value >> (level + 1)).bit_count() + (value >> level)) % 2
    return level, row, sampled(2, r_num, r_den, bit, draw)


def oue(size: int, r_num: int, r_den: int, value: int, draw: Uniform) -> Report:
    """One bit a category: a half for the value's own, r_den/(r_num + r_den) for another."""
    own, other = r_num + r_den, 2 * r_den
    return tuple(int(draw(2 * own) < (own if k == value else other)) for k in range(size))


def hh(fanout: int, levels: list[OfValue], value: int, draw: Uniform) -> Report:
    """[level, ...that level's report] of the value's node on a level drawn at random."""
    level = draw(len(levels))
    node = value // fanout ** (len(levels) - 1 - level)
    return level, *levels[level](node, draw)
