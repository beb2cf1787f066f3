"""From when to when a plan can have been issued, by the dates of all: PLN-18."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.counting.refusals import earliest, latest

DATES = st.dictionaries(st.integers(1, 50), st.integers(0, 100), max_size=12)


@pytest.mark.parametrize(
    ("issued", "first", "last"),
    [
        ({}, {}, {}),
        ({1: 5, 2: 7}, {1: 5, 2: 7}, {1: 5, 2: 7}),
        ({1: 99, 2: 7}, {1: 0, 2: 7}, {1: 7, 2: 7}),  # the first was dated ahead
        ({1: 5, 3: 99, 4: 80, 9: 7}, {1: 5, 3: 5, 4: 5, 9: 7}, {1: 5, 3: 7, 4: 7, 9: 7}),
        ({1: 5, 2: 5}, {1: 5, 2: 5}, {1: 5, 2: 5}),
    ],
)
def test_what_is_dated_after_its_successor_was_issued_between_its_neighbours(
    issued: dict[int, int], first: dict[int, int], last: dict[int, int]
) -> None:
    assert earliest(issued) == first
    assert latest(issued) == last


@given(DATES)
def test_both_rise_with_the_epochs_and_hold_what_is_dated_right(issued: dict[int, int]) -> None:
    first, last = earliest(issued), latest(issued)
    assert first.keys() == last.keys() == issued.keys()
    for found in (first, last):
        assert [found[epoch] for epoch in sorted(found)] == sorted(found.values())
    for epoch, at_s in issued.items():
        assert first[epoch] <= last[epoch] <= at_s
        later = [issued[other] for other in issued if other > epoch]
        assert (first[epoch] == last[epoch] == at_s) or min(later, default=at_s) <= at_s
