"""Channels by explicit weights: sampling, ratios, and the weights that are refused."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.channel import Wave, wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.table import Profile, Table, first_above, profile, table
from edge_ldp.mechanisms.decoders import affine
from tests.edge_ldp.laws import exact_law

WAVES = [
    wave(d, c, r_num, r_den)
    for d in (2, 3, 5)
    for c in (0, 1, 3)
    for r_num, r_den in ((2, 1), (7, 3))
]
CHANNELS: list[Wave | Profile | Table] = [
    *WAVES,
    profile(2, [3], 1),
    profile(4, [2, 3, 2], 1),
    profile(3, [4, 4, 5, 4, 4], 3),
    profile(7, [2, 5, 2], 2),
    table([[3, 1], [1, 3]]),
    table([[1, 9], [5, 5]]),  # the largest ratio in the first column only
    table([[9, 1], [5, 5]]),  # and in the last
    table([[5, 3, 1, 1], [2, 3, 3, 2], [1, 1, 3, 5]]),
    table([[1, 2, 3], [3, 2, 1], [2, 2, 2], [1, 1, 4]]),
]


@pytest.mark.parametrize("channel", CHANNELS, ids=str)
def test_sampling_follows_the_weights(channel: Wave | Profile | Table) -> None:
    for index in range(channel.d):
        law = exact_law(lambda draw: channel.sample(index, draw))  # noqa: B023
        weights = [channel.weight(index, code) for code in range(channel.code_count)]
        assert sum(weights) == channel.total
        assert law == {code: Fraction(x, channel.total) for code, x in enumerate(weights)}


@pytest.mark.parametrize("channel", CHANNELS, ids=str)
def test_no_two_inputs_weights_differ_by_more_than_the_ratio(
    channel: Wave | Profile | Table,
) -> None:
    columns = [
        [channel.weight(i, code) for i in range(channel.d)] for code in range(channel.code_count)
    ]
    largest = max(Fraction(max(column), min(column)) for column in columns)
    assert largest <= Fraction(*channel.ratio())
    if not isinstance(channel, Profile) or channel.d > 2 * channel.c:
        assert largest == Fraction(*channel.ratio())


@pytest.mark.parametrize("shape", [c for c in CHANNELS if not isinstance(c, Table)], ids=str)
def test_decoding_a_wave_or_a_symmetric_profile_is_unbiased_exactly(shape: Wave | Profile) -> None:
    decoder = affine(shape)
    for index in range(shape.d):
        weighed = [(shape.weight(index, j), decoder.index(j)) for j in range(shape.code_count)]
        mean = sum(weight * y for weight, y in weighed) / shape.total
        square = sum(weight * y * y for weight, y in weighed) / shape.total
        assert decoder.moments(index) == (mean, square)
        assert mean == index


@pytest.mark.parametrize(("d", "c"), [(2, 0), (3, 2), (7, 1)])
def test_a_wave_is_a_profile_of_equal_weights_and_a_table(d: int, c: int) -> None:
    flat = wave(d, c, 5, 2)
    same = profile(d, [5] * (2 * c + 1), 2)
    listed = table([[flat.weight(i, j) for j in range(flat.code_count)] for i in range(d)])
    assert flat.total == same.total == listed.total
    assert flat.code_count == same.code_count == listed.code_count
    assert flat.ratio() == same.ratio() == listed.ratio()
    for i in range(d):
        assert [same.weight(i, j) for j in range(same.code_count)] == list(listed.weights[i])
        for u in range(flat.total):
            assert flat.sample(i, lambda _, u=u: u) == same.sample(i, lambda _, u=u: u)  # type: ignore[misc]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.data())
def test_the_search_finds_the_first_sum_above(weights: list[int], data: st.DataObject) -> None:
    sums = tuple(sum(weights[: at + 1]) for at in range(len(weights)))
    u = data.draw(st.integers(0, sums[-1] - 1))
    assert first_above(sums, u) == next(at for at, total in enumerate(sums) if u < total)


def test_the_widest_table_is_allowed() -> None:
    assert table([[1] * 65_536] * 2).code_count == 65_536


def test_weights_are_given_back() -> None:
    for d in (4, 65_534):  # the second with all the codes that there may be
        assert profile(d, [2, 3, 2], 1).weights == (2, 3, 2)
    assert table([[5, 3], [2, 6]]).weights == ((5, 3), (2, 6))


@pytest.mark.parametrize(
    ("given_parts", "name"),
    [
        ((1, [3], 1), "d"),
        ((2.0, [3], 1), "d"),
        ((65_537, [3], 1), "d"),
        ((4, [], 1), "weights"),
        ((4, [3, 3], 1), "weights"),
        ((4, [3, 0, 3], 1), "weights"),
        ((4, [3, 1, 3], 2), "weights"),
        ((4, [3, 2.5, 3], 2), "weights"),
        ((4, [True], 1), "weights"),
        ((4, [2, 2, 2], 2), "weights"),  # all the same: it would say nothing
        ((4, [3], 0), "r_den"),
        ((4, [3], "1"), "r_den"),
        ((4, [1 << 64], 1), "weights"),
        ((65_535, [3, 3, 3], 1), "c"),
    ],
)
def test_a_profile_that_is_none_is_refused_by_name(given_parts: Any, name: str) -> None:
    with pytest.raises(ParameterError) as refused:
        profile(*given_parts)
    assert refused.value.name == name


@pytest.mark.parametrize(
    "weights",
    [
        [],
        [[1, 2]],
        [[1], [1]],
        [[1, 2], [2, 1, 1]],
        [[1, 2], [2, 2]],  # two totals: the sampler would not follow the weights
        [[0, 3], [2, 1]],  # a code impossible under one input tells that input
        [[-1, 4], [2, 1]],
        [[1.0, 2], [2, 1]],
        [[True, 2], [2, 1]],
        [[1 << 63, 1 << 63], [1 << 63, 1 << 63]],
        [[1, 1]] * 65_537,
        [[1] * 65_537] * 2,
    ],
    ids=lambda weights: f"{len(weights)} rows",
)
def test_a_table_that_is_none_is_refused_by_name(weights: Any) -> None:
    with pytest.raises(ParameterError) as refused:
        table(weights)
    assert refused.value.name == "weights"
