"""Slot values: means over time, rises between borders, and presence that looks at times alone."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.claims.gauges import round_half_up
from agent.claims.slots import Kind, SlotBuilder, SlotValues, most_apart_s
from tests.tables import each

SLOT_S = 900
T0 = 1_800_000_000  # the start of a slot
SLOT = T0 // SLOT_S

Step = tuple[int, int]  # (seconds after T0, reading)


def passed(builder: SlotBuilder, now_s: int) -> Iterator[SlotValues]:
    """Yield the slots that close until nothing more is over."""
    while (closed := builder.pass_to(now_s)) is not None:
        yield closed


def events(kind: Kind, steps: Sequence[Step], end_s: int | None = None) -> dict[int, int | None]:
    """Return the slots (numbered from T0) that these readings close, and their values."""
    builder = SlotBuilder(SLOT_S, [("x", kind)])
    closed = [builder.read(T0 + at_s, {"x": reading}) for at_s, reading in steps]
    closed += passed(builder, T0 + (steps[-1][0] + 3 if end_s is None else end_s))
    return {event.slot - SLOT: event.values[0] for event in closed if event is not None}


def closed_by(kind: Kind, steps: Sequence[Step], *, end_s: int | None = None) -> dict[int, int]:
    """Return those that have a value."""
    found = events(kind, steps, end_s)
    return {slot: value for slot, value in found.items() if value is not None}


def every(seconds: int, until_s: int, reading: int = 1, begin_s: int = 0) -> list[Step]:
    return [(at_s, reading) for at_s in range(begin_s, until_s, seconds)]


def test_a_clock_that_begins_in_1970_has_a_slot_0() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN), ("y", Kind.RISE), ("silent", Kind.MEAN)])
    for at_s in (0, 450):
        assert builder.read(at_s, {"x": 5, "y": at_s}) is None
    assert builder.read(900, {"x": 5, "y": 900}) == SlotValues(0, (5, 900, None))
    assert not builder.is_ahead(0)
    builder = SlotBuilder(SLOT_S, [("y", Kind.RISE)])
    for at_s in (100, 500, 900):
        builder.read(at_s, {"y": 5})
    assert builder.given_up == ()  # of the first slot it came too late


@pytest.mark.parametrize(("slot_s", "value"), [(60, 5), (62, None)])
def test_a_telegram_stands_for_30_s_where_nothing_is_told_of_the_meter(
    slot_s: int, value: int | None
) -> None:
    """From the first second that a clock can show: half of a minute, and less of 62 s."""
    builder = SlotBuilder(slot_s, [("x", Kind.MEAN)])
    assert builder.read(0, {"x": 5}) is builder.pass_to(3) is None
    assert list(passed(builder, slot_s)) == [SlotValues(0, (value,))]


@pytest.mark.parametrize(("looked_s", "rise"), [(2, 3), (3, 5)])
def test_what_comes_in_a_bursts_last_second_is_of_the_border_SER_32(
    looked_s: int, rise: int
) -> None:
    """Also when the clock was looked at in that second; later the slot is begun."""
    builder = SlotBuilder(SLOT_S, [("x", Kind.RISE)])
    builder.read(T0, {"x": 5})
    assert builder.pass_to(T0 + looked_s) is None
    for at_s in (2, 450):
        builder.read(T0 + at_s, {"x": 7})
    assert builder.read(T0 + 900, {"x": 10}) == SlotValues(SLOT, (rise,))


@given(st.integers(-(10**12), 10**12), st.integers(1, 10**6))
def test_rounding_is_the_nearest_integer_with_halves_up(total: int, count: int) -> None:
    rounded = round_half_up(total, count)
    assert -count < 2 * (total - rounded * count) * -1 <= count  # −1/2 < rounded − exact ≤ 1/2


@pytest.mark.parametrize(
    ("mean", "readings"),
    each(
        (7, [7]),
        (2, [1, 2], [1, 2, 2]),
        (-1, [-1, -2]),
        (0, [-1, 0], [100, -100], [0] * 9 + [4], [0] * 9 + [-5]),
        (1, [1, 1, 2], [0] * 9 + [5]),
        (10**15 + 1, [10**15, 10**15 + 1]),
    ),
)
def test_a_mean_is_exact_and_rounds_half_up(readings: list[int], mean: int) -> None:
    """A slot of as many seconds as there are readings, one a second."""
    builder = SlotBuilder(len(readings), [("x", Kind.MEAN)])
    start = T0 // len(readings) * len(readings)
    for at_s, reading in enumerate(readings):
        assert builder.read(start + at_s, {"x": reading}) is None
    assert builder.read(start + len(readings), {"x": 0}) == SlotValues(
        start // len(readings), (mean,)
    )


MEANS = [
    # a reading stands until the next one, whatever their number
    ([(0, 10), (300, 40), (600, 70), (900, 0)], {0: 40}),
    ([(0, 10), (300, 40), (899, 10**6), (900, 0)], {0: (10 * 300 + 40 * 599 + 10**6) // 900}),
    # also into the next slot
    ([(0, 9), (450, 9), (890, 9), (910, 0), (1350, 0), (1800, 0)], {0: 9, 1: 0}),
    ([(0, 0), (450, 90), (1350, 0), (1800, 0)], {0: 45, 1: 45}),
    # many at once count as the last one: what an adapter kept is not of now (SER_31)
    ([(0, 7), (300, 7), (600, 7)] + [(600, 5000)] * 12 + [(600, 7), (900, 7)], {0: 7}),
    # a slot holds its first second, and not the next one's
    ([(0, 10), (450, 20), (900, 1000), (1350, 3000), (1800, 0)], {0: 15, 1: 2000}),
]


@pytest.mark.parametrize(("steps", "values"), MEANS)
def test_SER_31_a_mean_weighs_each_reading_by_the_time_for_which_it_stood(
    steps: list[Step], values: dict[int, int]
) -> None:
    assert closed_by(Kind.MEAN, steps) == values


def test_SER_31_an_outage_is_covered_for_three_intervals_and_a_slot_needs_one_half() -> None:
    """Every 10 s, then nothing: what came last stands for 30 s, and no longer."""
    begun = every(10, 10 * 42, 5)  # the last at 410 s
    assert events(Kind.MEAN, begun, SLOT_S) == {0: None}
    assert events(Kind.MEAN, [*begun, (420, 5)], SLOT_S) == {0: 5}
    later = [*begun, (870, 50), (880, 50), (890, 50), (900, 0)]
    assert events(Kind.MEAN, later) == {0: (5 * 440 + 50 * 30 + 235) // 470}


def test_SER_31_what_an_adapter_kept_is_no_rise_of_the_slot_it_came_in() -> None:
    """I03: a minute of nothing, then twelve telegrams within a second and 6 of the slot's own."""
    regular = [(at, at // 10, 1000) for at in range(0, 1800, 10)]
    for silent_s, at_s in ((0, 900), (60, 903), (300, 900), (120, 910), (440, 901)):
        kept = [one for one in regular if at_s - silent_s < one[0] <= at_s]
        rest = [one for one in regular if not at_s - silent_s < one[0] <= at_s]
        burst = [(at_s + k * 2 // len(kept), wh, 5000) for k, (_, wh, _) in enumerate(kept)]
        told = sorted([*rest, *burst], key=lambda one: (one[1], one[0]))
        builder = SlotBuilder(SLOT_S, [("e", Kind.RISE), ("p", Kind.MEAN)])
        closed = [builder.read(T0 + at, {"e": wh, "p": w}) for at, wh, w in told]
        closed += passed(builder, T0 + 1800 + 450)
        (first, second) = (one.values for one in closed if one is not None and one.slot <= SLOT + 1)
        assert first[0] in (89, 90, 91), silent_s
        assert first[1] == 1000
        assert second[1] is not None
        assert 1000 <= second[1] <= 1000 + 4000 * 10 // 900 + 1


def test_I03_as_it_was_found_gives_1000_W_and_6_Wh_SER_31() -> None:
    """A slot of a minute: twelve kept telegrams of 5 kW at once, then its own six of 1 kW."""
    builder = SlotBuilder(60, [("p", Kind.MEAN), ("e", Kind.RISE)])
    start = T0 // 60 * 60
    for k in range(12):
        builder.read(start, {"p": 5000, "e": k})
    for k in range(6):
        builder.read(start + 10 * k, {"p": 1000, "e": 12 + k})
    assert builder.read(start + 60, {"p": 1000, "e": 18}) == SlotValues(start // 60, (1000, 6))


RISES = [
    # readings at the borders: each slot has its difference
    ([(0, 100), (900, 130), (1800, 190)], {0: 30, 1: 60}),
    # readings within a slot change nothing
    ([(0, 100), (450, 115), (899, 129), (900, 130)], {0: 30}),
    # between two registers at most half a slot apart a border is interpolated (SER_32)
    ([(0, 0), (450, 50), (890, 94), (910, 98), (1350, 142), (1800, 187)], {0: 96, 1: 91}),
    ([(0, 0), (450, 0), (600, 0), (1050, 90), (1500, 90), (1800, 90)], {0: 60, 1: 30}),
    ([(-300, 0), (100, 40), (500, 80), (899, 120), (1000, 221)], {0: 91}),
    # halves upwards, and what is left is the next slot's
    ([(0, 0), (450, 0), (899, 0), (901, 1), (1350, 1), (1800, 1)], {0: 1, 1: 0}),
    # farther apart: a sixtieth second still counts as the border, the sixty-first does not
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
    ([(900 * k, 10_000 - 5000 * (k >= 4) + 7 * k) for k in range(6)], {0: 7, 1: 7, 2: 7, 4: 7}),
    # the register goes back: that interval is dropped, the baseline is taken anew (SER_16)
    ([(0, 5000), (900, 2500), (1800, 2510)], {1: 10}),
    ([(0, 5000), (900, 5010), (1800, 0), (2700, 4)], {0: 10, 2: 4}),
    ([(0, 5000), (400, 5004), (800, 2), (900, 3), (1300, 5), (1800, 9)], {1: 6}),
]


@pytest.mark.parametrize(("steps", "values"), RISES)
def test_SER_16_SER_32_a_rise_is_the_difference_of_a_register_between_a_slots_borders(
    steps: list[Step], values: dict[int, int]
) -> None:
    assert closed_by(Kind.RISE, steps) == values


def test_a_rise_per_hour_is_mean_power_in_steps_of_what_a_slot_makes() -> None:
    """1 Wh in a quarter of an hour is 4 W; where a step is no whole watt it is rounded."""
    steps = [(900 * k, 1000 + sum(range(k + 1))) for k in range(4)]
    assert closed_by(Kind.RATE, steps) == {0: 4, 1: 8, 2: 12}
    builder = SlotBuilder(1400, [("x", Kind.RATE)])
    start = T0 // 1400 * 1400
    values = [builder.read(start + 1400 * k, {"x": 100 * k + k}) for k in range(3)]
    values += passed(builder, start + 2810)
    assert [one.values for one in values if one] == [(260,), (260,)]  # 259.71


@pytest.mark.parametrize("seconds", [1, 10, 60, 75, 120, 300, 440])
@pytest.mark.parametrize("begin_s", [0, 1, 37, 59])
def test_SER_32_a_meter_that_is_slow_gives_every_slot(seconds: int, begin_s: int) -> None:
    """I02: 75 to 300 s; only the first slot's beginning may be missing."""
    begin_s %= seconds
    steps = [(at_s, at_s) for at_s in range(begin_s, 40 * SLOT_S, seconds)]
    values = events(Kind.RISE, steps)
    assert {slot: values[slot] for slot in range(1, 39)} == dict.fromkeys(range(1, 39), SLOT_S)
    assert values[0] == SLOT_S - max(begin_s, begin_s + 2 // seconds * seconds)
    means = events(Kind.MEAN, [(at_s, 5) for at_s, _ in steps])
    assert {slot: means[slot] for slot in range(39)} == dict.fromkeys(range(39), 5)


@pytest.mark.parametrize(("seconds", "is_sparse"), [(450, False), (500, True), (700, True)])
def test_SER_32_slots_given_up_for_want_of_telegrams_are_named(
    seconds: int, *, is_sparse: bool
) -> None:
    """By times alone; an outage, or the first telegrams, give up no slot of a meter that speaks."""
    builder = SlotBuilder(SLOT_S, [("e", Kind.RISE), ("p", Kind.MEAN)])
    said = set()
    for at_s in range(10, 40 * SLOT_S, seconds):
        builder.read(T0 + at_s, {"e": 5, "p": 5})
        said.add(builder.given_up)
    assert said == {(), ("e",)} if is_sparse else {()}
    said = set()
    for at_s in range(50 * SLOT_S, 60 * SLOT_S, 10):
        builder.read(T0 + at_s, {"e": 5, "p": 5})
        said |= {builder.given_up} if at_s > 50 * SLOT_S else set()
    assert said == {()}


@pytest.mark.parametrize("slot_s", [1, 2, 10, 14, 15, 16, 60])
def test_short_slots_have_a_border_of_at_least_a_second(slot_s: int) -> None:
    builder = SlotBuilder(slot_s, [("x", Kind.RISE)])
    start = T0 // slot_s * slot_s
    border_s = max(1, slot_s // 15)
    assert builder.read(start + min(border_s, slot_s - 1), {"x": 5}) is None
    closed = builder.read(start + slot_s, {"x": 9})
    assert closed == SlotValues(start // slot_s, (4,))


def test_the_clock_closes_a_slot_when_nothing_comes() -> None:
    """A mean with the slot's end; a rise once no telegram could show its end any more."""
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    assert list(passed(builder, T0 + 5 * SLOT_S)) == []
    for at_s in range(0, 890, 10):
        builder.read(T0 + at_s, {"x": 5})
    assert list(passed(builder, T0 + SLOT_S - 1)) == []
    assert builder.first_open(T0 + SLOT_S - 1) == SLOT
    assert list(passed(builder, T0 + SLOT_S)) == [SlotValues(SLOT, (5,))]
    assert list(passed(builder, T0 + 9 * SLOT_S)) == []
    assert builder.first_open(T0 + 9 * SLOT_S) == SLOT + 9
    builder = SlotBuilder(SLOT_S, [("x", Kind.RISE)])
    for at_s in range(0, 890, 10):
        builder.read(T0 + at_s, {"x": 5})
    assert list(passed(builder, T0 + 880 + SLOT_S // 2)) == []
    assert builder.first_open(T0 + 880 + SLOT_S // 2) == SLOT
    assert list(passed(builder, T0 + 881 + SLOT_S // 2)) == [SlotValues(SLOT, (None,))]


def test_what_stood_when_the_clock_closed_a_slot_stands_on() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    for at_s in range(0, 900, 300):
        builder.read(T0 + at_s, {"x": 90})
    assert list(passed(builder, T0 + SLOT_S)) == [SlotValues(SLOT, (90,))]
    for at_s in range(1000, 1800, 300):
        builder.read(T0 + at_s, {"x": 0})
    assert list(passed(builder, T0 + 2 * SLOT_S)) == [SlotValues(SLOT + 1, (10,))]


def test_a_clock_set_back_by_seconds_takes_nothing_away() -> None:
    """What comes then stands from the second on that was reached before."""
    steps = [(0, 0), (450, 90), (440, 45), (899, 45), (880, 45), (900, 0)]
    assert closed_by(Kind.MEAN, steps) == {0: 23}
    rises = [(0, 0), (450, 40), (440, 45), (899, 90), (880, 91), (900, 92)]
    assert closed_by(Kind.RISE, rises) == {0: 92}


def test_late_readings_are_ignored_SER_17() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    builder.read(T0 + 900, {"x": 10})
    assert builder.read(T0 + 899, {"x": 1_000_000}) is None  # before the open slot
    assert builder.read(T0 + 1800, {"x": 20}) == SlotValues(SLOT + 1, (10,))
    for jump_s in (3600, 86_400, 20 * 365 * 86_400):  # an hour, a day, 20 years back
        assert builder.read(T0 + 1800 - jump_s, {"x": 1_000_000}) is None
    assert builder.read(T0 + 2700, {"x": 30}) == SlotValues(SLOT + 2, (20,))
    assert builder.read(T0 + 4500, {"x": 40}) is None
    assert builder.read(T0 + 4510, {"x": 40}) == SlotValues(SLOT + 3, (30,))
    assert builder.read(T0 + 3599, {"x": 1_000_000}) is None  # of the one that was closed
    assert builder.read(T0 + 5400, {"x": 50}) == SlotValues(SLOT + 5, (40,))


@pytest.mark.parametrize(
    ("times", "rises"),
    [
        *(((0, 450, at, 900, 1350, 1800, 2250), (3, 2)) for at in (2700, 86_400, 10**8)),
        ((9 * SLOT_S, 0, 300, 600, 900), (3,)),  # the clock was ahead when the first came
        ((0, 450, 86_400, 86_410, 86_420, 900, 1350, 1800), (None, 2)),  # for several
    ],
)
def test_a_clock_that_was_ahead_costs_its_readings_and_the_open_slots_rise_at_most_AGT_10(
    times: tuple[int, ...], rises: tuple[int | None, ...]
) -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN), ("y", Kind.RISE)])
    closed = [
        builder.read(T0 + at_s, {"x": 5 if at_s < 2700 else 10**6, "y": k})
        for k, at_s in enumerate(times)
    ]
    closed += passed(builder, T0 + max(at_s for at_s in times if at_s < 2700) + 50)
    expected = [SlotValues(SLOT + k, (5, rise)) for k, rise in enumerate(rises)]
    assert [one for one in closed if one] == expected


def test_a_slot_is_closed_by_the_clock_also_when_one_telegram_was_ahead_AGT_10() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.RISE)])
    for at_s in (*range(0, 500, 10), 10**8, *range(500, 890, 10)):
        builder.read(T0 + at_s, {"x": 5})
    assert list(passed(builder, T0 + 881 + SLOT_S // 2)) == [SlotValues(SLOT, (None,))]


def test_a_builder_is_ahead_of_slots_that_it_closed_and_of_none_beside_the_present_one() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    builder.read(T0, {"x": 5})
    builder.close_before(SLOT + 1)
    assert [builder.is_ahead(SLOT + at) for at in (-3, -2, -1, 0)] == [True, True, False, False]


@pytest.mark.parametrize(("kind", "seconds"), [("mean", 900), ("rise", 450), ("rate", 450)])
def test_telegrams_may_come_so_far_apart_SER_32(kind: str, seconds: int) -> None:
    assert most_apart_s(Kind(kind), SLOT_S) == seconds


@pytest.mark.parametrize(
    ("times", "given_up_at"),
    [
        # the first slot and the one before an outage are not called given up
        ((500, 1100, 1700, 2300, 20_000, 20_003, 20_600, 21_200), [2300, 20_000]),
        # a border that no register shows costs the slot on either side
        ((0, 450, 900, 1300, 1700, 2300, 2700, 3100, 3600), [2300, 2700, 3100]),
    ],
)
def test_SER_32_a_slot_with_telegrams_before_in_and_after_it_shows_that_they_come_too_rarely(
    times: tuple[int, ...], given_up_at: list[int]
) -> None:
    builder = SlotBuilder(SLOT_S, [("e", Kind.RISE)])
    seen = {}
    for at_s in times:
        builder.read(T0 + at_s, {"e": 5})
        seen[at_s] = builder.given_up
    assert [at_s for at_s, found in seen.items() if found] == given_up_at


def test_a_slot_closed_by_the_clock_stays_closed_SER_17() -> None:
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    for at_s, reading in every(10, 800, 5):
        builder.read(T0 + at_s, {"x": reading})
    assert builder.close_before(SLOT) is None
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
    assert closed_by(Kind.MEAN, steps, end_s=SLOT_S) == {0: 4504}  # the last of each second
    assert closed_by(Kind.RISE, [*steps, (900, 9000)]) == {0: 9000 - 29}


def test_a_burst_across_a_border_begins_two_slots_SER_19() -> None:
    steps = [*every(10, 500, 5), (1799, 5), (1800, 5), (1810, 5)]
    assert events(Kind.MEAN, steps) == {0: 5, 1: None}


def test_missing_slots_stay_missing_SER_20() -> None:
    steps = [(0, 10), (450, 10), (900 * 7, 30), (900 * 7 + 450, 30), (900 * 8, 50)]
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
        (300, {"power": 5}),
        (600, {"power": 9}),
        (900, {"energy_import": 107}),
    ]
    closed = [builder.read(T0 + at_s, readings) for at_s, readings in rows]
    assert closed[-1] == SlotValues(SLOT, (7, 6, None))


def test_a_register_told_in_every_other_telegram_is_joined_all_the_same_SER_32() -> None:
    builder = SlotBuilder(SLOT_S, [("e", Kind.RISE), ("p", Kind.MEAN)])
    closed = []
    for k in range(0, 5 * SLOT_S, 10):
        told = {"p": 5} if k // 10 % 2 else {"e": k, "p": 5}
        closed.append(builder.read(T0 + k, told))
    assert [one.values for one in closed if one] == [(900, 5)] * 4


@st.composite
def two_homes(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], list[int]]:
    """Draw rising times, the clock's looks between them, and two homes' rising registers."""
    gaps = draw(
        st.lists(st.sampled_from([0, 1, 2, 30, 60, 61, 300, 449, 451, 840, 901, 2700]), max_size=60)
    )
    times = list(accumulate(gaps))
    looks = draw(st.lists(st.integers(-1, 900), min_size=len(gaps), max_size=len(gaps)))
    homes = [
        draw(st.lists(st.integers(0, 10**6), min_size=len(gaps), max_size=len(gaps)))
        for _ in range(2)
    ]
    return times, looks, list(accumulate(homes[0])), homes[1]


def presence(
    times: list[int], looks: list[int], rises: list[int], means: list[int]
) -> list[object]:
    """Return what closes, and whether with values; the clock is looked at before some readings."""
    builder = SlotBuilder(SLOT_S, [("rise", Kind.RISE), ("mean", Kind.MEAN), ("rise", Kind.RATE)])
    seen: list[object] = []
    for (before, at), look, rise, mean in zip(
        pairwise([0, *times]), looks, rises, means, strict=True
    ):
        if look >= 0:
            seen += passed(builder, T0 + min(at, before + look))
        seen.append(builder.read(T0 + at, {"rise": rise, "mean": mean}))
        seen.append((builder.given_up, builder.first_open(T0 + at)))
    return [
        (one.slot, [value is not None for value in one.values])
        if isinstance(one, SlotValues)
        else one
        for one in seen
    ]


@given(two_homes())
def test_which_slots_have_a_value_depends_on_times_and_never_on_values(
    homes: tuple[list[int], list[int], list[int], list[int]],
) -> None:
    """SER-10, PRV-10: an empty house and a busy one are present in the same slots."""
    times, looks, rises, means = homes
    busy = presence(times, looks, rises, means)
    assert busy == presence(times, looks, [5] * len(times), [0] * len(times))


@given(two_homes())
def test_SER_31_a_mean_is_that_of_every_second_that_a_telegram_stood_for(
    homes: tuple[list[int], list[int], list[int], list[int]],
) -> None:
    """Second by second: each is the last telegram's before it, as far as that reaches."""
    times, _, _, means = homes
    builder = SlotBuilder(SLOT_S, [("x", Kind.MEAN)])
    stood: dict[int, int] = {}
    from_s, value = -SLOT_S, 0
    for at, mean in zip(times, means, strict=True):
        closed = builder.read(T0 + at, {"x": mean})
        until_s = min(at, from_s + min(SLOT_S, 3 * builder.interval_s))
        stood |= dict.fromkeys(range(from_s, until_s), value) if from_s >= 0 else {}
        from_s, value = at, mean
        if closed is not None:
            first = (closed.slot - SLOT) * SLOT_S
            mine = [stood[at] for at in range(first, first + SLOT_S) if at in stood]
            mean_of = round_half_up(sum(mine), len(mine)) if 2 * len(mine) >= SLOT_S else None
            assert closed.values == (mean_of,)


@st.composite
def registers(draw: st.DrawFn) -> list[Step]:
    """Draw a register that is told at both ends of a few slots, and never half a slot apart."""
    drawn = draw(
        st.lists(st.tuples(st.integers(0, SLOT_S // 2), st.integers(0, 3000)), max_size=30)
    )
    times = list(accumulate((gap for gap, _ in drawn), initial=0))
    end_s = (times[-1] // SLOT_S + 1) * SLOT_S
    while times[-1] < end_s:
        times.append(min(end_s, times[-1] + SLOT_S // 2))
    shown = list(accumulate((rise for _, rise in drawn), initial=1000))
    return [(at, shown[min(k, len(shown) - 1)]) for k, at in enumerate(times)]


@given(registers())
def test_SER_32_the_rises_of_slots_in_a_row_are_together_exactly_the_registers(
    steps: list[Step],
) -> None:
    """And each lies between what it rose for sure within the slot, and what it rose at most.

    Where telegrams come at once after a silence, the last of them is the one of now.
    """
    values = closed_by(Kind.RISE, steps)
    assert list(values) == list(range(steps[-1][0] // SLOT_S))
    assert sum(values.values()) == steps[-1][1] - shown_at(steps, 0)
    for slot, value in values.items():
        start, end = slot * SLOT_S, (slot + 1) * SLOT_S
        least = max(w for at, w in steps if at <= end) - shown_at(steps, start)
        most = shown_at(steps, end) - max(w for at, w in steps if at < start or not at)
        assert least <= value <= most


def shown_at(steps: list[Step], start: int) -> int:
    """Return the most that the register may have shown at a border: of what came soon after it."""
    first = min(at for at, _ in steps if at >= start)
    return max(w for at, w in steps if first <= at <= first + 2)


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
