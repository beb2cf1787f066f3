"""The load generator knows what must be counted, and finds what was not."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from typing import TYPE_CHECKING

import numpy as np
import pytest

from aggregator.config import load_config
from aggregator.main import main as aggregator
from aggregator.shell.replay_command import main as replay
from aggregator.shell.sqlite_reader import SqliteReader
from edge_ldp.device.frame import decode
from firmware_stubs.load.check import check_counts
from firmware_stubs.load.lies import LIES, Frame, tell
from firmware_stubs.load.main import main
from firmware_stubs.load.offline import START_S, issue, run_offline
from firmware_stubs.load.traffic import Source, Spec, Traffic
from firmware_stubs.load.truth import Truth, Wrong

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """
fleet = "demo"
[broker]
host = "127.0.0.1"
[store]
path = "{place}/a.db"
[archive]
path = "{place}/archive"
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 4095
epsilon = 4
size = 64
survey_size = 64
horizon = 100000
[[streams]]
name = "energy"
id = 2
unit = "Wh"
ceiling = 1000
epsilon = 2
mechanism = "tuned"
survey_size = 32
slot_seconds = 3600
bucket_slots = 1
horizon = 100000
"""
RUN = ["--offline", "--json", "--devices", "60", "--rounds", "12", "--reports", "10"]
BAD = ["--duplicates", "0.1", "--delayed", "0.2", "--liars", "0.5"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "a.toml"
    path.write_text(CONFIG.format(place=tmp_path))
    return path


def load(capsys: pytest.CaptureFixture[str], config: Path, *options: str) -> dict[str, object]:
    code = main(["-c", str(config), *RUN, *options])
    view: dict[str, object] = json.loads(capsys.readouterr().out)
    assert code == (1 if view["wrong"] or view["refused_wrong"] else 0)
    return view


def traffic_of(config: Path, **options: float) -> Traffic:
    found = load_config(config)
    spec = Spec(devices=30, rounds=6, reports=5, seed=3, window_s=35 * 86_400, **options)
    stream = found.streams[0]
    plans = issue(found, stream, START_S)
    return Traffic(spec, [Source(plans, 4, START_S // stream.slot_seconds + 1)])


def test_every_count_and_every_refusal_of_bad_traffic_is_as_sent_REP_01_REP_04_REP_05(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    """REP-01, 04, 05, 07, 08: every kind of lie, in one run, on store and archive alike."""
    view = load(capsys, config, *BAD)
    assert (view["wrong"], view["refused_wrong"]) == (0, [])
    assert view["expected"] == view["counted"]
    kinds = {"range", "plan", "late", "slots", "early", "stream", "frame", "conflict", "duplicate"}
    assert set(view["refused"]) == kinds  # type: ignore[call-overload]
    assert replay(["-c", str(config), "--json", "--stream", "power"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert replayed["reports"] == view["counted"]
    assert replayed["compared"]["equal"] == replayed["compared"]["cells"] > 100
    assert replayed["complete"]


def test_the_answer_of_a_replay_is_that_of_the_store_to_the_bit(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    load(capsys, config)
    assert aggregator(["query", "-c", str(config), "--json", "--stream", "power"]) == 0
    asked = json.loads(capsys.readouterr().out)
    assert replay(["-c", str(config), "--json", "--stream", "power"]) == 0
    answered = json.loads(capsys.readouterr().out)["answer"]
    assert answered == {key: asked[key] for key in answered}
    assert answered["whole"]["n"] > 0
    assert replay(["-c", str(config), "--stream", "power"]) == 0
    assert "0 differ, 0 moving" in capsys.readouterr().out


def test_counts_that_are_not_as_sent_are_found_by_the_load_and_by_the_replay(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    found = load_config(config)
    spec = Spec(devices=20, rounds=4, reports=10, seed=1, window_s=35 * 86_400)
    traffic, ran = run_offline(found, str(config), spec, 200, lambda _: None)
    assert ran.messages >= 20 * 4 * 2
    with closing(SqliteReader.open(tmp_path / "a.db")) as reader:
        assert check_counts(reader, found, traffic.truth)["wrong"] == 0
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as db:
        last = "(SELECT max(bucket) FROM counts WHERE stream = 1)"
        db.execute(f"DELETE FROM counts WHERE stream = 1 AND bucket = {last}")  # noqa: S608
    with closing(SqliteReader.open(tmp_path / "a.db")) as reader:
        seen = check_counts(reader, found, traffic.truth)
    assert seen["wrong"] >= 1
    assert {one["counted"] for one in seen["first"]} == {0}
    assert replay(["-c", str(config), "--json"]) == 1
    compared = json.loads(capsys.readouterr().out)["compared"]
    assert compared["differ"] == seen["wrong"]
    assert [one["archive"] for one in compared["first"]] == [o["expected"] for o in seen["first"]]
    assert replay(["-c", str(config)]) == 1
    assert "0 in the store" in capsys.readouterr().out


def test_the_truth_finds_a_report_too_many_too_few_and_in_the_wrong_place() -> None:
    truth = Truth()
    truth.count(1, 2, np.array([5, 5, 6]), np.array([7, 7, 8]))
    right = (np.array([5, 6]), np.array([7, 8]), np.array([2, 1]))
    assert not list(truth.wrong(1, np.array([2, 2]), right))
    off = (np.array([5, 7]), np.array([7, 8]), np.array([3, 1]))
    assert list(truth.wrong(1, np.array([2, 2]), off)) == [
        Wrong(1, 2, 5, 7, 2, 3),
        Wrong(1, 2, 6, 8, 1, 0),
        Wrong(1, 2, 7, 8, 0, 1),
    ]
    assert [one.counted for one in truth.wrong(1, np.array([3, 3]), right)] == [0, 0, 2, 1]


def test_the_same_seed_makes_the_same_run_and_another_seed_another(config: Path) -> None:
    bad = {"duplicates": 0.1, "delayed": 0.2, "liars": 0.3}
    one, two = ([*traffic_of(config, **bad).rounds()] for _ in range(2))
    assert one == two
    assert [*traffic_of(config).rounds()] != one


def test_a_run_without_disturbances_is_one_frame_a_device_and_round(config: Path) -> None:
    traffic = traffic_of(config, duplicates=0, delayed=0, liars=0)
    rounds = [*traffic.rounds()]
    assert [len(one.messages) for one in rounds] == [30] * 6
    assert traffic.truth.reports == 30 * 6 * 5
    assert not traffic.truth.refused
    epochs = [decode(one.messages[0][1]).epoch for one in rounds]
    assert epochs == [1, 1, 1, 2, 2, 2]


def test_disturbed_frames_all_come_and_not_in_order(config: Path) -> None:
    traffic = traffic_of(config, duplicates=0.3, delayed=0.3, liars=0)
    messages = [one for each in traffic.rounds() for one in each.messages]
    times = Counter(messages)
    assert len(times) == 30 * 6
    assert sum(times.values()) == 30 * 6 + traffic.truth.refused["duplicate"]
    mine = [decode(payload).batch for device, payload in messages if device == "load-0000003"]
    assert any(
        [decode(p).batch for d, p in messages if d == name]
        != sorted(decode(p).batch for d, p in messages if d == name)
        for name in traffic.names
    )
    assert set(mine) == set(range(1, 7))


def test_every_kind_of_lie_is_refused_for_a_reason_of_its_own(config: Path) -> None:
    found = load_config(config)
    plan = issue(found, found.streams[0], START_S)[0]
    frame = Frame(plan, 9, np.arange(2 * 10**6, 2 * 10**6 + 5), np.arange(5))
    told = [tell(kind, frame, 86_400) for kind in range(LIES)]
    assert len({one.reason for one in told}) == LIES
    assert frame.payload not in {one.payload for one in told}
    with pytest.raises(IndexError):
        tell(LIES, frame, 86_400)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--reports", "2000"], "--reports: expected 1 to"),
        (["--devices", "200000"], "max_devices is 100000"),
        (["--liars", "1.5"], "shares from 0 to 1"),
        (["--rounds", "0"], "expected more than 0"),
        (["--reports", "1000"], "come after the window"),
    ],
)
def test_what_cannot_be_run_is_said_with_its_option(
    capsys: pytest.CaptureFixture[str], config: Path, options: list[str], word: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["-c", str(config), "--offline", *options])
    assert word in capsys.readouterr().err


def test_a_store_that_is_in_use_is_not_loaded(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    load(capsys, config)
    assert main(["-c", str(config), *RUN]) == 4
    assert "a load needs a store of its own" in capsys.readouterr().err


def test_a_replay_without_an_archive_says_what_to_configure(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    assert replay(["-c", str(config)]) == 4
    assert "is no archive" in capsys.readouterr().err
    text = config.read_text().replace(f'[archive]\npath = "{tmp_path}/archive"', "")
    config.write_text(text)
    assert replay(["-c", str(config)]) == 2
    assert "expected an [archive]" in capsys.readouterr().err
