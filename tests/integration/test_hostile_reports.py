"""Hostile and broken reports against both stores: group REP of docs/faults.md."""

import logging
import struct
import tracemalloc
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from aggregator.answers.fleet.status import read_status, troubled_devices
from aggregator.answers.fleet.status_answer import RefusingDevice
from aggregator.answers.fleet.status_text import status_text
from aggregator.answers.parts import answer_json
from aggregator.counting.flush_counts import away_after
from aggregator.intake.intake import read_messages
from edge_ldp.device.frame import MAX_OFFSET, V1_HEAD_BYTES
from edge_ldp.service.broker import Message
from tests.aggregator.fakes import make_config
from tests.cost import costs_at_most
from tests.integration.both_stores import (
    BUCKET,
    FLEET,
    NOW,
    SLOT_S,
    WINDOW_S,
    House,
    assert_accounted,
    raw,
    report,
    rules,
    status,
)

GOOD = report(1, [NOW - 2, NOW - 1], [3, 4])
U32 = (1 << 32) - 1


def crafted(**fields: int) -> Message:
    """Return the good frame with header fields as told, also such as no encoder writes."""
    names = ("version", "flags", "stream", "batch", "epoch", "first", "count")
    values = dict(zip(names, struct.unpack_from("<BBBIIIH", GOOD.payload, 2), strict=True))
    head = struct.pack("<BBBIIIH", *({**values, **fields}[name] for name in names))
    return raw(b"LD" + head + GOOD.payload[V1_HEAD_BYTES:])


def pairs(first: int, *given: tuple[int, int]) -> Message:
    """Return a frame of these (offset, code) pairs, in the order given."""
    head = struct.pack("<2sBBBIIIH", b"LD", 1, 0, 1, 2, 1, first, len(given))
    return raw(head + b"".join(struct.pack("<HH", *pair) for pair in given))


BAD = {
    "REP-01 a code that is none": (report(2, [NOW], [8]), "range"),
    "REP-01 the highest code": (report(2, [NOW], [65_535]), "range"),
    "REP-01 more in the head than in the frame": (crafted(count=3), "frame"),
    "REP-01 less in the head than in the frame": (crafted(count=1), "frame"),
    "REP-01 no slots": (crafted(count=0), "frame"),
    "REP-01 another version": (crafted(version=2), "frame"),
    "REP-01 flags": (crafted(flags=1), "frame"),
    "REP-01 another magic": (raw(b"XX" + GOOD.payload[2:]), "frame"),
    "REP-01 trailing bytes": (raw(GOOD.payload + b"\x00"), "frame"),
    "REP-02 a topic below the device's": (
        Message(f"edge-ldp/v1/{FLEET}/report/home/x", GOOD.payload),
        "identity",
    ),
    "REP-02 another fleet": (Message("edge-ldp/v1/other/report/home", GOOD.payload), "identity"),
    "REP-06 an offset that wraps": (pairs(NOW - 2, (0, 1), (MAX_OFFSET, 1), (1, 1)), "frame"),
    "REP-06 slots out of order": (pairs(NOW - 9, (0, 1), (2, 1), (1, 1)), "frame"),
    "REP-06 the same slot twice": (pairs(NOW - 9, (0, 1), (1, 1), (1, 2)), "frame"),
    "REP-06 beyond 2^32": (pairs(U32, (0, 1), (1, 1)), "frame"),
    "REP-06 slot 0": (report(2, [1]), "late"),
    "REP-06 slot 2^31 - 1": (report(2, [(1 << 31) - 1]), "early"),
    "REP-06 slot 2^31": (report(2, [1 << 31]), "early"),
    "REP-06 slot 2^32 - 1": (report(2, [U32]), "early"),
    "REP-06 the highest batch": (report(U32, [NOW]), "outrun"),
    "REP-07 the future": (report(2, [NOW + 1]), "early"),
    "REP-07 a closed bucket": (report(2, [NOW - WINDOW_S // SLOT_S - 5]), "late"),
    "REP-08 a plan never issued": (report(2, [NOW], epoch=2), "foreign"),
    "REP-08 a stream that there is not": (report(2, [NOW], stream=9), "stream"),
}
SETTLES = ("range", "late")


def test_what_is_refused_changes_nothing_else_REP_01_REP_02_REP_06_REP_07_REP_08(
    house: House,
) -> None:
    told = Counter[str]()
    for at, (message, reason) in enumerate(BAD.values()):
        device = f"home-{at}"
        house.take(of(device, GOOD))
        before = house.kept()
        house.take(of(device, message))
        told[reason] += 1
        assert house.refused() == told, message
        if reason in SETTLES:  # the batch is settled as rejected: its device stops sending it
            record = house.records()[device, 1]
            assert (record.counted, record.rejected) == (2, 1)
            assert (record.state.highest, record.state.last_slot) == (2, NOW - 1)
            assert house.counts() == before[0]
        else:
            assert house.kept() == before, message
        house.take(of(device, report(3, [NOW])))
        assert house.records()[device, 1].counted == 3
    assert house.counts().total() == 3 * len(BAD)


def of(device: str, message: Message) -> Message:
    """Return the message as if this device had sent it."""
    return message._replace(topic=message.topic.replace("home", device))


def test_reports_under_plans_of_nobody_cost_no_row_and_no_memory_REP_08_NET_27(
    house: House,
) -> None:
    """Each of another epoch: none is settled, and all are told."""
    house.take(GOOD)
    before = house.kept()
    many = [report(2 + at, [NOW], epoch=2 + at) for at in range(500)]
    some = held(lambda: house.take(*many))
    more = held(lambda: house.take(*many))
    assert house.kept() == before
    assert house.refused() == {"foreign": 2 * len(many)}
    assert len(house.store.refused()) == 1
    assert more < some + 100_000
    house.take(report(2, [NOW]))
    assert house.counts().total() == 3


# now lies at the edge: slots of a second, as 64-bit and 32-bit columns, blobs and NumPy hold them
@pytest.mark.parametrize("edge", [1 << 31, U32 - 1], ids=["2^31", "2^32"])
def test_slots_at_the_edges_count_where_the_clock_has_come_to_them_REP_06(
    house: House, edge: int
) -> None:
    by = rules(now=edge, slot_s=1)
    house.take(report(edge - 9, [edge - 3, edge - 2], [1, 2]), by=by)
    house.take(report(edge - 7, [edge - 1, edge], [3, 4]), by=by)
    buckets = [((edge - 3 + at) // BUCKET, at + 1) for at in range(4)]
    assert house.counts() == dict.fromkeys(buckets, 1)
    record = house.records()["home", 1]
    assert (record.state.highest, record.state.last_slot) == (edge - 7, edge)
    missing = [(gap.first, gap.last, gap.after, gap.before) for gap in record.state.gaps]
    assert missing == [(1, edge - 10, -1, edge - 3), (edge - 8, edge - 8, edge - 2, edge - 1)]
    house.take(report(edge - 8, [edge - 2]), by=by)
    assert house.counts().total() == 4


def test_a_status_of_more_reports_than_slots_stays_out_of_totals_AGG_24_REP_06(
    house: House,
) -> None:
    """2^53 and 2^63 cannot stand in a frame (u32 fields), nor in a status that is believed."""
    most = 1 << 62
    house.take(status("home", most, following=U32, oldest=U32, expired=most, first=U32))
    assert ("home", 1) not in house.records()
    (row,) = house.store.devices()
    assert (row.device, row.refusals) == ("home", ("its account: more reports than slots",))
    (told,) = troubled_devices([row]).refusing
    assert told == RefusingDevice(device="home", reasons=list(row.refusals))
    house.take(status("home", 3, following=U32, oldest=U32, first=U32))
    assert [one.refusals for one in house.store.devices()] == [()]
    refused = dict(house.refused())
    for number in (1 << 53, 1 << 63, 1 << 64):
        fields = f'{{"v":1,"state":"online","software":"1","streams":[{{"stream":1,"first":{number}'
        house.take(raw((fields + "}]}").encode(), kind="status"))
    assert house.refused() == {**refused, "status": refused.get("status", 0) + 3}


def held(work: Callable[[], object]) -> int:
    """Return the most bytes held at once while it worked."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_jump_costs_no_time_or_memory_that_grows_with_it_REP_06(house: House) -> None:
    """From one end of the window to the other, and batch numbers from 1 to two million."""
    oldest = NOW - WINDOW_S // SLOT_S
    for device in ("near", "far"):
        house.take(report(1, [oldest + 5], device=device))
    near = held(lambda: house.take(report(2, [oldest + 6], device="near")))
    far = held(lambda: house.take(report(NOW, [NOW], device="far")))
    assert far < near + 100_000
    wide = report(NOW + 1, [NOW, NOW + 1, NOW + MAX_OFFSET], device="far")
    late = rules(now=NOW + MAX_OFFSET, window_s=10**9)
    house.take(report(3, [NOW - 9], device="near"), by=late)
    before = len(house.store.presence(1))
    assert held(lambda: house.take(wide, by=late)) < near + 100_000
    assert len(house.store.presence(1)) - before <= 2 * away_after(SLOT_S) // BUCKET + 2


# made by the test: some take a while
BOMBS: dict[str, Callable[[], bytes]] = {
    "depth": lambda: b"[" * 100_000,
    "objects": lambda: b'{"a":' * 50_000,
    "a million keys": lambda: b"{" + b",".join(b'"%d":1' % at for at in range(1_000_000)) + b"}",
    "keys of a status's size": lambda: (
        b"{" + b",".join(b'"%d":1' % at for at in range(1600)) + b"}"
    ),
    "depth of a status's size": lambda: b'{"v":1,"x":' + b"[" * 8000 + b"]" * 8000 + b"}",
    "a huge integer": lambda: b'{"v":' + b"9" * 200_000 + b"}",
    "numbers": lambda: b'{"v":1,"x":[' + b"1," * 100_000 + b"1]}",
    "an unended string": lambda: b'{"v":"' + b"\\" * 200_000,
    "compressed": lambda: b"\x1f\x8b\x08\x00" + bytes(60_000),
    "the largest frame of zeros": lambda: bytes(4115),
    "a frame that is too long": lambda: GOOD.payload + bytes(1 << 20),
}


@pytest.mark.parametrize("kind", ["report", "status", "stream"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_within_ten_milliseconds_and_a_megabyte_REP_12(
    bomb: str, kind: str
) -> None:
    """What is refused here reaches no store; the worst takes 1 ms of CPU."""
    message = raw(BOMBS[bomb](), kind=kind)
    assert not read_messages(FLEET, [GOOD, message]).broken.keys() - {"frame", "status"}
    assert sum(read_messages(FLEET, [message]).broken.values()) == 1
    assert held(lambda: read_messages(FLEET, [message])) < 1 << 20
    assert costs_at_most(0.010, lambda: read_messages(FLEET, [message]))


def test_one_bad_report_of_fifty_refuses_all_of_them_and_is_receipted_REP_13(house: House) -> None:
    slots = list(range(NOW - 50, NOW))
    house.take(report(1, slots, [1] * 49 + [8]))
    record = house.records()["home", 1]
    assert (record.counted, record.rejected) == (0, 50)
    assert record.state.receipt(1).covers(1)
    assert not house.counts()
    house.take(status("home", 50, following=2))
    assert_accounted(house.store, {"home": 50})


TEXTS = [
    "'; DROP TABLE devices; --",
    "$(touch /tmp/x) `id` && rm -rf /",
    "<script>alert(1)</script>",
    "=cmd|' /C calc'!A0",
    '"},{"device":"x',
]
CONTROL = ["\x1b[2J\x1b[31m", "line\nWARNING forged", "a\rb", "\x00", "\u202eevil", "\u2028"]


def test_text_from_outside_stays_text_REP_14(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for at, text in enumerate(TEXTS):
            house.take(status(f"home-{at}", 0, following=1, software=text))
        for text in CONTROL:
            house.take(status("home", 0, following=1, software=text))
        names = [*TEXTS, *CONTROL, "", "+", "#", "home\n", "HOME"]
        house.take(*(Message(f"edge-ldp/v1/{FLEET}/report/{name}", b"x") for name in names))
    assert [row.software for row in house.store.devices()] == TEXTS
    assert house.refused() == {"status": len(CONTROL), "identity": len(names)}
    assert not caplog.messages


def test_what_people_are_shown_is_one_line_a_row_REP_14(house: House) -> None:
    config = make_config(Path("a.db"))
    house.take(report(1, [NOW]), status("home", 1, following=2))
    lines = status_text(read_status(house.store, config, 0)).splitlines()
    house.take(*(status("home", 1, following=2, software=text) for text in (*CONTROL, *TEXTS)))
    view = read_status(house.store, config, 0)
    after = status_text(view).splitlines()
    assert len(after) == len(lines) + 3  # a table, with a row: statuses were refused
    assert all(line.isprintable() for line in after)
    assert not [text for text in (*TEXTS, *CONTROL) if text in answer_json(view)]
