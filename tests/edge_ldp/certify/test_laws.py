"""What follows from a band's structure, against every weight of it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.certify.channels import evenly_chosen, prove_channel
from edge_ldp.certify.laws import WaveBand, channel_law, row_moments
from edge_ldp.device.channel import wave
from edge_ldp.device.table import profile, table
from tests.edge_ldp.laws import scripted

BANDS = st.builds(
    lambda d, near, far: WaveBand("profile", d, tuple(far + w for w in near), far),
    st.integers(2, 9),
    st.lists(st.integers(0, 9), min_size=1, max_size=9).filter(lambda near: len(near) % 2 == 1),
    st.integers(1, 9),
)


@given(BANDS)
def test_rows_and_columns_of_a_band_are_one_matrix(band: WaveBand) -> None:
    rows = [band.row(i) for i in range(band.d)]
    assert all(len(row) == band.code_count for row in rows)
    assert [band.column(j) for j in range(band.code_count)] == [
        list(column) for column in zip(*rows, strict=True)
    ]
    assert band.totals() == set(map(sum, rows))
    assert band.least() == min(map(min, rows))


@given(BANDS)
def test_the_ratio_of_a_band_is_that_of_its_worst_column(band: WaveBand) -> None:
    columns = zip(*(band.row(i) for i in range(band.d)), strict=True)
    assert band.ratio() == max(Fraction(max(c), min(c)) for c in columns)


@given(BANDS, st.integers(-9, 9), st.integers(-9, 9))
def test_the_moments_of_a_band_are_those_by_definition(
    band: WaveBand, first: int, gap: int
) -> None:
    outputs = [first + gap * j for j in range(band.code_count)]
    assert band.moments(outputs) == [row_moments(band.row(i), outputs) for i in range(band.d)]


def test_a_table_is_its_rows() -> None:
    law = channel_law(table([[1, 4], [3, 2], [2, 3]]))
    assert [law.row(i) for i in range(3)] == [[1, 4], [3, 2], [2, 3]]
    assert [law.column(j) for j in range(2)] == [[1, 3, 2], [4, 2, 3]]
    assert (law.totals(), law.least()) == ({5}, 1)
    assert law.ratio() == 3
    assert law.moments([-1, 1]) == [(3, 5), (-1, 5), (1, 5)]


def test_uneven_outputs_of_a_band_have_no_moments() -> None:
    assert WaveBand("wave", 3, (5, 5, 5), 1).moments([0, 1, 2, 3, 5]) is None


@pytest.mark.parametrize(
    "channel",
    [wave(5, 2, 7, 3), wave(3, 4, 5, 1), profile(4, [3, 5, 9, 5, 3], 2), table([[1, 4], [3, 2]])],
    ids=lambda channel: type(channel).__name__,
)
def test_the_order_of_draws_is_that_of_the_sampler(channel: object) -> None:
    law = channel_law(channel)  # type: ignore[arg-type]
    for i in range(channel.d):  # type: ignore[attr-defined]
        row = law.row(i)
        runs = [code for code in law.order(i) for _ in range(row[code])]
        total = channel.total  # type: ignore[attr-defined]
        sample = channel.sample  # type: ignore[attr-defined]
        assert [sample(i, scripted(u)) for u in range(total)] == runs


def test_spots_hold_both_ends_and_the_middle_and_are_the_same_everywhere() -> None:
    assert evenly_chosen(3) == (0, 1, 2)
    assert evenly_chosen(1 << 16) == (0, 5909, 15470, 30941, 32768, 40503, 55974, 65535)
    assert len(evenly_chosen(1 << 48)) == 8


def test_a_small_channel_is_read_whole_and_a_large_one_in_rows_and_columns() -> None:
    small = prove_channel(wave(256, 78, 178_145, 65_536))
    assert small.weights == 256 * 412
    assert (len(small.rows), len(small.columns)) == (256, 412)
    large = prove_channel(wave(1024, 262, 178_145, 65_536))
    assert large.weights == 8 * 1548 + 8 * (1024 - 8)
    assert all(claim.holds for proof in (small, large) for claim in proof.claims)
