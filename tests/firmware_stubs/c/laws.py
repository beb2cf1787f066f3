"""Every sequence of draws, given to the C kernel as words; models written from the law itself.

A model is a function of a draw. Its every outcome is run; the C kernel, given words that stand for
the same answers, must come to the same result. The words are not the answers themselves but some
multiple of n above them, so that a kernel which draws from another n comes to another result.
"""

from collections.abc import Callable, Iterable
from fractions import Fraction
from hashlib import shake_256
from math import prod
from typing import TypeVar

from tests.edge_ldp.laws import Uniform, outcomes

T = TypeVar("T")

WORD_BYTES = 8
WORD_RANGE = 1 << 64

Sequence = tuple[tuple[int, int], ...]  # the n asked for and the answer, draw by draw


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
    return profile_rows(d, [r_num] * (2 * c + 1), r_den)


def profile_rows(d: int, weights: list[int], r_den: int) -> list[list[int]]:
    return [profile_row(d, weights, r_den, i) for i in range(d)]


def profile_row(d: int, weights: list[int], r_den: int, index: int) -> list[int]:
    return [r_den] * index + weights + [r_den] * (d - 1 - index)
