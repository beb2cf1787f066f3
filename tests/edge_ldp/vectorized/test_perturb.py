"""From the same bytes the same codes as the scalar kernel, whatever the bytes."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_ldp import (
    EntropyError,
    Hybrid,
    Mechanism,
    ParameterError,
    Piecewise,
    SquareWave,
    StochasticRounding,
    Tuned,
)
from edge_ldp.device.draw import WORD_RANGE, limit_of
from edge_ldp.vectorized import decode_many, decode_table, draw_many, perturb_many
from tests.edge_ldp.laws import ALL, Bytes, draw_from, small, words
from tests.edge_ldp.vectorized.test_oracles import mostly_refused

TOP = WORD_RANGE - 1
REAL = [
    Tuned(epsilon=1, low=-7, high=3000),
    SquareWave(epsilon=1, low=0, high=5000),
    StochasticRounding(epsilon="0.1", low=-7, high=100),
    Piecewise(epsilon=8, low=-(1 << 46), high=1 << 46, size=512),
    Hybrid(epsilon=2, low=0, high=1657),
    Hybrid(epsilon=32, low=0, high=1657, size=16),  # a quarter of the words is refused
    small(Hybrid, 0, 12, (5, 1, 1 << 60, 3), (2, 0, 1 << 63, 7), coin=(2, 3)),  # nearly half
]
EVERY = ALL + REAL
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


def both_ways(m: Mechanism, values: list[int], entropy: bytes) -> tuple[list[int], list[int]]:
    """Return the scalar and the vectorized codes; both must use up the same bytes."""
    draw, source = draw_from(entropy)
    scalar = [m.randomizer.perturb(value, draw) for value in values]
    used = Bytes(entropy)
    codes = perturb_many(m, np.array(values, np.int64), entropy=used)
    assert used.left == source.left
    return scalar, codes.tolist()


@settings(max_examples=200)
@given(
    st.sampled_from(EVERY),
    st.lists(st.integers(-20, 20) | st.integers(LOWEST, HIGHEST), max_size=20),
    mostly_refused(),
)
def test_the_same_bytes_give_the_same_codes(
    m: Mechanism, values: list[int], entropy: bytes
) -> None:
    scalar, vectorized = both_ways(m, values, entropy)
    assert vectorized == scalar


@pytest.mark.parametrize("m", EVERY, ids=repr)
@pytest.mark.parametrize("report", range(4))
def test_a_word_refused_in_any_column_of_any_row_changes_no_other(
    m: Mechanism, report: int
) -> None:
    values = [m.low, m.high, (m.low + m.high) // 2, m.low - 1]
    plain: list[int] = []
    ranges: list[list[int]] = []
    for value in values:
        ranges.append([])

        def draw(n: int) -> int:
            ranges[-1].append(n)
            plain.append((3 * len(plain) + 1) % min(n, 1 << 60))
            return plain[-1] % n

        m.randomizer.perturb(value, draw)
    first = sum(len(asked) for asked in ranges[:report])
    for column, n in enumerate(ranges[report]):
        at = first + column
        for refused in ([TOP], [limit_of(n)], [TOP, limit_of(n)]):
            if limit_of(n) < WORD_RANGE:
                entropy = words(*plain[:at], *refused, *plain[at:])
                scalar, vectorized = both_ways(m, values, entropy)
                assert vectorized == scalar
                assert scalar == both_ways(m, values, words(*plain))[0]


def test_chunks_are_seamless() -> None:
    m = StochasticRounding(epsilon=1, low=0, high=9)
    count = (1 << 16) + 3
    rng = np.random.default_rng(5)
    entropy = rng.bytes(count * 16)
    values = rng.integers(-3, 13, count)
    whole = perturb_many(m, values, entropy=Bytes(entropy))
    source = Bytes(entropy)
    parts = [perturb_many(m, part, entropy=source) for part in np.split(values, [70, 40_000])]
    assert whole.tolist() == np.concatenate(parts).tolist()


@given(
    st.sampled_from([1, 2, 3, 10, 97, 1 << 16, (1 << 63) - 1, (1 << 62) + 1, 1 << 63]),
    st.integers(0, 20),
    mostly_refused(),
)
def test_many_draws_are_the_scalar_draws(n: int, count: int, entropy: bytes) -> None:
    draw, source = draw_from(entropy)
    used = Bytes(entropy)
    assert draw_many(n, count, entropy=used).tolist() == [draw(n) for _ in range(count)]
    assert used.left == source.left


@pytest.mark.parametrize("n", [0, -1, (1 << 63) + 1, 1 << 64])
def test_ranges_beyond_the_arrays_integers_are_refused(n: int) -> None:
    with pytest.raises(ParameterError):
        draw_many(n, 1)


@pytest.mark.parametrize(
    "run",
    [
        lambda source: perturb_many(REAL[3], np.arange(5), entropy=source),
        lambda source: draw_many(6, 5, entropy=source),
    ],
)
def test_a_source_that_runs_dry_gives_no_code(run: Callable[[Bytes], object]) -> None:
    with pytest.raises(EntropyError):
        run(Bytes(bytes(39)))


def test_values_of_any_integer_type_are_clamped_not_wrapped() -> None:
    m = SquareWave(epsilon=1, low=-100, high=100, size=8)
    for dtype in (np.uint8, np.uint32, np.uint64, np.int8, np.int64):
        top = np.iinfo(dtype).max
        values = np.array([top, top - 1], dtype)
        draw, _ = draw_from(bytes(16))
        scalar = [m.randomizer.perturb(int(value), draw) for value in values]
        assert perturb_many(m, values, entropy=bytes).tolist() == scalar


def test_a_range_beyond_the_arrays_integers_is_refused() -> None:
    for low in (1 << 62, 1 << 63, -(1 << 63), 1 << 80):
        with pytest.raises(ParameterError):
            perturb_many(StochasticRounding(epsilon=1, low=low, high=low + 9), [1])
    m = small(Piecewise, 0, (1 << 48) - 1, (65_000, 3, 2, 1))
    with pytest.raises(ParameterError):
        perturb_many(m, [1])


@pytest.mark.parametrize("values", [[1.0], ["1"], [True], [None], [1 << 70], [0.5, 2]])
def test_only_integers_are_randomised(values: list[object]) -> None:
    with pytest.raises(ParameterError):
        perturb_many(REAL[0], np.array(values))


@pytest.mark.parametrize("codes", [[1.0], ["a"], [True], [None], [[1, 2], [3]], 1 << 70])
def test_only_integers_are_decoded(codes: object) -> None:
    with pytest.raises(ParameterError):
        decode_many(REAL[0], codes)  # type: ignore[arg-type]
    with pytest.raises(ParameterError):
        perturb_many(REAL[0], codes)  # type: ignore[arg-type]


def test_shapes_are_flattened_and_nothing_gives_nothing() -> None:
    grid = perturb_many(REAL[0], np.arange(12).reshape(3, 4))
    assert grid.shape == (12,)
    empty: list[int] = []
    for nothing in (np.zeros(0, np.int64), np.array(empty)):
        assert perturb_many(REAL[0], nothing).shape == (0,)
        assert decode_many(REAL[0], nothing).shape == (0,)


@pytest.mark.parametrize("m", EVERY, ids=repr)
def test_many_codes_decode_as_each_one_does(m: Mechanism) -> None:
    table = [m.decode(code) for code in range(m.code_count)]
    assert decode_table(m).tolist() == table
    codes = np.arange(m.code_count)[::-1]
    assert decode_many(m, codes).tolist() == table[::-1]
    for wrong in (-1, m.code_count):
        with pytest.raises(ParameterError):
            decode_many(m, [0, wrong])
    assert decode_many(m, np.zeros(0, np.int64)).shape == (0,)
