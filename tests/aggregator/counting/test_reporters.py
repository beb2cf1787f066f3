"""Who reported in a cell: exact up to a crowd, whatever cells are united: AGG-30."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.counting.reporters import (
    ENOUGH,
    KINDS,
    NOBODY,
    STREAMS,
    at_least,
    hash_of,
    less,
    of_device,
    pack_reporters,
    reporters_of,
    united,
    unpack_reporters,
)
from edge_ldp.errors import RowError

DEVICES = [f"home-{at}" for at in range(100)]
cells = st.integers(0, 3) | st.integers(0, 2**46)
several = st.sets(st.integers(0, 200), max_size=2 * ENOUGH)


def packed(streams: set[int], surveys: set[int]) -> bytes:
    return pack_reporters(sorted(streams), sorted(surveys))


@given(st.lists(st.tuples(several, several), max_size=6))
def test_a_union_is_exact_below_enough_and_only_says_so_from_there_on_AGG_30(
    sets: list[tuple[set[int], set[int]]],
) -> None:
    blobs = [packed(*both) for both in sets]
    expected = packed(*(set[int]().union(*(both[kind] for both in sets)) for kind in (0, 1)))
    assert united(blobs) == expected
    assert united(blobs[::-1]) == united([united(blobs[:2]), united(blobs[2:])]) == expected
    assert united([expected, *blobs]) == expected
    for kind in KINDS:
        who = set[int]().union(*(both[kind] for both in sets))
        assert at_least(expected, kind) == min(ENOUGH, len(who))


def test_who_is_left_out_is_no_more_in_a_set_and_a_full_one_names_nobody_AGG_30() -> None:
    names = [f"home-{at}" for at in range(3)]
    hashes = {hash_of(name) for name in names}
    assert less(packed(hashes, {1, 2}), names[:2]) == packed({hash_of(names[2])}, {1, 2})
    assert less(packed(hashes, set()), names) == NOBODY
    assert at_least(less(packed(set(range(ENOUGH)), {1, 2}), names), STREAMS) == 0


def test_a_set_is_never_longer_than_two_of_almost_enough() -> None:
    names = range(ENOUGH - 1)
    assert len(pack_reporters(names, names)) == 2 + 8 * (ENOUGH - 1)
    assert len(pack_reporters(range(ENOUGH), range(9 * ENOUGH))) == 2
    assert pack_reporters([], []) == united([]) == united([NOBODY, NOBODY]) == NOBODY
    assert (at_least(NOBODY, STREAMS), at_least(NOBODY, 1)) == (0, 0)


@given(several, several)
def test_what_is_packed_comes_back(streams: set[int], surveys: set[int]) -> None:
    expected = tuple(None if len(one) >= ENOUGH else one for one in (streams, surveys))
    assert unpack_reporters(packed(streams, surveys)) == expected


@pytest.mark.parametrize(
    "blob", [b"\0", b"\1\0", b"\1\0\0\0\0", b"\x41\0", b"\0\x41", b"\x40\0\0\0\0\0", b"\0\0\0"]
)
def test_a_damaged_set_is_no_set(blob: bytes) -> None:
    with pytest.raises(RowError):
        unpack_reporters(blob)
    with pytest.raises(RowError):
        united([blob, packed({1}, {2})])


@given(st.lists(st.tuples(cells, st.integers(0, 99), st.booleans()), min_size=1, max_size=300))
def test_reports_in_columns_give_the_sets_of_a_plain_loop(
    reports: list[tuple[int, int, bool]],
) -> None:
    expected: dict[int, tuple[set[int], set[int]]] = {}
    for cell, who, is_survey in reports:
        expected.setdefault(cell, (set(), set()))[is_survey].add(hash_of(DEVICES[who]))
    cells, devices, surveys = zip(*reports, strict=True)
    found = reporters_of(np.array(cells), np.array(devices), np.array(surveys), DEVICES)
    assert found == {cell: packed(*both) for cell, both in expected.items()}


def test_names_with_one_hash_count_as_one_so_that_more_is_withheld() -> None:
    twice = reporters_of(np.array([3, 3]), np.array([0, 1]), np.array([False, False]), ["a", "a"])
    assert at_least(twice[3], STREAMS) == 1
    names = [hash_of(f"home-{at}") for at in range(5)]
    assert len(set(names)) == 5
    assert all(0 <= name < 2**32 for name in names)
    assert hash_of("home-0") == 0x65436688


def test_a_device_is_in_the_kinds_that_it_reported_in() -> None:
    who = {hash_of("a")}
    cases = {(1, 2): (who, set()), (1, 9): (who, who), (9, 9): (set(), who)}
    for codes, expected in cases.items():
        assert unpack_reporters(of_device("a", np.array(codes), 5)) == expected


def test_order_is_of_no_account() -> None:
    parts = [packed({1, 2}, {3}), packed(set(range(ENOUGH)), set()), packed({2}, {4}), NOBODY]
    assert len({united(order) for order in permutations(parts)}) == 1
