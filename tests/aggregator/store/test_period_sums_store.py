"""Homes' sums of a period from a message to the store, its receipts, accounts and quarantine."""

from dataclasses import replace
from typing import Any

from aggregator.counting.period_totals import totals_of
from aggregator.counting.seen_batches import build_receipt
from aggregator.intake.intake import commit, read_messages
from aggregator.store.administration.quarantine_release import count_held
from aggregator.store.sqlite.session import SqliteSession
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.device.frame import encode
from edge_ldp.device.sums_frame import encode_sums
from edge_ldp.protocol.messages import Status, StreamStatus, parse_receipt, parse_status
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from edge_ldp.service.mqtt import Message
from tests.aggregator.counting.test_period_sums import DAY_S, RULES, WEEK, frame

KEY = FIRST_SUMS_KEY


def message(payload: bytes, device: str = "home-1", kind: str = "report") -> Message:
    return Message(f"edge-ldp/v1/street/{kind}/{device}", payload)


def take(store: SqliteStore, *messages: Message) -> Any:
    return commit(store, fleet="street", messages=messages, rules=RULES)


def test_sums_are_told_from_reports_by_their_magic_also_in_one_message() -> None:
    report = encode(1, 1, 1, [4], [0], 7)
    joined = report + encode_sums(frame()) + report
    broken = encode_sums(frame())[:-1] + b"\x7f"
    flush = read_messages("street", [message(joined), message(broken), message(joined[:-1])])
    assert [one.frame for one in flush.sums] == [frame()]
    assert len(flush.frames) == 2
    assert flush.broken == {"frame": 2}
    assert flush.devices == {"home-1"}


def test_a_release_is_one_report_of_its_account_and_receipted_REP_04(store: SqliteStore) -> None:
    told = StreamStatus(KEY, 1, 4, 1, created=3, expired=1, series=7, since=1)
    status = parse_status(Status("online", "x", (told,)).to_json())
    assert status.streams == (told,)
    came = message(encode_sums(frame()))
    for _ in range(2):
        take(store, came, message(status.to_json(), kind="status"))
    ((key, record),) = store.states("home-1")
    assert (key, record.created, record.counted, record.expired, record.pending) == (
        KEY,
        3,
        1,
        1,
        1,
    )
    receipt = build_receipt([(key, record.state)], "0123456789abcdef", 5, "home-1")
    read = parse_receipt(receipt.to_json())
    assert read.covers(KEY, 1, 7)
    assert not read.covers(0, 1, 7)
    assert read.streams[0].last == (WEEK + 1) * 7 * 96 - 1


def test_a_home_that_leaves_quarantine_is_added_to_the_totals_REP_10(store: SqliteStore) -> None:
    take(store, message(encode_sums(frame(y=(5,)))), message(encode_sums(frame()), "home-2"))
    before = store.period_totals("power", 0, 1 << 40)
    session = SqliteSession.open(store.path)
    with session.transaction():
        session.rows("UPDATE devices SET held_s = 5 WHERE device = 'home-1'")
    later = frame(WEEK + 1, 2)
    rules = replace(RULES, now_s=RULES.now_s + 7 * DAY_S)
    commit(store, fleet="street", messages=[message(encode_sums(later))], rules=rules)
    assert store.period_totals("power", 0, 1 << 40) == before
    with session.transaction():
        count_held(session, "home-1")
        session.rows("UPDATE devices SET held_s = NULL")
    session.close()
    kept = store.period_sums("power", 0, 1 << 40)
    assert len(kept) == 3
    assert store.period_totals("power", 0, 1 << 40) == totals_of(kept)
