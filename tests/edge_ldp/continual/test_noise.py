"""Tables, keys and arrays give the discrete Laplace law, exactly, and the same numbers always."""

import hashlib
from array import array
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import islice
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import ParameterError
from edge_ldp.continual.arrays import ArrayNoise
from edge_ldp.continual.noise import (
    BLOCK,
    WORD_BITS,
    Column,
    NodeNoise,
    fresh_key,
    laplace_columns,
    survivals,
)
from edge_ldp.continual.shape import Shape
from tests.edge_ldp.laws import scripted
from tests.reached import reached

F = Fraction
SCALES = [F(1, 3), F(2), F(26), F(53, 2), F(2000), F(10**6, 7), F(1 << 40)]
KEY = bytes(range(32))


def survival(column: Column, k: int) -> Decimal:
    """S_k from its definition, to 90 digits."""
    rate = Decimal(column.rate.numerator) / column.rate.denominator
    q = (-rate).exp()
    if column.kind == "sign":
        return [2 * q / (1 + q), q / (1 + q)][k - 1]
    end = (-256 * rate).exp() if column.kind == "digit" else 0
    return ((-k * rate).exp() - end) / (1 - end)


@pytest.fixture(autouse=True)
def _digits() -> Iterator[None]:
    with localcontext() as context:
        context.prec = 90
        yield


@pytest.mark.parametrize("scale", SCALES)
def test_thresholds_are_the_survival_probabilities_rounded_down(scale: Fraction) -> None:
    for column in laplace_columns(scale):
        falling = column.thresholds[::-1]
        for k, threshold in enumerate(falling, start=1):
            assert threshold == int(survival(column, k) * 2**WORD_BITS)
        assert list(falling) == sorted(falling, reverse=True)
        assert len(falling) <= 600
        if column.kind == "top":
            assert survival(column, len(falling) + 1) * 2**WORD_BITS < 1


@pytest.mark.parametrize("scale", [F(1, 3), F(2), F(2000), F(10**6, 7)])
def test_digits_put_together_have_the_discrete_laplace_law(scale: Fraction) -> None:
    sign, *digits = laplace_columns(scale)

    def chance(column: Column, digit: int) -> Decimal:
        last = {"sign": 2, "digit": 255, "top": 1 << 60}[column.kind]
        high = survival(column, digit) if digit else Decimal(1)
        return high - (survival(column, digit + 1) if digit < last else 0)

    q = (-Decimal(scale.denominator) / scale.numerator).exp()
    for value in (0, 1, -1, 2, -3, 255, -256, 257, 1000, 70_000):
        size = abs(value) - 1
        law = chance(sign, 0 if not value else 2 if value > 0 else 1)
        for column in digits if value else ():
            law *= chance(column, size if column is digits[-1] else size % 256)
            size //= 256
        want = (1 - q) / (1 + q) * q ** abs(value)
        assert abs(law - want) <= Decimal("1e-60")


def test_bounds_of_survivals_hold_at_every_precision() -> None:
    for column in laplace_columns(F(2000)):
        for bits in (32, 64, 128):
            for k, (low, high) in enumerate(islice(survivals(column.kind, column.rate, bits), 2)):
                assert low <= survival(column, k + 1) * 2**bits + Decimal("1e-9")
                assert survival(column, k + 1) * 2**bits <= high + Decimal("1e-9")
                assert high - low <= 2


def test_a_word_that_equals_a_threshold_is_decided_by_the_next() -> None:
    column = laplace_columns(F(2))[1]
    at = column.thresholds[-1]  # of S_1
    rest = int(survival(column, 1) * 2**64) % 2**32
    assert column.digit(at, [rest - 1].__getitem__) == 1
    assert column.digit(at, [rest + 1].__getitem__) == 0
    more = int(survival(column, 1) * 2**96) % 2**32
    assert column.digit(at, [rest, more - 1].__getitem__) == 1
    assert column.digit(at, [rest, more + 1].__getitem__) == 0
    assert column.digit(at + 1, scripted()) == 0
    assert column.digit(at - 1, scripted()) == 1


def test_the_word_zero_may_mean_any_large_digit() -> None:
    column = laplace_columns(F(2))[1]
    digit = column.digit(0, [0, 5].__getitem__)
    low, high = 5 / 2**96, 6 / 2**96
    assert exp(-(digit + 1) / 2) <= high
    assert low <= exp(-digit / 2)


@pytest.mark.parametrize("scale", SCALES[:-1])
def test_arrays_give_the_scalar_numbers(scale: Fraction) -> None:
    noise = NodeNoise(KEY, scale)
    arrays = ArrayNoise(noise, Shape("consistent", 16, 256))
    for level, first, count in [(0, 0, 3000), (2, 250, 10), (1, 700, 1)]:
        plain = noise.many(level, first, count)
        assert arrays.nodes(level, first, count).tolist() == plain
        assert [noise.one(level, first + at) for at in range(count)] == plain


def test_arrays_settle_ties_as_the_scalar_does() -> None:
    """Words are made to tie: thresholds themselves, and 0."""
    noise = NodeNoise(KEY, F(300))
    arrays = ArrayNoise(noise, Shape("consistent", 16, 256))
    for at, column in enumerate(noise.columns):
        words = np.array([0, *column.thresholds, *(t + 1 for t in column.thresholds)], np.uint32)
        digits = arrays.digits(at, words, 3, 11).tolist()
        above = noise.above(at, array("I", words.tolist()), 3, 11)
        assert digits == [len(column.thresholds) - count for count in above]
        assert digits == [
            column.digit(int(word), noise.further(3, 11 + place, at))
            for place, word in enumerate(words)
        ]


def test_noise_has_its_law_in_bulk() -> None:
    """χ² of 40,000 numbers over 41 cells: above 73.4 with one key in a thousand."""
    q = exp(-1 / 5)
    found = Counter(max(-20, min(20, n)) for n in NodeNoise(KEY, F(5)).many(0, 0, 40_000))
    chance = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-19, 20)}
    chance[20] = chance[-20] = (1 - sum(chance.values())) / 2
    assert sum((found[k] - 40_000 * p) ** 2 / (40_000 * p) for k, p in chance.items()) < 73.4


def test_levels_indices_and_keys_have_noise_of_their_own() -> None:
    noise, other = NodeNoise(KEY, F(10**6)), NodeNoise(KEY[::-1], F(10**6))
    drawn = [
        *noise.many(0, 0, 2 * BLOCK),
        *noise.many(1, 0, 2 * BLOCK),
        *other.many(0, 0, 2 * BLOCK),
    ]
    assert len(set(drawn)) > 1400  # of 1536, 10^6 wide


@given(st.binary(min_size=32, max_size=32), st.integers(0, 9), st.integers(0, 10**6))
def test_a_restart_finds_the_same_noise(key: bytes, level: int, index: int) -> None:
    first, again = NodeNoise(key, F(77)), NodeNoise(key, F(77))
    again.one(level, index + 300)
    assert first.one(level, index) == again.one(level, index) == first.many(level, index, 1)[0]
    assert first.key == key


@given(st.integers(0, 3), st.integers(0, 700), st.integers(0, 300))
def test_a_stream_of_noise_is_the_nodes_one_by_one(level: int, first: int, count: int) -> None:
    noise = NodeNoise(KEY, F(50))
    assert list(noise.stream(level, first, first + count)) == noise.many(level, first, count)


def test_a_wiped_key_gives_nothing_any_more() -> None:
    noise = NodeNoise(KEY, F(3))
    noise.one(0, 0)
    (held,) = [one for one in reached(noise) if isinstance(one, bytearray)]
    noise.wipe()
    assert not held
    assert not noise.key
    with pytest.raises(ParameterError):
        noise.one(0, 0)


def test_a_key_is_made_of_four_words() -> None:
    words = [1, 2, 3, (1 << 64) - 1]
    key = fresh_key(scripted(*words))
    assert [int.from_bytes(key[at : at + 8], "little") for at in (0, 8, 16, 24)] == words


def test_scales_and_keys_that_cannot_be_are_refused() -> None:
    for scale in (F(0), F(1, 2000), F((1 << 40) + 1)):
        with pytest.raises(ParameterError):
            NodeNoise(KEY, scale)
    with pytest.raises(ParameterError):
        NodeNoise(KEY[1:], F(1))


def test_the_noise_of_a_key_never_changes() -> None:
    """Written once: a stored chunk must be continued by later versions too."""
    drawn = NodeNoise(KEY, F(2000)).many(0, 0, 1000)
    assert drawn[:6] == GOLDEN
    digest = hashlib.sha256(repr(drawn).encode()).hexdigest()
    assert digest.startswith(GOLDEN_DIGEST)


GOLDEN = [-1230, 4199, 3899, -1160, 1838, 1011]
GOLDEN_DIGEST = "8a9349eb81f5e013"
