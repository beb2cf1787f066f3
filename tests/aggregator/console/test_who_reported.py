"""Nothing that is shown names who reported, nor is of a withheld cell, wherever it is shown."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from aggregator.console.answering import Desk, Given
from aggregator.console.pages import PAGES
from aggregator.console.questions import QUESTIONS
from aggregator.console.tables import arrow_of, csv_of
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import Status, StreamStatus, topic
from edge_ldp.service.mqtt import Message
from tests.aggregator.commands.test_crowds import (
    FIRST_SLOT,
    HOMES,
    HOURS,
    KEPT,
    NOW_S,
    twelve_homes,
)
from tests.aggregator.engines import Engine
from tests.aggregator.home_traffic import take
from tests.aggregator.operator import Operator, operator

POLLS = 16
WITHHELD = {"group", "at", "from", "from_s", "since_s", "until_s", "withheld"}  # and nothing else


def objects(found: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, dict):
        yield found
    for one in found.values() if isinstance(found, dict) else found:
        if isinstance(one, dict | list):
            yield from objects(one)


ACCOUNTS = [
    ("ask", "completeness", ()),
    ("ask", "completeness", (("incomplete", "1"),)),
    ("ask", "completeness", (("device", "home-5"),)),
    ("ask", "status", ()),
    ("ask", "devices", ()),
    ("ask", "device", (("device", "home-5"),)),
    ("make", "device", (("name", "home-5"),)),
    ("make", "devices", ()),
    ("make", "devices", (("sort", "seen"),)),
]
ALL = [
    *ACCOUNTS,
    *(("ask", name, ()) for name in QUESTIONS),
    *(("make", name, ()) for name in PAGES),
    *(("ask", "query", (("by", by),)) for by in ("day", "hour-of-day")),
]


def looked(desk: Desk, asked: Sequence[tuple[str, str, Given]]) -> dict[str, Any]:
    replies = {str(one): desk.answer(*one) for one in asked}
    return {name: json.loads(one.out) for name, one in replies.items() if one.out[:1] == b"{"}


def of_devices(told: dict[str, Any]) -> dict[str, list[str]]:
    """Return what is told of single devices, in its order; of accounts of one also their sums."""
    return {
        name: [json.dumps(one) for one in objects(view) if "device" in one]
        + [json.dumps(view.get("totals")) for _ in [0] if "'device'," in name]
        for name, view in told.items()
    }


def assert_nothing_of_withheld_cells(told: dict[str, Any]) -> None:
    """In JSON, and in the tables that the API makes of it."""
    hidden = [(name, one) for name, view in told.items() for one in objects(view)]
    hidden = [pair for pair in hidden if pair[1].get("withheld")]
    assert any("'load-curve'" in name for name, _ in hidden)
    assert any("'by', 'day'" in name or "hour-of-day" in name for name, _ in hidden)
    for name, one in hidden:
        assert {key for key, value in one.items() if value is not None} <= WITHHELD, name
    hours = told[str(("ask", "load-curve", ()))]
    table = pa.ipc.open_stream(arrow_of(hours, ("hours",))).read_all().to_pylist()
    lines = [*csv.DictReader(io.StringIO(csv_of(hours, ("hours",))))]
    for rows in (table, lines):
        few = [row for row in rows if row["withheld"] in (True, "True")]
        assert len(few) == sum(row["withheld"] for row in hours["hours"])
        assert all({key for key in row if row[key] not in (None, "")} <= WITHHELD for row in few)


def counted(desk: Operator) -> dict[str, int]:
    """Return each device's reports, as only who has the store can ask."""
    rows = desk.json("completeness", "--exact")["devices"]
    return {row["device"]: row["counted"] for row in rows}


def say(at: int, home: str, created: int, batches: int) -> Message:
    stream = StreamStatus(
        stream=1, first=1, next=batches, oldest=1, created=created, expired=0, since=FIRST_SLOT
    )
    told = Status("online", "1", (stream,), health="ok", ages={"commit_s": at})
    return Message(topic("demo", "status", home), told.to_json())


def test_who_polls_learns_nothing_of_who_reported_AGG_36(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One report between two looks: the store names its home each time, what is told never."""
    world = twelve_homes(engine)
    now_s = NOW_S + (POLLS + 1) * 3600
    rules = replace(world.rules, now_s=float(now_s))
    clock = f"\n[clock]\norigin_s = {now_s}\nstarted_s = 1\nrate = 1e-9\n"
    cli = operator(tmp_path, engine.text(more=KEPT + clock), capsys)
    named = 0
    with closing(engine.open()) as store, closing(Desk(str(cli.file))) as desk:
        counts = counted(cli)
        take(store, *(say(0, home, counts[home], 2) for home in counts), rules=rules)
        before, every = of_devices(looked(desk, ACCOUNTS)), of_devices(looked(desk, ALL))
        totals = cli.json("completeness")["totals"]
        for at in range(POLLS):
            home, slot = f"home-{5 * at % HOMES}", FIRST_SLOT + (HOURS + at) * 4
            batch = 2 + at // HOMES
            payload = encode(1, batch, world.epoch, [slot], [3])
            one = Message(topic("demo", "report", home), payload)
            take(store, one, say(at, home, counts[home] + 1, batch + 1), rules=rules)
            after = counted(cli)
            named += [name for name in after if after[name] > counts[name]] == [home]
            counts = after
            assert of_devices(looked(desk, ACCOUNTS)) == before
        found = looked(desk, ALL)
    assert named == POLLS
    assert of_devices(found) == every
    assert_nothing_of_withheld_cells(found)
    assert cli.json("completeness")["totals"]["counted"] == totals["counted"] + POLLS
    lines = cli.text("load-curve").splitlines()
    few = {tuple(line.split("  ", 1)[1].split()) for line in lines if "withheld" in line}
    assert few == {(*"------", "withheld:", "too", "few", "reporters")}
