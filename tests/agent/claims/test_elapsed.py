"""Elapsed time: at most k in w slot lengths of it, exactly as often as an honest clock asks."""

from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.claims.elapsed import MAX_RUNS, Elapsed, Moment, begun, decode_elapsed
from edge_ldp.protocol.ledger import Window
from edge_ldp.protocol.strict_json import MessageError

SLOT_S = 900
T0 = 1_800_000_000
FRESH = Elapsed(SLOT_S, 0, 0, 0, "new")


def moment(slots: float, late_s: float = 0.0) -> Moment:
    seconds = slots * SLOT_S + late_s
    return Moment(T0 + seconds, int(1000 * seconds))


@given(
    st.integers(1, 5),
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 40), st.integers(1, 3)), max_size=60),
)
def test_whatever_the_wall_clock_says_no_window_of_elapsed_slots_holds_more_than_k_AGT_22(
    reports: int, slots: int, moves: list[tuple[int, int, int]]
) -> None:
    """Moves: real seconds that pass, slots that the clock steps, reports that are asked for."""
    window = Window(min(reports, 3 * slots), slots, 3)
    elapsed, now_ms, slot = FRESH, 0, 2_000_000
    made: list[tuple[int, int]] = []
    for passed_s, step, asked in moves:
        now_ms += 1000 * passed_s
        slot += step
        elapsed = elapsed.at(Moment(0, now_ms))
        if elapsed.allows(window, slot, asked):
            elapsed = elapsed.claimed(window, slot, asked)
            made.append((now_ms, asked))
    for start_ms, _ in made:  # one slot length is what counting in whole ones may cost
        end_ms = start_ms + (window.slots - 1) * SLOT_S * 1000
        assert sum(count for at, count in made if start_ms <= at <= end_ms) <= window.reports


@given(st.data())
def test_an_honest_clock_never_waits_for_elapsed_time(data: st.DataObject) -> None:
    """Cells drawn as the ledger's, slots closed up to 10 minutes late, the clock off by minutes."""
    slots = data.draw(st.integers(1, 30))
    cells = data.draw(st.sets(st.integers(0, slots - 1), min_size=1))
    window = Window(len(cells), slots, 1)
    begun_s = data.draw(st.integers(0, SLOT_S - 1))
    elapsed = begun("new", SLOT_S, moment(0, begun_s), 0)
    first = int(elapsed.boot_ms // 1000 // SLOT_S)
    for slot in range(first, first + 3 * slots):
        if slot % slots in cells:
            earliest_s = max(-200, begun_s - (slot + 1) * SLOT_S)  # never before it began
            elapsed = elapsed.at(moment(slot + 1, data.draw(st.integers(earliest_s, 600))))
            assert elapsed.allows(window, slot, 1)
            elapsed = elapsed.claimed(window, slot, 1)


def test_a_silence_lasts_as_long_by_elapsed_time() -> None:
    elapsed = begun("new", SLOT_S, moment(0, 300), 10)
    assert not elapsed.at(moment(9)).allows(Window(1, 1, 1), 2_000_000, 1)
    assert elapsed.at(moment(9)).wait_s == 675  # a quarter of a slot early
    late = elapsed.at(moment(11, 20))
    assert late.allows(Window(1, 1, 1), 2_000_000, 1)
    assert late.wait_s == 0


def test_time_never_goes_back_and_a_reboots_gap_is_not_known_AGT_22() -> None:
    later = FRESH.at(Moment(0, 9000))
    assert later.ms == 9000
    rebooted = later.at(Moment(10**9, 5000))
    assert rebooted.ms == 9000
    assert rebooted.at(Moment(10**9, 5500)).ms == 9500
    unseen = later.at(Moment(10**9, 9001))  # another boot's, up for longer than the first was
    assert unseen.ms == 9001


@pytest.mark.parametrize(
    ("late_s", "most_s", "gone_back_ms"), [(0, 5, 0), (2.5, 5, 2500), (60, 5, 5000), (-3, 5, 0)]
)
def test_a_slot_counts_from_its_end_a_few_seconds_back(
    late_s: float, most_s: float, gone_back_ms: int
) -> None:
    now = Moment(100 * SLOT_S + late_s, 500_000)
    found = FRESH.when_over(99, now, most_s)
    assert found == replace(FRESH, boot_ms=500_000 - gone_back_ms, ms=500_000 - gone_back_ms)
    assert found.at(now) == FRESH.at(now)


def test_going_back_to_a_slots_end_passes_no_claim() -> None:
    claimed = FRESH.at(Moment(0, 499_000))
    found = claimed.when_over(99, Moment(100 * SLOT_S + 60, 500_000), 5)
    assert found == claimed


def test_slots_of_earlier_stretches_are_not_claimed_again() -> None:
    window = Window(1, 1, 1)
    elapsed = FRESH
    for at, slot in enumerate((100, 101, 900, 50)):  # ahead for one slot, then back
        elapsed = elapsed.at(moment(at + 1))
        assert elapsed.allows(window, slot, 1)
        elapsed = elapsed.claimed(window, slot, 1)
    assert elapsed.runs == ((100, 101), (900, 900), (50, 50))
    later = elapsed.at(moment(9))
    assert [later.allows(window, slot, 1) for slot in (99, 100, 101, 102, 900)] == [
        True, False, False, True, False,
    ]  # fmt: skip
    assert (later.taken_until(100), later.taken_until(99), later.taken_until(50)) == (101, None, 50)


def test_what_is_kept_is_bounded_and_the_newest() -> None:
    window = Window(3, 10, 1)
    elapsed = FRESH
    for at in range(1, 100):
        elapsed = elapsed.at(moment(5 * at)).claimed(window, 50 * at, 1)
    assert len(elapsed.claims) == 2
    assert elapsed.runs == tuple((50 * at, 50 * at) for at in range(100 - MAX_RUNS, 100))


def test_reports_of_one_elapsed_slot_stand_together() -> None:
    window = Window(4, 10, 2)
    elapsed = FRESH.claimed(window, 7, 2).claimed(window, 8, 1)
    assert elapsed.claims == ((0, 3),)
    assert elapsed.allows(window, 9, 1)
    assert not elapsed.allows(window, 9, 2)


ALL = Elapsed(60, 7, 8, 9, "clock", ((3, 1), (5, 2), (90, 1)), ((1, 2), (7, 7)))


@pytest.mark.parametrize("one", [FRESH, ALL])
def test_it_is_read_back_as_it_was_stored(one: Elapsed) -> None:
    assert decode_elapsed(one.encode()) == one


def test_what_is_cut_off_or_of_another_version_is_refused() -> None:
    payload = ALL.encode()
    assert len(payload) < 50
    whole_but_fewer_runs = {len(payload) - 2, len(payload) - 4}
    for end in set(range(len(payload))) - whole_but_fewer_runs:
        with pytest.raises(MessageError):
            decode_elapsed(payload[:end])
    with pytest.raises(MessageError):
        decode_elapsed(b"\2" + payload[1:])


@given(st.binary(max_size=40))
def test_whatever_is_stored_is_read_or_refused(payload: bytes) -> None:
    with suppress(MessageError):
        assert decode_elapsed(payload).slot_seconds > 0
