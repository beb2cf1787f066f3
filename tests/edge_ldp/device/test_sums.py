"""A home's sums on their way out: one encoding for each release, and nothing else is accepted."""

import struct
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device import sums_frame
from edge_ldp.device.draw import Draw
from edge_ldp.device.errors import ParameterError, WireError
from edge_ldp.device.laplace import block_laplace
from edge_ldp.device.sums import check_layout, release
from edge_ldp.device.sums_frame import SumsFrame, decode_sums, encode_sums, last_slot_of
from edge_ldp.period_sums import PeriodLayout
from tests.edge_ldp.continual.paths import bounded_law, noise_from
from tests.edge_ldp.golden import tables
from tests.edge_ldp.laws import Bytes

GOLDEN = tables("sums")
RELEASES = GOLDEN["valid"]["releases"] + GOLDEN["day"]["releases"]
FRAME = decode_sums(bytes.fromhex(GOLDEN["valid"]["releases"][2]["hex"]))


@pytest.mark.parametrize("row", RELEASES, ids=lambda row: row["name"])
def test_the_same_bytes_give_the_recorded_release(row: dict[str, Any]) -> None:
    source = Bytes(bytes.fromhex(row["entropy"]))
    y = release(row["sums"], row["scale"], row["block"], Draw(source, 1))
    fields = {key: row[key] for key in SumsFrame._fields if key in row}
    frame = SumsFrame(**fields | {"name": row["label"], "n": tuple(row["n"]), "y": y})
    payload = bytes.fromhex(row["hex"])
    assert encode_sums(frame) == payload
    assert decode_sums(payload) == frame
    assert len(payload) == sums_frame.HEAD_BYTES + len(row["unit"] + row["label"]) + 12 * len(y)


@pytest.mark.parametrize("row", GOLDEN["malformed"]["frames"], ids=lambda row: row["name"])
def test_what_is_no_release_is_refused_where_it_shows_REP_01(row: dict[str, Any]) -> None:
    with pytest.raises(WireError) as caught:
        decode_sums(bytes.fromhex(row["hex"]))
    assert (caught.value.reason, caught.value.offset) == (row["reason"], row["offset"])


@given(st.data())
def test_a_changed_frame_is_another_frame_or_none_REP_12(data: st.DataObject) -> None:
    """What is taken is written again as the same bytes: there is one encoding only."""
    row = data.draw(st.sampled_from(RELEASES))
    payload = bytearray.fromhex(row["hex"])
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = decode_sums(bytes(payload))
    except WireError:
        return
    assert encode_sums(found) == payload


LIMITS = {
    "stream": (-1, 16, 256),
    "series": (0, -1, 1 << 32),
    "batch": (0, 1 << 32),
    "period": (-1, 1 << 32, 1_597_831),
    "slot_seconds": (0, 7, 1 << 32, 900 + (1 << 32)),
    "days": (0, 367, 7 + (1 << 16)),
    "cells": (0, 5, 12, 256 + 8),
    "block": (0, 5, 256 + 4),
    "offset_s": (-900, 450, 86_400, 1 << 32),
    "low": ((1 << 62) + 1, -(1 << 62) - 1, 1 << 63),
    "span": (0, -1, 1 << 47, (1 << 47) + 43_470),
    "scale": (0, -1, 1 << 48, (1 << 48) + 7),
    "unit": ("", "W h", "W" * 17, "Ω"),
    "name": ("", "-a", "A", "a" * 64, "é"),
    "n": ((337,) + (1,) * 7, (-1,) + (1,) * 7, (1,) * 7, (1,) * 9, (1 << 32,) + (1,) * 7),
    "y": (((1 << 62) + 1,) + (1,) * 7, (1.5,) + (1,) * 7, (1,) * 9),
}


@pytest.mark.parametrize(("field", "wrong"), [(f, w) for f, ws in LIMITS.items() for w in ws])
def test_what_cannot_be_read_back_is_not_written(field: str, wrong: object) -> None:
    assert encode_sums(FRAME)
    with pytest.raises(ParameterError):
        encode_sums(FRAME._replace(**{field: wrong}))


@pytest.mark.parametrize("field", ["series", "low", "scale"])
def test_a_number_that_is_no_integer_is_refused(field: str) -> None:
    with pytest.raises(ParameterError):
        encode_sums(FRAME._replace(**{field: True}))


@pytest.mark.parametrize("y", [1 << 62, -(1 << 62)])
def test_the_largest_sums_are_read_back(y: int) -> None:
    frame = FRAME._replace(y=(y,) * 8)
    assert decode_sums(encode_sums(frame)) == frame


@pytest.mark.parametrize("offset_s", [0, 900])
def test_a_releases_last_slot_is_the_one_before_the_next_period(offset_s: int) -> None:
    layout = PeriodLayout(900, 7, 8, offset_s, 1)
    changes = {"slot_seconds": 900, "days": 7, "offset_s": offset_s}
    assert last_slot_of(FRAME._replace(period=5, **changes)) == layout.first_slot(6) - 1


CELLS = (1, 2, 3, 4, 6, 8, 12, 24, 48, 96)


def layout_holds(*numbers: int) -> bool:
    try:
        check_layout(*numbers)
    except ParameterError:
        return False
    return True


def test_a_day_has_so_many_cells_of_whole_slots_and_begins_within_it() -> None:
    assert [n for n in range(100) if layout_holds(450, 1, n, 0, 1)] == list(CELLS)
    assert [s for s in range(6) if layout_holds(s, 1, 1, 0, 1)] == [1, 2, 3, 4, 5]
    assert [days for days in range(4) if layout_holds(900, days, 96, 0, 1)] == [2, 3]
    offsets = (-1, 0, 1, 86_399, 86_400)
    assert [at for at in offsets if layout_holds(1, 1, 1, at, 1)] == [0, 1, 86_399]


def test_the_last_period_is_the_last_whose_slots_32_bits_hold() -> None:
    layout = PeriodLayout(900, 28, 24, 79_200, 4)
    last = layout.period((1 << 32) - 1) - 1
    assert encode_sums(FRAME._replace(period=last))
    assert layout.first_slot(last + 1) < 1 << 32
    with pytest.raises(ParameterError):
        encode_sums(FRAME._replace(period=last + 1))


def test_a_frame_and_a_layout_take_the_same_numbers() -> None:
    """Every combination of a few good and bad numbers: both rooms ask the one rule."""
    numbers = ((900, 7, 86_400), (1, 0, 366), (*CELLS, 5), (0, 900), (1, 2))
    for seconds, days, cells, offset_s, block in product(*numbers):
        changes: dict[str, Any] = {
            "slot_seconds": seconds,
            "days": days,
            "cells": cells,
            "offset_s": offset_s,
        }
        changes |= {"block": block, "period": 1, "n": (0,) * cells, "y": (0,) * cells}
        try:
            check_layout(seconds, days, cells, offset_s, block)
        except ParameterError:
            with pytest.raises(ParameterError):
                encode_sums(FRAME._replace(**changes))
        else:
            assert encode_sums(FRAME._replace(**changes))


def test_a_head_says_what_struct_says_of_it() -> None:
    assert struct.calcsize("<2sBBBIIIIHBBIqQQBB") == sums_frame.HEAD_BYTES


@pytest.mark.parametrize(("cells", "block"), [(2, 1), (2, 2)])
def test_a_release_is_the_sums_and_their_noise_exactly(cells: int, block: int) -> None:
    """Every path of the draws: the law of y is that of the noise, moved by S."""

    def code(values: "tuple[int, ...]") -> int:
        return sum((one + 500) * 1001**at for at, one in enumerate(values))

    moved, _ = bounded_law(
        lambda draw: code(release((3, -2)[:cells], 1, block, draw)), Fraction(1, 1000)
    )
    plain, _ = bounded_law(
        lambda draw: code(
            block_laplace(1, 2, draw)
            if block > 1
            else (block_laplace(1, 1, draw)[0], block_laplace(1, 1, draw)[0])
        ),
        Fraction(1, 1000),
    )
    shift = 3 - 2 * 1001
    assert moved == {value + shift: chance for value, chance in plain.items()}


def test_how_much_is_drawn_depends_on_no_sum() -> None:
    drawn = []
    for sums in ((0,) * 8, tuple(range(10**9, 10**9 + 8))):
        asked: list[int] = []
        noise = noise_from(5)

        def draw(n: int, noise: Any = noise, asked: list[int] = asked) -> int:
            asked.append(n)
            return int(noise(n))

        release(sums, 1000, 4, draw)
        drawn.append(asked)
    assert drawn[0] == drawn[1]


def test_blocks_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ParameterError, match="block"):
        release((1, 2, 3), 5, 2, lambda _: 0)
