"""Slots of several meters become slots of the home: once, in order, complete when they can be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.claims.joining import SlotJoin
from agent.claims.slots import SlotValues


def test_one_meters_slots_pass_as_they_come() -> None:
    join = SlotJoin([(0, 1)])
    for slot in (4, 5, 9):
        assert join.take(0, SlotValues(slot, (slot, None))) == [SlotValues(slot, (slot, None))]
    assert join.close_before(100) == []


@pytest.mark.parametrize("slot", [0, 7])
def test_a_slot_waits_for_every_meter_and_takes_each_value_to_its_stream(slot: int) -> None:
    join = SlotJoin([(0, 2), (1,)])
    assert join.take(0, SlotValues(slot, (10, 30))) == []
    assert join.take(1, SlotValues(slot, (20,))) == [SlotValues(slot, (10, 20, 30))]


def test_a_meter_that_went_on_without_a_slot_holds_nobody_back() -> None:
    join = SlotJoin([(0,), (1,)])
    assert join.take(0, SlotValues(7, (10,))) == []
    assert join.take(1, SlotValues(8, (20,))) == [SlotValues(7, (10, None))]
    assert join.take(0, SlotValues(8, (11,))) == [SlotValues(8, (11, 20))]


def test_when_its_time_is_over_a_slot_goes_as_it_is_and_what_comes_later_is_lost() -> None:
    join = SlotJoin([(0,), (1,)])
    join.take(0, SlotValues(7, (10,)))
    assert join.close_before(7) == []
    assert join.close_before(8) == [SlotValues(7, (10, None))]
    assert join.take(1, SlotValues(7, (20,))) == []
    assert join.close_before(10**9) == []


def test_looking_far_ahead_closes_nothing_that_did_not_come() -> None:
    """As of a clock that was years ahead: slots go on where they are."""
    join = SlotJoin([(0,), (1,)])
    assert join.close_before(10**9) == []
    join.take(0, SlotValues(7, (10,)))
    assert join.take(1, SlotValues(7, (20,))) == [SlotValues(7, (10, 20))]


@pytest.mark.parametrize("meters", [1, 2, 3])
@given(st.data())
def test_every_slot_comes_once_in_order_and_presence_hangs_on_times_alone(
    meters: int, data: st.DataObject
) -> None:
    """Any interleaving of rising slots and looks at the clock; other values, the same slots."""
    steps = data.draw(
        st.lists(st.tuples(st.integers(0, meters), st.integers(0, 3)), max_size=40), "steps"
    )
    values = data.draw(st.lists(st.integers(), min_size=2, max_size=2, unique=True), "values")
    seen = []
    for value in values:
        join, at, out = SlotJoin([(k,) for k in range(meters)]), [0] * meters, []
        given_slots = set()
        for who, step in steps:
            if who == meters:
                out += join.close_before(max(at) - step)
                continue
            at[who] += step + 1
            given_slots.add(at[who])
            out += join.take(who, SlotValues(at[who], (value,)))
        out += join.close_before(10**6)
        slots = [one.slot for one in out]
        assert slots == sorted(set(slots))
        assert set(slots) <= given_slots
        seen.append([(one.slot, [v is None for v in one.values]) for one in out])
    assert seen[0] == seen[1]
