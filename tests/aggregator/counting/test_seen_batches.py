"""Dedupe state: REP-04, REP-05, AGG-19, and a model that remembers everything."""

from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.counting.seen_batches import (
    LAST_BATCH,
    OPEN_GAPS,
    ArrivedBatch,
    DeviceState,
    Gap,
    Outcome,
    Placed,
    build_receipt,
    close_gaps,
    is_settled,
    place,
)
from edge_ldp.protocol.messages import MAX_GAPS, StreamStatus

FIRST_SLOT = 1000
SLOTS = 10  # in each batch of an honest device


def batch(number: int, *, counts: bool = True, digest: bytes = b"the same") -> ArrivedBatch:
    first = FIRST_SLOT + number * SLOTS
    return ArrivedBatch(number, first, first + SLOTS - 1, digest, counts)


def placed(*numbers: int) -> DeviceState:
    state = DeviceState()
    for number in numbers:
        state, _ = place(state, batch(number))
    return state


def told(first: int, following: int, oldest: int) -> StreamStatus:
    return StreamStatus(1, first, following, oldest, created=0, expired=0)


def test_batches_in_order_are_new_and_leave_no_gap() -> None:
    state, outcome = place(placed(1, 2), batch(3))
    assert (outcome.outcome, is_settled(state, 3)) == (Outcome.NEW, True)
    assert (state.highest, state.last_slot, state.gaps) == (3, FIRST_SLOT + 39, ())


def test_the_first_batch_ever_opens_the_gap_below_it() -> None:
    assert placed(4).gaps == (Gap(1, 3, -1, FIRST_SLOT + 40),)


def test_a_missing_batch_is_counted_once_when_it_comes_late() -> None:
    state, outcome = place(placed(1, 2, 5), batch(4))
    assert outcome.outcome is Outcome.LATE
    assert (outcome.after, outcome.before) == (FIRST_SLOT + 29, FIRST_SLOT + 50)
    assert [(g.first, g.last) for g in state.gaps] == [(3, 3)]
    assert place(state, batch(4))[1].outcome is Outcome.DUPLICATE


def test_the_same_batch_again_is_a_duplicate_and_with_other_bytes_a_conflict() -> None:
    state = placed(1, 2)
    assert place(state, batch(2)) == (state, place(state, batch(2))[1])
    duplicate = place(state, batch(2))[1]
    assert (duplicate.outcome, duplicate.after, duplicate.before) == (Outcome.DUPLICATE, -1, None)
    assert place(state, batch(2, digest=b"another."))[1].outcome is Outcome.CONFLICT


def test_a_conflict_beyond_the_digests_kept_is_still_a_duplicate_REP_05() -> None:
    state = placed(*range(1, 11))
    assert place(state, batch(1, digest=b"another."))[1].outcome is Outcome.DUPLICATE


def test_a_new_batch_whose_slots_do_not_rise_is_settled_and_never_counted_REP_05() -> None:
    state = placed(1, 2)
    state, outcome = place(state, batch(3)._replace(first_slot=FIRST_SLOT + 29))
    assert outcome.outcome is Outcome.SLOTS
    assert state.highest == 3
    assert state.last_slot == FIRST_SLOT + 29
    assert place(state, batch(4))[1].outcome is Outcome.NEW


def test_a_late_batch_must_fit_the_slots_of_its_gap() -> None:
    outside = batch(3)._replace(last_slot=FIRST_SLOT + 50)
    state, outcome = place(placed(1, 2, 5), outside)
    assert outcome.outcome is Outcome.SLOTS
    assert [(g.first, g.last) for g in state.gaps] == [(4, 4)]
    assert place(state, batch(4))[1].outcome is Outcome.LATE, "it bounds nobody"


def test_late_batches_bound_each_other_from_above_too() -> None:
    """4 comes late, so 3 must lie below it, though what is above the gap began later."""
    state = placed(1, 5)
    first = FIRST_SLOT + 40
    state, _ = place(state, ArrivedBatch(4, first, first + 2, b"the same"))
    assert [(gap.first, gap.last, gap.before) for gap in state.gaps] == [(2, 3, first)]
    assert place(state, ArrivedBatch(3, first + 5, first + 6, b"x"))[1].outcome is Outcome.SLOTS
    state, outcome = place(state, ArrivedBatch(2, first - 9, first - 5, b"x"))
    assert (outcome.outcome, outcome.before) == (Outcome.LATE, first)
    assert [(gap.after, gap.before) for gap in state.gaps] == [(first - 5, first)]


def test_more_batches_than_slots_change_nothing_AGG_19_REP_06() -> None:
    state = placed(1)
    runaway = ArrivedBatch((1 << 32) - 1, FIRST_SLOT + 20, FIRST_SLOT + 29, b"x")
    assert place(state, runaway)[0] == state
    assert place(state, runaway)[1].outcome is Outcome.OUTRUN
    assert place(state, ArrivedBatch(0, 5, 9, b"x"))[1].outcome is Outcome.OUTRUN
    assert place(DeviceState(), ArrivedBatch(7, 5, 5, b"x"))[1].outcome is Outcome.OUTRUN


def test_a_device_that_reported_in_every_slot_since_1970_is_not_outrun() -> None:
    state = DeviceState()
    for slot in range(6):  # slots begin at 0, batches at 1
        state, outcome = place(state, ArrivedBatch(slot + 1, slot, slot, b"the same"))
        assert outcome.outcome is Outcome.NEW
    assert (state.highest, state.last_slot, state.gaps) == (6, 5, ())


def test_a_rejected_batch_is_settled_without_moving_the_slots() -> None:
    state, outcome = place(placed(1), batch(2, counts=False))
    assert outcome.outcome is Outcome.NEW
    assert (state.highest, state.last_slot) == (2, FIRST_SLOT + 19)


def test_slots_of_late_batches_around_a_rejected_one_still_rise() -> None:
    """Batches 2 and 4 are missing around a rejected 3: whichever comes first bounds the other."""
    state, _ = place(placed(1), batch(3, counts=False))
    state, _ = place(state, batch(5, counts=False))
    late_four, _ = place(state, batch(4))
    overlapping = batch(2)._replace(last_slot=FIRST_SLOT + 40)
    assert place(late_four, overlapping)[1].outcome is Outcome.SLOTS
    late_two, _ = place(state, batch(2)._replace(last_slot=FIRST_SLOT + 45))
    assert place(late_two, batch(4))[1].outcome is Outcome.SLOTS
    assert place(late_four, batch(6))[1].outcome is Outcome.NEW
    assert place(late_four, batch(6)._replace(first_slot=FIRST_SLOT + 49))[1].outcome is (
        Outcome.SLOTS
    )


def test_a_frame_that_opens_one_gap_too_many_waits_AGG_19() -> None:
    state = placed(*range(2, 2 * OPEN_GAPS + 2, 2))
    assert len(state.gaps) == OPEN_GAPS
    unchanged, outcome = place(state, batch(2 * OPEN_GAPS + 2))
    assert outcome.outcome is Outcome.GAP_LIMIT
    assert unchanged == state
    state, _ = place(state, batch(1))
    assert place(state, batch(2 * OPEN_GAPS + 2))[1].outcome is Outcome.NEW


def test_splitting_a_gap_counts_against_the_limit_too() -> None:
    state = placed(*range(2, 2 * OPEN_GAPS, 2), 2 * OPEN_GAPS + 3)
    assert len(state.gaps) == OPEN_GAPS
    assert place(state, batch(2 * OPEN_GAPS + 1))[1].outcome is Outcome.GAP_LIMIT
    assert place(state, batch(2 * OPEN_GAPS - 1))[1].outcome is Outcome.LATE


def test_a_status_closes_what_was_never_made_and_what_was_given_up() -> None:
    state = placed(100, 103)
    assert [(g.first, g.last) for g in state.gaps] == [(1, 99), (101, 102)]
    never_made = close_gaps(state, told(100, 104, 100))
    assert [(g.first, g.last) for g in never_made.gaps] == [(101, 102)]
    given_up = close_gaps(never_made, told(100, 104, 102))
    assert [(g.first, g.last) for g in given_up.gaps] == [(102, 102)]
    assert close_gaps(given_up, told(100, 104, 100)) == given_up


def test_a_status_before_the_first_batch_keeps_its_gap_closed() -> None:
    state = close_gaps(DeviceState(), told(1_900_000, 1_900_000, 1_900_000))
    first = ArrivedBatch(1_900_002, 1_900_002, 1_900_005, b"x")
    state, _ = place(state, first)
    assert [(g.first, g.last) for g in state.gaps] == [(1_900_000, 1_900_001)]


def test_a_status_that_shows_a_missing_tail_leaves_the_receipt_as_it_is() -> None:
    state = placed(1, 2)
    assert close_gaps(state, told(1, 9, 1)).receipt(1) == state.receipt(1)


def test_a_reinstalled_device_goes_on_at_its_next_slot_AGG_19() -> None:
    """New device state numbers its batches from the current slot on: docs/design.md."""
    state = placed(1, 2, 3)
    restart = FIRST_SLOT + 500
    state = close_gaps(state, told(restart, restart, restart))
    state, outcome = place(state, ArrivedBatch(restart, restart, restart + 5, b"x"))
    assert outcome.outcome is Outcome.NEW
    assert state.gaps == ()


def test_a_receipt_lists_streams_with_their_gaps() -> None:
    receipt = build_receipt([(2, placed(1)), (1, placed(1, 4))])
    assert [(s.stream, s.highest, s.gaps) for s in receipt.streams] == [
        (1, 4, ((2, 3),)),
        (2, 1, ()),
    ]
    assert not receipt.covers(1, 3)
    assert receipt.covers(1, 4)


deliveries = st.lists(st.integers(1, 200), max_size=400)
rejections = st.sets(st.integers(1, 200), max_size=20)


@given(deliveries, rejections)
@settings(max_examples=200, deadline=None)
def test_any_order_duplication_and_loss_counts_each_batch_at_most_once(
    order: list[int], rejected: set[int]
) -> None:
    state, settled = DeviceState(), set[int]()
    for number in order:
        before = state
        state, result = place(state, batch(number, counts=number not in rejected))
        assert len(state.gaps) <= OPEN_GAPS
        assert (result.outcome is Outcome.DUPLICATE) == (number in settled)
        if result.outcome in (Outcome.NEW, Outcome.LATE):
            settled.add(number)
        else:
            assert state == before
        covered = state.receipt(1).covers
        assert all(covered(one) == (one in settled) for one in range(1, 201))


@given(deliveries)
@settings(max_examples=100, deadline=None)
def test_once_everything_is_delivered_every_batch_counted_exactly_once(order: list[int]) -> None:
    """The device re-sends what its receipt does not cover, oldest first, until nothing is left."""
    state, counted = DeviceState(), list[int]()
    resent = [*order, *range(1, 201), *range(1, 201)]
    for number in resent:
        if number in order or not state.receipt(1).covers(number):
            state, result = place(state, batch(number))
            if result.outcome in (Outcome.NEW, Outcome.LATE):
                counted.append(number)
    assert sorted(counted) == list(range(1, 201))
    assert (state.highest, state.gaps) == (200, ())


@given(deliveries, st.lists(st.integers(1, 200), max_size=5))
@settings(max_examples=100, deadline=None)
def test_giving_up_batches_never_makes_one_count_twice(order: list[int], oldest: list[int]) -> None:
    state, counted = DeviceState(), set[int]()
    for at, number in enumerate(order):
        if at % 50 == 49 and oldest:
            state = close_gaps(state, told(1, 201, oldest[at // 50 % len(oldest)]))
        state, result = place(state, batch(number))
        if result.outcome in (Outcome.NEW, Outcome.LATE):
            assert number not in counted
            counted.add(number)


def test_one_report_frames_spread_over_two_workers_are_counted_within_three_rounds_AGG_26() -> None:
    """1,000 at once; of the first sending one worker, frozen, lets every second one lie.

    Then the device sends again what its receipt does not cover, and each worker settles its half.
    """
    frames = list(range(1, 1001))
    state, counted = DeviceState(), list[int]()

    def settle(numbers: list[int]) -> None:
        nonlocal state
        for number in numbers:
            state, found = place(state, batch(number))
            if found.outcome in (Outcome.NEW, Outcome.LATE):
                counted.append(number)

    settle(frames[1::2])
    rounds = 0
    while len(counted) < len(frames):
        rounds += 1
        assert rounds <= 3
        receipt = state.receipt(1)
        again = [number for number in frames if not receipt.covers(number)]
        settle(again[0::2])
        settle(again[1::2])
    assert sorted(counted) == frames
    assert all(state.receipt(1).covers(number) for number in frames)


@given(st.lists(st.integers(1, 3 * OPEN_GAPS), max_size=400, unique=True))
def test_a_receipt_covers_nothing_that_is_open_and_tells_as_many_gaps_as_it_may(
    numbers: list[int],
) -> None:
    spread = [2 * number for number in numbers]
    state = placed(*spread, *range(2, 2 * MAX_GAPS, 2))
    receipt = state.receipt(1)
    is_open = {number for gap in state.gaps for number in range(gap.first, gap.last + 1)}
    covered = {number for number in range(1, receipt.highest + 1) if receipt.covers(number)}
    assert not covered & is_open
    assert covered | is_open >= set(range(1, receipt.highest + 1))
    assert len(receipt.gaps) == min(len(state.gaps), MAX_GAPS)
    assert receipt.highest == state.highest or len(receipt.gaps) == MAX_GAPS


# Series


def of_series(
    series: int, number: int, first: int, last: int, *, counts: bool = True
) -> ArrivedBatch:
    return ArrivedBatch(number, first, last, b"%8d" % number, counts, series)


def series_placed(*batches: tuple[int, int, int, int]) -> tuple[DeviceState, list[Outcome]]:
    """Place (series, number, first slot, last slot) one after the other."""
    state, outcomes = DeviceState(), []
    for one in batches:
        state, found = place(state, of_series(*one))
        outcomes.append(found.outcome)
    return state, outcomes


def test_a_series_begins_at_1_whatever_number_was_the_highest_before_AGT_28() -> None:
    state, found = series_placed(
        (0, 29_000_000, 29_000_001, 29_000_001), (7, 1, 29_000_010, 29_000_011)
    )
    assert found == [Outcome.NEW, Outcome.NEW]
    assert [(r.series, r.highest, r.gaps) for r in state.receipts(1)] == [
        (7, 1, ()),
        (0, 29_000_000, ((1, 28_999_999),)),
    ]


def test_a_new_series_is_opened_above_every_counted_slot_and_nowhere_else() -> None:
    state, _ = series_placed((5, 1, 100, 110))
    for first, last in ((110, 120), (50, 60), (105, 106), (99, 130)):
        same, found = place(state, of_series(6, 1, first, last))
        assert (same, found.outcome) == (state, Outcome.SERIES)
    assert place(state, of_series(6, 1, 111, 111))[1].outcome is Outcome.NEW


def test_what_is_on_its_way_when_a_series_ends_is_counted_between_its_neighbours() -> None:
    _, found = series_placed(
        *((5, 1, 100, 110), (6, 1, 150, 160), (5, 2, 120, 130), (5, 3, 131, 149)),
        *((5, 4, 145, 149), (5, 5, 150, 151), (5, 3, 131, 149), (6, 2, 161, 162)),
    )
    assert found == [
        *(Outcome.NEW, Outcome.NEW, Outcome.LATE, Outcome.LATE),
        *(Outcome.SLOTS, Outcome.SLOTS, Outcome.DUPLICATE, Outcome.NEW),
    ]


def test_a_late_batch_of_a_series_before_bounds_this_one_only_where_it_counts() -> None:
    state, _ = series_placed((5, 1, 100, 110), (6, 2, 150, 160))
    for odd in (of_series(5, 2, 155, 156), of_series(5, 2, 120, 130, counts=False)):
        assert place(state, odd)[0].gaps == state.gaps
    bounded, _ = place(state, of_series(5, 2, 120, 130))
    assert [gap.after for gap in bounded.gaps] == [130]


def test_the_fourth_series_before_is_closed() -> None:
    state, _ = series_placed(*((s, 1, 100 * s, 100 * s) for s in range(1, 6)))
    assert [one.series for one in state.earlier] == [2, 3, 4]
    assert place(state, of_series(1, 1, 100, 100))[1].outcome is Outcome.SERIES
    assert place(state, of_series(2, 1, 200, 200))[1].outcome is Outcome.DUPLICATE
    late, found = place(state, of_series(2, 2, 250, 260))
    assert found.outcome is Outcome.LATE
    assert [one.series for one in late.earlier] == [2, 3, 4]


def test_a_number_that_no_device_comes_to_is_outrun_in_a_series_too_AGT_29() -> None:
    for number in (0, LAST_BATCH + 1):
        found = place(DeviceState(), of_series(5, number, 100, 101))
        assert found == (DeviceState(), Placed(Outcome.OUTRUN))
    assert place(DeviceState(), of_series(5, 365 * 96, 100, 101))[1].outcome is Outcome.NEW


def test_a_status_of_another_series_closes_no_gap() -> None:
    state, _ = series_placed((5, 3, 100, 110))
    word = StreamStatus(1, 1, 9, 9, 0, 0, series=6, since=90)
    assert close_gaps(state, word) == state
    assert close_gaps(state, word._replace(series=5, oldest=3)).gaps == ()


ANY_SERIES = st.tuples(
    st.sampled_from([0, 0, 5, 6, 7, 8, 9]),
    st.integers(1, 12),
    st.integers(20, 70),
    st.integers(0, 5),
)


@given(st.lists(ANY_SERIES, max_size=60), st.sets(st.integers(0, 59), max_size=10))
@settings(max_examples=500, deadline=None)
def test_whatever_series_come_no_slot_counts_twice_and_nothing_unsettled_is_told(
    sent: list[tuple[int, int, int, int]], rejected: set[int]
) -> None:
    state, counted, settled = DeviceState(), set[int](), set[tuple[int, int]]()
    for at, (series, number, first, width) in enumerate(sent):
        slots = set(range(first, first + width + 1))
        one = of_series(series, number, first, first + width, counts=at not in rejected)
        before = state
        state, found = place(state, one)
        if found.outcome.settles:
            settled.add((series, number))
        elif found.outcome is not Outcome.GAP_LIMIT:
            assert state == before
        if found.outcome in (Outcome.NEW, Outcome.LATE) and one.counts:
            assert not slots & counted
            counted |= slots
        receipt = build_receipt([(1, state)], "0" * 16, 1, "home")
        told = {(s, n) for s in range(10) for n in range(1, 13) if receipt.covers(1, n, s)}
        assert told <= settled
        assert all(
            is_settled(state, n, s) == ((s, n) in told) for s in range(10) for n in range(1, 13)
        )
        assert len(state.earlier) <= 3
