"""One flush over records: what counts, what is settled, what is only counted as refused."""

from dataclasses import replace

import numpy as np

from aggregator.counting.code_sets import watch_mechanism
from aggregator.counting.frames import Arrival, FrameBatch
from aggregator.counting.records import Again, Changes, Key, Known, Member, Record
from aggregator.counting.refusals import Codes, Rules, StreamRules
from aggregator.counting.settle import settle, wanted
from edge_ldp.device import frame
from edge_ldp.mechanisms import Hybrid
from edge_ldp.protocol.messages import Status, StreamStatus
from tests.aggregator.arrivals import read_frame

NONE = FrameBatch.of([])
SLOT_S = 900
NOW = 1_000_000
CODES = 8
RULES = Rules(
    streams={1: StreamRules(SLOT_S, 4, {1: Codes(np.ones(CODES, bool), 0)})},
    devices=None,
    max_devices=3,
    window_s=35 * 86_400,
    tolerance_s=300,
    now_s=float(NOW * SLOT_S),
)


def arrival(  # noqa: PLR0913 (the fields of a frame)
    batch: int,
    *,
    device: str = "home",
    stream: int = 1,
    epoch: int = 1,
    first: int | None = None,
    codes: tuple[int, ...] = (1, 2),
) -> Arrival:
    start = NOW - 100 + 2 * batch if first is None else first
    slots = range(start, start + len(codes))
    return read_frame(device, frame.encode(stream, batch, epoch, list(slots), codes))


def known(records: dict[Key, Record] | None = None) -> Known:
    found = records or {}
    devices = frozenset(device for device, _ in found)
    return Known(found, devices, len(devices))


def flush(*arrivals: Arrival, by: Rules = RULES, of: Known | None = None) -> Changes:
    return settle(FrameBatch.of(arrivals), {}, {}, of or known(), by)


def status(first: int, following: int, oldest: int, created: int, expired: int = 0) -> Status:
    told = StreamStatus(1, first, following, oldest, created, expired)
    return Status("online", "test", (told,))


def refused(changes: Changes) -> dict[tuple[str, int], tuple[int, int]]:
    return {(str(reason), stream): n for (reason, stream), n in changes.refused.items()}


def test_frames_are_applied_in_batch_order_whatever_order_they_came_in() -> None:
    changes = flush(arrival(3), arrival(1), arrival(2))
    record = changes.records["home", 1]
    assert (record.state.highest, record.state.gaps) == (3, ())
    assert record.counted == changes.tally.total == 6
    assert not changes.gapped
    assert changes.settled == changes.enrolled == {"home"}


def test_what_is_counted_is_in_the_tally_by_bucket_and_present() -> None:
    changes = flush(arrival(1, first=NOW - 96, codes=(3, 3, 4, 5, 6)))
    bucket = (NOW - 96) // 4
    assert list(changes.tally.rows()) == [
        (1, 1, 0, 0, bucket, 3, 2),
        (1, 1, 0, 0, bucket, 4, 1),
        (1, 1, 0, 0, bucket, 5, 1),
        (1, 1, 0, 0, bucket + 1, 6, 1),
    ]
    assert dict(changes.presence) == {(1, bucket, 0, 0): 4, (1, bucket + 1, 0, 0): 1}
    assert changes.records["home", 1].first_slot == NOW - 96


def test_the_same_frame_twice_in_one_flush_and_in_the_next_counts_once() -> None:
    first = flush(arrival(1), arrival(1))
    assert first.tally.total == 2
    assert first.records["home", 1].duplicates == 2
    again = flush(arrival(1), of=known(dict(first.records)))
    assert again.tally.total == 0
    assert again.records["home", 1].counted == 2
    assert refused(again) == {("duplicate", 1): (1, 2)}


def test_what_came_again_whole_adds_to_the_duplicates() -> None:
    before = known(dict(flush(arrival(1), arrival(1)).records))
    again = {("home", 1): Again(1, 2, {(1, 0)})}
    changes = settle(NONE, {}, {}, before, RULES, again)
    assert changes.records["home", 1].duplicates == 2 + 2
    assert refused(changes) == {("duplicate", 1): (1, 2)}


def test_a_clone_with_other_bytes_is_a_conflict_on_its_device() -> None:
    changes = flush(arrival(1), arrival(1, codes=(3, 4)))
    assert changes.tally.total == 2
    assert changes.records["home", 1].conflicts == 2
    assert refused(changes) == {("conflict", 1): (1, 2)}


def test_a_final_refusal_settles_the_batch_and_counts_its_reports_as_rejected() -> None:
    changes = flush(arrival(1, codes=(0, CODES)), arrival(2, codes=(CODES, 1)))
    record = changes.records["home", 1]
    assert changes.tally.total == 0
    assert (record.rejected, record.counted) == (4, 0)
    assert record.state.receipt(1).covers(1)
    assert record.state.receipt(1).covers(2)
    assert refused(changes) == {("range", 1): (2, 4)}
    again = flush(arrival(1, codes=(0, CODES)), of=known(dict(changes.records)))
    assert again.records["home", 1].rejected == 4


def test_a_frame_from_the_future_is_not_settled_and_counts_once_time_has_come() -> None:
    late_clock = replace(RULES, now_s=float((NOW - 200) * SLOT_S))
    early = flush(arrival(1), by=late_clock)
    assert refused(early) == {("early", 1): (1, 2)}
    assert not early.records
    assert flush(arrival(1)).tally.total == 2


def test_an_unknown_stream_leaves_no_record() -> None:
    changes = flush(arrival(1, stream=7))
    assert not changes.records
    assert refused(changes) == {("stream", -1): (1, 2)}


def test_open_enrolment_ends_at_the_cap_and_no_row_grows_beyond_it() -> None:
    changes = flush(*(arrival(1, device=f"home{i}") for i in range(5)))
    assert len(changes.enrolled) == len(changes.records) == 3
    assert refused(changes) == {("device", -1): (2, 4)}


def test_a_listed_fleet_hears_no_other_device_even_if_it_has_a_record() -> None:
    listed = replace(RULES, devices=frozenset({"home"}))
    before = known({("revoked", 1): Record()})
    changes = flush(arrival(1), arrival(1, device="revoked"), by=listed, of=before)
    assert changes.records.keys() == {("home", 1)}
    assert refused(changes) == {("device", -1): (1, 2)}


def test_a_status_of_a_stranger_is_refused_and_broken_messages_are_only_counted() -> None:
    listed = replace(RULES, devices=frozenset({"home"}))
    changes = settle(NONE, {"other": status(1, 1, 1, 0)}, {"frame": 4}, known(), listed)
    assert refused(changes) == {("device", -1): (1, 0), ("frame", -1): (4, 0)}
    assert not changes.statuses
    assert not changes.enrolled


def test_a_gap_asks_for_a_receipt() -> None:
    assert flush(arrival(1), arrival(3)).gapped == {"home"}


def test_created_is_counted_plus_rejected_plus_expired_plus_pending() -> None:
    record = flush(arrival(1), arrival(2, codes=(0, CODES))).records["home", 1]
    told = {"home": status(1, 6, 4, created=11, expired=2)}
    record = settle(NONE, told, {}, known({("home", 1): record}), RULES).records["home", 1]
    assert record.pending == 11 - 2 - 2 - 2


def test_after_a_reinstall_only_the_new_state_is_pending() -> None:
    record = flush(arrival(1), arrival(2)).records["home", 1]
    told = {"home": status(1, 4, 3, created=7)}
    record = settle(NONE, told, {}, known({("home", 1): record}), RULES).records["home", 1]
    assert record.pending == 3
    again = {"home": status(NOW, NOW, NOW, created=0)}
    record = settle(NONE, again, {}, known({("home", 1): record}), RULES).records["home", 1]
    assert (record.pending, record.counted) == (0, 4)


def after_a_lost_state(*flushes: tuple[list[Arrival], Status | None]) -> Record:
    """Return the record of a device whose first state made two batches that were counted."""
    began = settle(
        FrameBatch.of([arrival(1), arrival(2)]), {"home": status(1, 3, 3, 4)}, {}, known(), RULES
    )
    record = began.records["home", 1]
    for frames, told in flushes:
        heard = {} if told is None else {"home": told}
        of = known({("home", 1): record})
        record = settle(FrameBatch.of(frames), heard, {}, of, RULES).records["home", 1]
    return record


def test_batches_that_overtake_the_first_word_of_their_state_are_not_counted_as_older() -> None:
    new = [arrival(NOW - 50, first=NOW - 50), arrival(NOW - 49, first=NOW - 48)]
    hello, later = status(NOW - 50, NOW - 50, NOW - 50, 0), status(NOW - 50, NOW - 48, NOW - 50, 4)
    for flushes in (
        [([], hello), (new, None), ([], later)],
        [(new, None), ([], later)],  # a broker lost the first word
        [(new, hello), ([], later)],  # frames of a flush are settled before its statuses
        [(new[:1], None), ([], later), (new[1:], None), ([], later)],
    ):
        record = after_a_lost_state(*flushes)
        assert (record.before, record.counted, record.created, record.pending) == (4, 8, 4, 0)
    assert after_a_lost_state(([], later)).before == 4  # none of its batches came yet
    waits = after_a_lost_state(([], hello), (new[:1], None), ([], later))
    assert (waits.before, waits.pending) == (4, 2)


def test_a_new_series_has_an_account_of_its_own_whatever_its_numbers() -> None:
    told = StreamStatus(1, 1, 2, 1, created=5, expired=0, series=9, since=NOW - 50)
    record = after_a_lost_state(([], Status("online", "test", (told,))))
    assert (record.before, record.created, record.next) == (4, 5, 2)


def test_a_device_that_tells_of_fewer_than_came_has_no_older_state() -> None:
    record = flush(arrival(1), arrival(2)).records["home", 1]
    told = {"home": status(1, 9, 9, created=3)}
    assert (
        settle(NONE, told, {}, known({("home", 1): record}), RULES).records["home", 1].before == 0
    )


def test_frames_are_merged_by_their_places() -> None:
    one, two = arrival(1), arrival(2, device="other", codes=(3,))
    both, wanted = (
        FrameBatch.of([one]).merged(FrameBatch.of([two]), [1, 0]),
        FrameBatch.of([two, one]),
    )
    assert both.devices == wanted.devices
    for found, expected in ((both.heads, wanted.heads), (both.slots, wanted.slots)):
        assert found.tolist() == expected.tolist()


def test_an_old_word_that_a_broker_kept_changes_nothing() -> None:
    new = [arrival(NOW - 50, first=NOW - 50)]
    told = status(NOW - 50, NOW - 49, NOW - 50, 2)
    record = after_a_lost_state((new, told))
    assert after_a_lost_state((new, told), ([], status(1, 3, 3, 4))) == record


def test_a_status_of_a_stream_that_the_fleet_lacks_leaves_no_record() -> None:
    told = Status("online", "test", (StreamStatus(9, 1, 1, 1, 0, 0),))
    changes = settle(NONE, {"home": told}, {}, known(), RULES)
    assert not changes.records
    assert changes.statuses == {"home": told}


def test_an_account_of_more_reports_than_slots_is_named_and_not_taken() -> None:
    told = status(1, 2, 2, created=1 << 40)
    changes = settle(NONE, {"home": told}, {}, known(), RULES)
    assert not changes.records
    named = replace(told, refusals=("its account: more reports than slots",))
    assert changes.statuses == {"home": named}


def test_the_records_looked_at_are_those_of_frames_and_statuses() -> None:
    assert wanted(FrameBatch.of([arrival(1)]), {"other": status(1, 1, 1, 0)}) == {
        ("home", 1),
        ("other", 1),
    }


def test_a_device_that_is_held_is_settled_as_any_other_and_counted_apart() -> None:
    members = {"home": Member(group=5, held=True), "other": Member(group=6)}
    of = Known({}, frozenset({"home", "other"}), 2, members=members)
    changes = flush(arrival(1), arrival(1, device="other"), of=of)
    assert [row[2] for row in changes.tally.rows()] == [6, 6]
    assert list(changes.held) == ["home"]
    held = changes.held["home"]
    assert [row[2] for row in held.tally.rows()] == [5, 5]
    assert sum(held.presence.values()) == sum(changes.presence.values()) == 2
    plain = flush(arrival(1), arrival(1, device="other"))
    assert changes.records == plain.records
    assert [(one.device, *whose) for one, *whose in changes.counted] == [
        ("home", 5, 0),
        ("other", 6, 0),
    ]


def test_a_revoked_device_is_refused_and_not_enrolled_again_REP_03() -> None:
    of = Known({}, frozenset({"home"}), 1, members={"home": Member(revoked=True)})
    changes = settle(FrameBatch.of([arrival(1)]), {"home": status(1, 3, 1, 4)}, {}, of, RULES)
    assert refused(changes) == {("device", -1): (2, 2)}
    assert (changes.records, changes.enrolled, changes.statuses) == ({}, frozenset(), {})


def test_a_mark_holds_a_device_where_the_rules_say_so_but_none_that_was_released() -> None:
    wave = watch_mechanism(Hybrid(epsilon=1, low=0, high=100, size=16))
    codes = Codes(np.ones(1000, bool), 0, wave)
    rules = replace(RULES, streams={1: StreamRules(SLOT_S, 4, {1: codes})}, marks_hold=True)
    frames = [arrival(n, first=NOW - 600 + 2 * n, codes=(7, 7)) for n in range(1, 200)]
    for held, by in ((frozenset({"home"}), rules), (frozenset(), replace(rules, marks_hold=False))):
        changes = flush(*frames, by=by)
        assert changes.marked
        assert changes.holds == held
    for member in (Member(cleared=True), Member(held=True)):
        of = Known({}, frozenset({"home"}), 1, members={"home": member})
        assert flush(*frames, by=rules, of=of).holds == frozenset()
