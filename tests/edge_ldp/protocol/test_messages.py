"""Topics, receipts and status: round trips, what covers what, and what is refused."""

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import ParameterError
from edge_ldp.protocol.messages import (
    MAX_GAPS,
    Receipt,
    Status,
    StreamReceipt,
    StreamStatus,
    check_name,
    name_in_topic,
    parse_receipt,
    parse_status,
    topic,
)
from edge_ldp.protocol.released import FIRST_KEY, FIRST_SUMS_KEY
from edge_ldp.protocol.strict_json import MessageError
from tests.tables import each

U32 = (1 << 32) - 1
NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,62}", fullmatch=True)


# What a topic names: NET_18


@given(NAMES, st.sampled_from(["report", "receipt", "plan", "status"]), NAMES)
def test_a_topic_names_its_device_or_stream(fleet: str, kind: str, name: str) -> None:
    made = topic(check_name("fleet", fleet), kind, check_name("device", name))
    assert made == f"edge-ldp/v1/{fleet}/{kind}/{name}"
    assert name_in_topic(fleet, kind, made) == name
    assert name_in_topic(fleet, "other", made) is None
    assert name_in_topic(fleet + "x", kind, made) is None


@pytest.mark.parametrize(
    "given_topic",
    [
        "",
        "edge-ldp/v1/north/report/",
        "edge-ldp/v1/north/report/a/b",
        "edge-ldp/v1/north/report/+",
        "edge-ldp/v1/north/report/#",
        "edge-ldp/v1/north/report/$a",
        "edge-ldp/v1/north/report/A",
        "edge-ldp/v1/north/report/a\n",
        "edge-ldp/v1/north/report/a\x00",
        "edge-ldp/v1/north/report//a",
        "/edge-ldp/v1/north/report/a",
        "edge-ldp/v2/north/report/a",
        "edge-ldp/v1/south/report/a",
        "$SYS/broker",
        "edge-ldp/v1/north/report/" + "a" * 64,
        "edge-ldp/v1/north/report/\ufffd",
        "edge-ldp/v1/north/report/\u0430",
    ],
)
def test_another_topic_names_nothing(given_topic: str) -> None:
    assert name_in_topic("north", "report", given_topic) is None


@pytest.mark.parametrize(
    "name", ["", "A", "-a", "_a", "a b", "a/b", "+", "#", "a\n", "ä", "a" * 64]
)
def test_a_name_that_is_not_safe_in_a_topic_is_refused(name: str) -> None:
    with pytest.raises(ParameterError) as refused:
        check_name("device", name)
    assert refused.value.name == "device"
    assert name not in str(refused.value) or not name.strip("-_aA")


# Receipts


@st.composite
def stream_receipts(draw: st.DrawFn) -> StreamReceipt:
    ends = sorted(draw(st.sets(st.integers(1, 400), max_size=20)))
    gaps = tuple(zip(ends[::2], ends[1::2], strict=False))
    key = draw(st.sampled_from([0, FIRST_KEY, FIRST_SUMS_KEY])) + draw(st.integers(0, 15))
    return StreamReceipt(key, draw(st.integers(400, U32)), gaps)


@st.composite
def receipts(draw: st.DrawFn) -> Receipt:
    streams = draw(st.lists(stream_receipts(), max_size=4))
    if draw(st.booleans()):
        return Receipt(tuple(streams))
    whole = [
        one._replace(series=draw(st.integers(0, U32)), last=draw(st.integers(-1, U32)))
        for one in streams
    ]
    store, at_s = draw(st.integers(0, (1 << 64) - 1)), draw(st.integers(0, 1 << 40))
    return Receipt(tuple(whole), f"{store:016x}", at_s, draw(NAMES), draw(st.integers(0, 9)))


RECEIPTS = receipts()


@given(RECEIPTS)
def test_a_receipt_is_read_back_as_it_was(receipt: Receipt) -> None:
    read = parse_receipt(receipt.to_json())
    assert {*read.streams} == {*receipt.streams}
    assert read[1:] == receipt[1:]


def test_each_kind_of_stream_has_a_list_of_its_own_and_an_empty_one_is_left_out() -> None:
    every = tuple(StreamReceipt(key, 9) for key in (3, FIRST_KEY + 3, FIRST_SUMS_KEY + 3))
    told = json.loads(Receipt(every).to_json())
    assert {kind: one[0]["stream"] for kind, one in told.items() if kind != "v"} == {
        "streams": 3,
        "released": 3,
        "sums": 3,
    }
    assert parse_receipt(Receipt(every).to_json()) == Receipt(every)
    assert "sums" not in json.loads(Receipt(every[:2]).to_json())
    with pytest.raises(MessageError):
        parse_receipt(json.dumps(told | {"sums": [ONE | {"stream": 16}]}).encode())


@given(stream_receipts())
def test_a_receipt_covers_all_batches_up_to_the_highest_but_the_gaps(one: StreamReceipt) -> None:
    missing = {batch for first, last in one.gaps for batch in range(first, last + 1)}
    receipt = Receipt((one,))
    for batch in range(1, 420):
        covered = batch <= one.highest and batch not in missing
        assert one.covers(batch) == covered
        assert receipt.covers(one.stream, batch) == covered
    assert not one.covers(one.highest + 1)
    assert not receipt.covers((one.stream + 1) % 256, 1)


def test_a_receipt_of_one_series_covers_no_batch_of_another() -> None:
    receipt = Receipt((StreamReceipt(1, 9, series=5), StreamReceipt(1, 2)), "0" * 16, 1, "home")
    read = parse_receipt(receipt.to_json())
    assert [read.covers(1, 9, series) for series in (5, 6, 0)] == [True, False, False]
    assert read.covers(1, 2)
    assert not parse_receipt(b'{"v":1,"streams":[]}').covers(1, 1)
    assert not StreamReceipt(1, 0).covers(1)


def test_a_receipt_without_a_store_is_one_of_version_1_and_tells_of_no_series() -> None:
    both = Receipt((StreamReceipt(1, 9, series=5), StreamReceipt(1, 2)))
    assert both.to_json() == b'{"v":1,"streams":[{"stream":1,"highest":2,"gaps":[]}]}'


ONE: dict[str, Any] = {"stream": 1, "highest": 9, "gaps": [[2, 3]]}


@pytest.mark.parametrize(
    ("name", "value"),
    each(
        ("streams", None, {}, [1], [ONE] * 17, [{"stream": 1, "highest": 9}]),
        ("stream", 256, True),
        ("highest", -1, 1 << 32),
        ("gaps", None, [[3, 2]], [[2]], [[2, 3, 4]], [["2", 3]], [[-1, 3]], [[2, 1 << 32]], [{}]),
        ("gaps", [[k, k] for k in range(1, MAX_GAPS + 3)]),
    ),
)
def test_a_malformed_receipt_is_refused(name: str, value: Any) -> None:
    streams = value if name == "streams" else [ONE | {name: value}]
    with pytest.raises(MessageError):
        parse_receipt(json.dumps({"v": 1, "streams": streams}).encode())


@pytest.mark.parametrize(
    ("name", "value"),
    each(
        ("store", "xyz", "0" * 15, 5),
        ("at_s", -1),
        ("device", ""),
        ("refused", -1),
        ("streams", *([ONE | more] for more in ({}, {"series": -1}, {"series": 1, "last": -1}))),
    ),
)
def test_a_malformed_receipt_of_version_2_is_refused(name: str, value: Any) -> None:
    whole = Receipt((StreamReceipt(1, 9, series=5),), "0123456789abcdef", 7, "home")
    table = json.loads(whole.to_json())
    assert parse_receipt(json.dumps(table).encode()) == whole
    with pytest.raises(MessageError):
        parse_receipt(json.dumps(table | {name: value}).encode())


@pytest.mark.parametrize("parse", [parse_receipt, parse_status])
@pytest.mark.parametrize(
    "payload",
    [b"", b"{}", b"[]", b'{"v":2}', b'{"v":1}', b"\xff", b"[" * 99_999, b"x" * 10_000_000],
    ids=lambda payload: f"{payload[:8]!r}",
)
def test_garbage_is_a_message_error(parse: Any, payload: bytes) -> None:
    with pytest.raises(MessageError):
        parse(payload)


# Status


@st.composite
def stream_statuses(draw: st.DrawFn) -> StreamStatus:
    first, oldest, following = sorted(draw(st.integers(1, U32)) for _ in range(3))
    series = draw(st.just(0) | st.integers(1, U32))
    return StreamStatus(
        since=draw(st.integers(0, U32)) if series else 0,
        stream=draw(st.integers(0, 255)),
        first=first,
        next=following,
        oldest=oldest,
        created=draw(st.integers(0, 1 << 62)),
        expired=draw(st.integers(0, 1 << 62)),
        epoch=draw(st.integers(0, U32)),
        plan=draw(st.sampled_from(["-", "0123456789abcdef"])),
        series=series,
    )


@given(
    st.sampled_from(["online", "offline"]),
    st.lists(stream_statuses(), max_size=4),
    st.dictionaries(NAMES, st.integers(0, 1 << 62), max_size=3),
    st.lists(st.sampled_from(["ratio", "expired"]), max_size=3),
)
def test_a_status_is_read_back_but_for_what_is_for_people(
    state: str, streams: list[StreamStatus], ledger: dict[str, int], refusals: list[str]
) -> None:
    status = Status(state, "edge-ldp 0.1.0", tuple(streams), ledger, tuple(refusals))
    assert parse_status(status.to_json()) == replace(status, ledger={})


def test_a_status_has_one_encoding_whatever_the_order_of_its_ledger() -> None:
    one = Status("online", "x", ledger={"b": 1, "a": 2})
    other = Status("online", "x", ledger={"a": 2, "b": 1})
    assert one.to_json() == other.to_json()


STREAM = {
    "stream": 1,
    "first": 3,
    "next": 9,
    "oldest": 5,
    "created": 40,
    "expired": 2,
    "epoch": 7,
    "plan": "0123456789abcdef",
}
STATUS: dict[str, Any] = {"v": 1, "state": "online", "software": "x", "streams": [STREAM]}


@pytest.mark.parametrize(
    ("name", "value"),
    each(
        ("state", "sleeping", 1),
        ("software", "a\nb", "x" * 65),
        ("streams", [STREAM] * 17, [[]]),
        ("refusals", ["ratio"] * 9, "ratio", [1], [""], ["x" * 65], ["a\x1b[31m"], ["two\nlines"]),
        ("refused", ["ratio: 2"] * 9, ["x" * 301], ["a\x1b[31m"]),
        ("health", "", "two\nlines", "x" * 301),
        ("ages", [], {"telegram_s": -1}, {"link_s": "5"}, {"receipt_s": 1 << 32}),
        ("stream", -1),
        ("first", 0, 6),
        ("next", 2, 1 << 32),
        ("oldest", 2, 10),
        ("created", -1, 1 << 63),
        ("expired", "2"),
        ("epoch", 1 << 32),
        ("plan", "", "x" * 65, "a\x1b[31m"),
        ("series", -1, 1 << 32),
        ("since", -1),
    ),
)
def test_a_malformed_status_is_refused(name: str, value: Any) -> None:
    assert parse_status(json.dumps(STATUS).encode()).streams[0].oldest == 5
    is_of_stream = name in STREAM or name in ("series", "since")
    change = {"streams": [STREAM | {name: value}]} if is_of_stream else {name: value}
    with pytest.raises(MessageError):
        parse_status(json.dumps(STATUS | change).encode())


def test_the_reasons_of_a_status_are_read_and_may_be_missing() -> None:
    """Before they were read, no device's refusals came to its aggregator's operator."""
    told = Status("online", "x", refusals=("ratio", "x" * 64))
    assert parse_status(told.to_json()).refusals == told.refusals
    assert parse_status(json.dumps(STATUS).encode()).refusals == ()


def test_how_a_device_is_is_read_and_whoever_does_not_know_of_it_reads_the_rest() -> None:
    plain = Status("online", "x", refusals=("ratio",))
    assert set(json.loads(plain.to_json())) == {
        *("v", "state", "software", "streams", "ledger", "refusals")
    }
    told = replace(
        plain,
        refused=("ratio: e^2: at most e^1", "y" * 400),
        health="degraded: port gone",
        ages={"link_s": 5, "telegram_s": 0},
    )
    found = parse_status(told.to_json())
    assert found.refused == ("ratio: e^2: at most e^1", "y" * 300)
    assert (found.health, found.ages) == (told.health, told.ages)
    assert found.refusals == plain.refusals
    new = json.loads(told.to_json())
    assert {name: new[name] for name in json.loads(plain.to_json())} == json.loads(plain.to_json())
    stranger = json.dumps(STATUS | {"ages": {"heart_s": 5, "link_s": 6}}).encode()
    assert parse_status(stranger).ages == {"link_s": 6}


@given(st.binary(max_size=60), st.integers(0, 60), st.integers(0, 9))
def test_any_damage_gives_a_message_or_a_message_error(
    inserted: bytes, at: int, removed: int
) -> None:
    receipt = json.dumps({"v": 1, "streams": [ONE]}).encode()
    for parse, payload in ((parse_receipt, receipt), (parse_status, json.dumps(STATUS).encode())):
        with suppress(MessageError):
            parse(payload[:at] + inserted + payload[at + removed :])
