"""Slot values: exact means and rises, and presence that looks at times alone."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.claims.slots import Kind, SlotBuilder, SlotValues, round_half_up

SLOT_S = 900
BORDER_S = 60
T0 = 1_800_000_000  # the start of a slot
SLOT = T0 // SLOT_S

Step = tuple[int, int]  # (seconds after T0, reading)


def closed_by(kind: Kind, steps: Sequence[Step], *, end_s: int | None = None) -> dict[int, int]:
    """Return the values of the slots (numbered from T0) that these readings close."""
    builder = SlotBuilder(SLOT_S, [("x", kind)])
    events = [builder.read(T0 + at_s, {"x": reading}) for at_s, reading in steps]
    if end_s is not None:
        events.append(builder.close_before((T0 + end_s) // SLOT_S))
    return {
        event.slot - SLOT: value
        for event in events
        if event is not None and (value := event.values[0]) is not None
    }


def test_a_clock_that_begins_in_1970_has_a_slot_0() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    assert builder.read(0, {"x": 5}) is None
    assert builder.close_before(1) == SlotValues(0, (5,))
    assert not builder.is_ahead(0)


@pytest.mark.parametrize(
    ("total", "count", "rounded"),
    [
        (0, 1, 0),
        (1, 2, 1),
        (-1, 2, 0),
        (3, 2, 2),
        (-3, 2, -1),
        (1, 3, 0),
        (2, 3, 1),
        (-1, 3, 0),
        (-2, 3, -1),
        (5, 10, 1),
        (-5, 10, 0),
        (-15, 10, -1),
        (-16, 10, -2),
        (10**30 + 5, 10, 10**29 + 1),
    ],
)
def test_halves_round_upwards_also_below_zero(total: int, count: int, rounded: int) -> None:
    assert round_half_up(total, count) == rounded


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**6))
def test_rounding_is_the_nearest_integer_with_halves_up(total: int, count: int) -> None:
    rounded = round_half_up(total, count)
    assert -count < 2 * (total - rounded * count) * -1 <= count  # −1/2 < rounded − exact ≤ 1/2


@pytest.mark.parametrize(
    ("readings", "mean"),
    [
        ([7], 7),
        ([1, 2], 2),
        ([-1, -2], -1),
        ([-1, 0], 0),
        ([1, 1, 2], 1),
        ([1, 2, 2], 2),
        ([100, -100], 0),
        ([0] * 9 + [5], 1),
        ([0] * 9 + [4], 0),
        ([0] * 9 + [-5], 0),
        ([10**15, 10**15 + 1], 10**15 + 1),
    ],
)
def test_a_mean_is_exact_and_rounds_half_up(readings: list[int], mean: int) -> None:
    steps = [(at_s, reading) for at_s, reading in enumerate(readings)]
    assert closed_by(Kind.MEAN, steps, end_s=SLOT_S) == {0: mean}


def test_a_slot_holds_its_first_second_and_not_the_next_slots() -> None:
    steps = [(0, 10), (899, 20), (900, 1000), (1799, 3000), (1800, 0)]
    assert closed_by(Kind.MEAN, steps) == {0: 15, 1: 2000}


RISES = [
    # readings at the borders: each slot has its difference
    ([(0, 100), (900, 130), (1800, 190)], {0: 30, 1: 60}),
    # readings within a slot change nothing
    ([(0, 100), (450, 115), (899, 129), (900, 130)], {0: 30}),
    # a sixtieth second still counts as the border, the sixty-first does not
    ([(60, 100), (960, 130)], {0: 30}),
    ([(61, 100), (900, 130), (1800, 131)], {1: 1}),
    ([(0, 100), (961, 130), (1800, 170), (2700, 180)], {2: 10}),
    # only a slot's first reading stands for its border
    ([(0, 100), (30, 104), (900, 130)], {0: 30}),
    ([(0, 100), (900, 130), (930, 134), (1800, 190)], {0: 30, 1: 60}),
    # no rise is a value like any other
    ([(0, 100), (900, 100)], {0: 0}),
    # a gap: neither slot beside it has a value, nothing is spread over it (SER_20)
    ([(0, 100), (1800, 190), (2700, 200)], {2: 10}),
    ([(0, 100), (900, 130), (4500, 400), (5400, 430)], {0: 30, 5: 30}),
    # the register goes back: that interval is dropped, the baseline is taken anew (SER_16)
    ([(0, 5000), (900, 2500), (1800, 2510)], {1: 10}),
    ([(0, 5000), (900, 5010), (1800, 0), (2700, 4)], {0: 10, 2: 4}),
]


@pytest.mark.parametrize(("steps", "values"), RISES)
def test_a_rise_is_the_difference_of_a_register_between_a_slots_borders(
    steps: list[Step], values: dict[int, int]
) -> None:
    assert closed_by(Kind.RISE, steps) == values


def test_a_register_that_goes_back_gives_no_negative_rise_SER_16() -> None:
    steps = [(900 * k, 10_000 - 5000 * (k >= 4) + 7 * k) for k in range(9)]
    values = closed_by(Kind.RISE, steps)
    assert values == {0: 7, 1: 7, 2: 7, 4: 7, 5: 7, 6: 7, 7: 7}


@pytest.mark.parametrize("slot_s", [1, 2, 10, 14, 15, 16, 60])
def test_short_slots_have_a_border_of_at_least_a_second(slot_s: int) -> None:
    builder = SlotBuilder(slot_s, [("x", Kind.RISE)])
    start = T0 // slot_s * slot_s
    border_s = max(1, slot_s // 15)
    assert builder.read(start + min(border_s, slot_s - 1), {"x": 5}) is None
    closed = builder.read(start + slot_s, {"x": 9})
    assert closed == SlotValues(start // slot_s, (4,))


def test_the_clock_closes_a_slot_when_nothing_comes() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    assert builder.close_before(SLOT + 5) is None
    builder.read(T0, {"x": 5})
    assert builder.close_before(SLOT) is None
    assert builder.close_before(SLOT + 1) == SlotValues(SLOT, (5,))
    assert builder.close_before(SLOT + 1) is None


def test_a_register_read_at_the_border_after_the_clock_closed_the_slot_comes_too_late() -> None:
    """Whoever closes by the clock must leave a register the time of the border first."""
    builder = SlotBuilder(SLOT_S, [("x", Kind.RISE)])
    assert builder.border_s == BORDER_S
    builder.read(T0, {"x": 100})
    assert builder.close_before(SLOT + 1) == SlotValues(SLOT, (None,))
    assert builder.read(T0 + SLOT_S, {"x": 130}) is None
    assert builder.read(T0 + 2 * SLOT_S, {"x": 150}) == SlotValues(SLOT + 1, (20,))


def test_late_readings_are_ignored_SER_17() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    builder.read(T0 + 900, {"x": 10})
    assert builder.read(T0 + 899, {"x": 1_000_000}) is None  # before the open slot
    assert builder.read(T0 + 1800, {"x": 20}) == SlotValues(SLOT + 1, (10,))
    for jump_s in (3600, 86_400, 20 * 365 * 86_400):  # an hour, a day, 20 years back
        assert builder.read(T0 + 1800 - jump_s, {"x": 1_000_000}) is None
    assert builder.read(T0 + 2700, {"x": 30}) == SlotValues(SLOT + 2, (20,))


@pytest.mark.parametrize("jump_s", [3 * SLOT_S, 86_400, 10 * 365 * 86_400])
def test_a_clock_that_was_ahead_for_one_reading_costs_that_reading_only_AGT_10(jump_s: int) -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN), ("y", Kind.RISE)])
    builder.read(T0, {"x": 5, "y": 100})
    assert builder.read(T0 + jump_s, {"x": 1_000_000, "y": 120}) == SlotValues(SLOT, (5, None))
    assert builder.read(T0 + SLOT_S, {"x": 7, "y": 130}) is None
    assert builder.read(T0 + 2 * SLOT_S, {"x": 9, "y": 140}) == SlotValues(SLOT + 1, (7, 10))


def test_a_slot_closed_by_the_clock_stays_closed_SER_17() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    builder.read(T0, {"x": 5})
    assert builder.close_before(SLOT + 1) == SlotValues(SLOT, (5,))
    assert builder.read(T0 + 899, {"x": 7}) is None
    assert builder.close_before(SLOT + 9) is None


@given(st.lists(st.integers(-3 * SLOT_S, 40 * SLOT_S), max_size=60))
def test_whatever_the_order_of_times_slots_close_once_and_rising_SER_17(times: list[int]) -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    closed = [event.slot for at in times if (event := builder.read(T0 + at, {"x": 1}))]
    last = builder.close_before(SLOT + 100)
    closed += [last.slot] if last else []
    assert closed == sorted(set(closed))


def test_a_burst_gives_one_value_for_its_slot_SER_19() -> None:
    steps = [(k // 10, k) for k in range(9000)]  # ten a second for a quarter of an hour
    assert closed_by(Kind.MEAN, steps, end_s=SLOT_S) == {0: 4500}
    assert closed_by(Kind.RISE, [*steps, (900, 9000)]) == {0: 9000}


def test_missing_slots_stay_missing_SER_20() -> None:
    steps = [(0, 10), (900 * 7, 30), (900 * 8, 50)]
    assert closed_by(Kind.MEAN, steps, end_s=900 * 30) == {0: 10, 7: 30, 8: 50}
    assert closed_by(Kind.RISE, steps, end_s=900 * 30) == {7: 20}


def test_a_frame_repeated_for_ever_gives_one_value_a_slot_SER_10() -> None:
    steps = [(9 * k, 230) for k in range(10_000)]
    slots = 9 * 10_000 // SLOT_S
    assert closed_by(Kind.MEAN, steps) == dict.fromkeys(range(slots - 1), 230)
    assert closed_by(Kind.RISE, steps) == dict.fromkeys(range(slots - 1), 0)


def test_streams_are_apart_and_in_the_order_given() -> None:
    builder = SlotBuilder(
        SLOT_S, [("energy_import", Kind.RISE), ("power", Kind.MEAN), ("power_export", Kind.MEAN)]
    )
    rows: list[tuple[int, Mapping[str, int]]] = [
        (0, {"power": 4, "energy_import": 100, "voltage": 230}),
        (10, {"power": 6}),
        (900, {"energy_import": 107}),
    ]
    closed = [builder.read(T0 + at_s, readings) for at_s, readings in rows]
    assert closed[-1] == SlotValues(SLOT, (7, 5, None))


@st.composite
def two_homes(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], list[int]]:
    """Draw rising times, the clock's looks between them, and two homes' rising registers."""
    gaps = draw(
        st.lists(st.sampled_from([1, 30, 59, 60, 61, 300, 840, 900, 901, 2700]), max_size=40)
    )
    times = [sum(gaps[: k + 1]) for k in range(len(gaps))]
    looks = draw(st.lists(st.integers(-1, 2), min_size=len(gaps), max_size=len(gaps)))
    homes = [
        draw(st.lists(st.integers(0, 10**6), min_size=len(gaps), max_size=len(gaps)))
        for _ in range(2)
    ]
    return times, looks, [sum(homes[0][:k]) for k in range(len(gaps))], homes[1]


def presence(
    times: list[int], looks: list[int], rises: list[int], means: list[int]
) -> list[object]:
    builder = SlotBuilder(SLOT_S, [("rise", Kind.RISE), ("mean", Kind.MEAN)])
    seen: list[object] = []
    for at, look, rise, mean in zip(times, looks, rises, means, strict=True):
        if look >= 0:
            seen.append(builder.close_before((T0 + at) // SLOT_S + look - 1))
        seen.append(builder.read(T0 + at, {"rise": rise, "mean": mean}))
    return [
        (event.slot, [value is not None for value in event.values])
        for event in seen
        if isinstance(event, SlotValues)
    ]


@given(two_homes())
def test_which_slots_have_a_value_depends_on_times_and_never_on_values(
    homes: tuple[list[int], list[int], list[int], list[int]],
) -> None:
    """SER-10, PRV-10: an empty house and a busy one are present in the same slots."""
    times, looks, rises, means = homes
    busy = presence(times, looks, rises, means)
    assert busy == presence(times, looks, [5] * len(times), [0] * len(times))


def test_values_hide_in_every_representation() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN), ("y", Kind.RISE)])
    builder.read(T0, {"x": 987_654, "y": 876_543})
    closed = builder.read(T0 + SLOT_S, {"x": 987_654, "y": 1_876_544})
    assert closed is not None
    assert closed.values == (987_654, 1_000_001)
    for shown in (repr(closed), str(closed), repr(builder), f"{closed}"):
        assert not any(marker in shown for marker in ("987654", "876543", "1000001"))


def test_SER_15_a_register_that_rolls_over_gives_the_same_rises() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.RISE)], register_wh=100_000)
    shown = [(99_850 + 100 * k) % 100_000 for k in range(5)]
    closed = [builder.read(T0 + 900 * k, {"x": reading}) for k, reading in enumerate(shown)]
    assert [one.values for one in closed if one] == [(100,)] * 4


def test_SER_16_registers_that_are_forgotten_cost_their_interval_and_no_power() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.RISE), ("p", Kind.MEAN)])
    closed = []
    for k, reading in enumerate((5000, 5010, 70, 80, 90)):
        if reading == 70:
            builder.forget_registers()
        closed.append(builder.read(T0 + 900 * k, {"x": reading, "p": 5}))
    assert [one.values for one in closed if one] == [(10, 5), (None, 5), (10, 5), (10, 5)]
