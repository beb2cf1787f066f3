"""Curated streams in the store and on the command line, beside the fleet's and never among them."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aggregator.answers.curated_view import read_streams
from aggregator.answers.fleet.status import read_status
from aggregator.answers.fleet.status_text import status_text
from aggregator.config import load_config
from aggregator.counting.curated import wanted_released
from aggregator.counting.refusals import Rules, StreamRules
from aggregator.counting.seen_batches import build_receipt
from aggregator.intake.intake import commit, read_messages
from aggregator.main import main
from aggregator.store.sqlite.reader import SqliteReader
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.protocol.messages import Status, StreamStatus, parse_receipt
from edge_ldp.protocol.released import encode_released
from edge_ldp.service.mqtt import Message
from tests.aggregator.counting.test_curated import FIRST, NOW, SLOT_S, arrivals, frame, later

CONFIG = """
fleet = "street"
[broker]
host = "127.0.0.1"
[store]
path = "{store}"
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 5000
epsilon = 1
horizon = 96
"""
RULES = Rules({}, None, 10, window_s=35 * 86_400, tolerance_s=300, now_s=NOW)


def take(store: SqliteStore, *messages: Message) -> Any:
    return commit(store, fleet="street", messages=messages, rules=RULES)


def message(kind: str, payload: bytes, device: str = "home-1") -> Message:
    return Message(f"edge-ldp/v1/street/{kind}/{device}", payload)


def test_messages_of_a_stream_are_told_from_reports_and_broken_ones_counted() -> None:
    good = message("stream", encode_released(frame()))
    flush = read_messages("street", [good, message("stream", b"LR\1"), message("report", b"LR")])
    assert [one.key for one in flush.released] == [("home-1", 256)]
    assert flush.broken == {"frame": 2}
    assert flush.devices == {"home-1"}
    assert wanted_released(flush.released) == {("home-1", 256)}


def test_a_stream_is_stored_with_its_design_and_receipted(store: SqliteStore) -> None:
    changes = take(store, message("stream", encode_released(frame())))
    assert changes.settled == {"home-1"}
    (found,) = read_streams(store)
    assert (found.device, found.key, found.design) == ("home-1", 256, frame().design)
    assert found.chunks[FIRST - 1, 0].theta == 1000
    values = store.released_values("home-1", 256, 0, 1 << 32)
    assert [(slot, position, value) for slot, _, position, value in values] == [
        (FIRST, 0, 5),
        (FIRST + 1, 1, -7),
        (FIRST + 3, 2, 1 << 40),
    ]
    assert store.released_span("home-1", 256) == (FIRST, FIRST + 4)
    states = [(key, record.state) for key, record in store.states("home-1")]
    receipt = parse_receipt(build_receipt(states).to_json())
    assert receipt.covers(256, FIRST)
    assert not receipt.covers(0, FIRST)


def test_the_same_messages_again_change_nothing_AGG_01(store: SqliteStore) -> None:
    for _ in range(3):
        take(store, message("stream", encode_released(frame())))
    assert len(list(store.released_values("home-1", 256, 0, 1 << 32))) == 3


def test_what_a_chunk_first_was_stands(store: SqliteStore) -> None:
    take(store, message("stream", encode_released(frame())))
    other = encode_released(later(FIRST + 1, 4, theta=2000))
    take(store, message("stream", other))
    (found,) = read_streams(store)
    assert found.chunks[FIRST - 1, 0].theta == 1000


def test_a_store_of_before_gets_the_tables_and_reads_as_empty_until_then(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    SqliteStore.open(path).close()
    with closing(sqlite3.connect(path)) as db:
        for table in ("values", "chunks", "designs"):
            db.execute(f"DROP TABLE released_{table}")
        db.commit()
    reader = SqliteReader.open(path)
    assert read_streams(reader) == []
    reader.close()
    again = SqliteStore.open(path)
    take(again, message("stream", encode_released(frame())))
    assert len(read_streams(again)) == 1
    again.close()


@pytest.fixture
def filled(store: SqliteStore, tmp_path: Path) -> Path:
    """Give the configuration of a store with two homes' streams."""
    for device in ("home-1", "home-2"):
        frames = [frame(values=(5, 7, 9)), later(FIRST + 1, 4)]
        frames.append(later(FIRST + 2, 96, position=8))
        told = StreamStatus(256, FIRST, FIRST + 3, FIRST, created=9, expired=0)
        status = Status("online", "x", (told,)).to_json()
        messages = [message("stream", encode_released(one), device) for one in frames]
        take(store, *messages, message("status", status, device))
    config = tmp_path / "aggregator.toml"
    config.write_text(CONFIG.format(store=store.path))
    return config


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_released_answers_for_each_device_by_itself(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    view = ask(capsys, "released", "-c", str(filled))
    assert "no part of any fleet figure" in view["note"]
    assert [one["device"] for one in view["released"]] == ["home-1", "home-2"]
    (row,) = view["released"][0]["sums"]
    assert row["readings"] == 9
    assert row["total"] == 5 + 7 + 9 + 2 * (5 - 7 + (1 << 40))
    assert row["low"] < row["total"] < row["high"]
    one = ask(capsys, "released", "-c", str(filled), "--device", "home-2", "--by", "day")
    assert len(one["released"]) == 1
    assert len(one["released"][0]["sums"]) == 2
    until = str((FIRST + 2) * SLOT_S)
    part = ask(capsys, "released", "-c", str(filled), "--device", "home-1", "--until", until)
    assert part["released"][0]["sums"][0]["total"] == 12


def test_released_is_text_for_people(filled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["released", "-c", str(filled), "--by", "day"]) == 0
    text = capsys.readouterr().out
    assert "home-1 power: ε 1 a reading, θ 1000 W" in text
    assert "curated" in text


def test_an_unknown_stream_or_device_is_said(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["released", "-c", str(filled), "--device", "home-9"]) == 5
    assert "no curated stream" in capsys.readouterr().err
    assert main(["released", "-c", str(filled), "--stream", "gas"]) == 5


def test_status_accounts_for_them_apart_from_the_fleets(
    filled: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    view = ask(capsys, "status", "-c", str(filled))
    assert view["completeness"] == []
    assert view["streams"][0]["counted"] == 0
    for row in view["curated"]:
        assert row["created"] == row["counted"] == 9
        assert row["pending"] == row["rejected"] == row["expired"] == 0
    assert main(["status", "-c", str(filled)]) == 0
    assert "2 curated streams, in no figure above" in capsys.readouterr().out


def test_homes_that_only_curate_are_missing_in_no_answer_of_the_fleet(
    filled: Path, store: SqliteStore, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(config: Path = filled) -> int:
        assert main(["query", "-c", str(config), "--json"]) == 5  # nothing was reported
        return int(json.loads(capsys.readouterr().out)["whole"]["missing"])

    listing = filled.with_name("listing.toml")
    names = '["home-1", "home-2", "home-3", "home-4"]'
    listing.write_text(f"{filled.read_text()}[intake]\nenrolment = {names}\n")
    assert (missing(), missing(listing)) == (0, 2)
    take(store, message("status", Status("online", "x", ()).to_json(), "home-3"))
    assert (missing(), missing(listing)) == (1, 2)
    assert main(["devices", "revoke", "home-1", "-c", str(filled)]) == 0
    assert capsys.readouterr().out.startswith("revoke: 1 of 1")
    assert (missing(), missing(listing)) == (1, 2)
    told = StreamStatus(1, FIRST, FIRST, FIRST, created=0, expired=0)
    status = message("status", Status("online", "x", (told,)).to_json(), "home-2")
    rules = replace(RULES, streams={1: StreamRules(SLOT_S, 4, {})})
    commit(store, fleet="street", messages=[status], rules=rules)
    assert (missing(), missing(listing)) == (2, 3)  # it reports, or did


@pytest.mark.parametrize(("ahead_s", "age_s"), [(3600, None), (60, 0), (-7200, 7200)])
def test_what_happened_in_the_future_has_no_age(
    filled: Path, store: SqliteStore, ahead_s: int, age_s: int | None
) -> None:
    """A rehearsal goes by a clock that is ahead; machines' clocks differ by seconds."""
    view = read_status(store, load_config(filled), NOW - ahead_s)
    assert view.service.last_commit_age_s == age_s
    assert view.devices.longest_silent is not None
    assert view.devices.longest_silent.age_s == age_s
    told = "in the future: by a rehearsal's clock?" if age_s is None else "ago)"
    first = ("last commit", "oldest status message")
    lines = [line for line in status_text(view).splitlines() if line.startswith(first)]
    assert [told in line for line in lines] == [True, True]


def test_a_stream_that_contradicts_itself_is_named_and_the_others_answer(
    filled: Path, store: SqliteStore, capsys: pytest.CaptureFixture[str]
) -> None:
    design = replace(frame().design, epsilon=(2, 1))
    odd = later(FIRST + 3, 200, position=20, design=design)
    take(store, message("stream", encode_released(odd)))
    view = ask(capsys, "released", "-c", str(filled))
    first, second = view["released"]
    assert "2 designs" in first["error"]
    assert second["sums"]


def test_arrivals_of_two_homes_do_not_meet(store: SqliteStore) -> None:
    take(store, *(message("stream", encode_released(frame()), home) for home in ("a", "b")))
    assert [one.device for one in read_streams(store)] == ["a", "b"]
    assert [one.digest for one in arrivals(frame(), device="a")]
