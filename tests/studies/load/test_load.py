"""The load generator knows what must be counted, and finds what was not."""

import json
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from aggregator.commands.replay import main as replay
from aggregator.config import ConfigError, load_config, parse_config
from aggregator.counting.retention import SUMMED
from aggregator.main import main as aggregator
from aggregator.store.opening import open_session
from aggregator.store.rollups import tend
from aggregator.store.sqlite.reader import SqliteReader
from benchmarks.fleet_offline import START_S, issue, run_offline
from edge_ldp.device.errors import WireError
from edge_ldp.device.frame import decode
from edge_ldp.protocol.messages import Receipt, StreamReceipt
from studies.load.check import check_accounts, check_counts
from studies.load.fates import MAX_DELAY, Poison, Spec, draw_fates
from studies.load.lies import LIES, HonestFrame, tell
from studies.load.main import broker_of, main
from studies.load.traffic import Sent, Source, Traffic
from studies.load.truth import ExpectedCounts, Wrong
from studies.load.unreceipted import Unreceipted
from tests.reached import reached

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
RUN = ["--json", "--devices", "60", "--rounds", "12", "--reports", "10"]
BAD = ["--duplicates", "0.1", "--delayed", "0.2", "--liars", "0.5"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "a.toml"
    path.write_text(CONFIG.format(place=tmp_path))
    return path


def load(capsys: pytest.CaptureFixture[str], config: Path, *options: str) -> dict[str, object]:
    code = main(["-c", str(config), *RUN, *options], run_offline)
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
    kinds = "clock conflict duplicate early foreign frame range slots stream"
    assert set(view["refused"]) == set(kinds.split())  # type: ignore[call-overload]
    assert replay(["-c", str(config), "--json", "--stream", "power"]) == 0
    replayed = json.loads(capsys.readouterr().out)
    assert replayed["reports"] == view["counted"]
    assert replayed["compared"]["equal"] == replayed["compared"]["cells"] > 100
    assert replayed["complete"]


@pytest.mark.parametrize("devices", [15, pytest.param(60, marks=pytest.mark.slow)])
def test_a_run_longer_than_the_resend_window_is_expected_right(
    capsys: pytest.CaptureFixture[str], config: Path, devices: int
) -> None:
    """50 days under a window of 35: slots that are said again must lie in buckets still open."""
    more = ("--liars", "0.5", "--rounds", "120", "--devices", str(devices))
    view = load(capsys, config, *more)
    assert (view["wrong"], view["refused_wrong"]) == (0, [])
    assert {"clock", "slots"} <= set(view["refused"])  # type: ignore[call-overload]


def test_a_fleet_logs_in_as_those_who_may_speak_for_all_devices(config: Path) -> None:
    password = config.parent / "password"
    password.write_text("secret\n")
    password.chmod(0o600)
    login = f'[rehearsal]\nusername = "simulator"\npassword_file = "{password}"\n'
    found = broker_of(parse_config(config.read_text() + login, "f"), "f")
    assert (found.username, found.password, found.session_s) == ("simulator", "secret", 0)
    plain = broker_of(load_config(config), "f")
    assert (plain.username, plain.password) == (None, None)


def test_a_fleet_of_real_devices_is_not_joined(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its broker lets the aggregator's login say nothing for a device, and its plans are signed."""
    login = 'host = "127.0.0.1"\nusername = "aggregator"\n'
    text = config.read_text().replace('host = "127.0.0.1"\n', login)
    assert login in text
    with pytest.raises(ConfigError, match="setup DIR --rehearsal"):
        broker_of(parse_config(text, "f"), "f")
    config.write_text(text.replace('"127.0.0.1"', "127"))
    assert main(["-c", str(config)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"edge-ldp simulate fleet: {config}: broker.host: "), "and no usage"


def test_the_answer_of_a_replay_is_that_of_the_store_to_the_bit(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    load(capsys, config)
    for more in ((), ("--by", "day", "--zone", "Asia/Kolkata")):
        asked_for = ("-c", str(config), "--json", "--stream", "power", *more)
        assert aggregator(["query", *asked_for]) == 0
        asked = json.loads(capsys.readouterr().out)
        assert replay([*asked_for]) == 0
        answered = json.loads(capsys.readouterr().out)["answer"]
        assert answered == {key: asked[key] for key in answered}
        assert answered["whole"]["n"] > 0
        assert not more or answered["zone"] == more[-1]
    assert replay(["-c", str(config), "--stream", "power"]) == 0
    assert "0 differ, 0 moving" in capsys.readouterr().out


def test_the_hours_and_days_of_a_replay_are_those_of_the_store_to_the_bit(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    """Whether the store has the counts, or sums of hours whose counts were added up to days."""
    load(capsys, config, *BAD, "--rounds", "20")

    def asked(by: str, *common: str) -> list[dict[str, int]]:
        common = ("--json", "--stream", "energy", *common)
        assert aggregator(["load-curve", "-c", str(config), *common, "--by", by]) == 0
        curve = json.loads(capsys.readouterr().out)
        assert replay(["-c", str(config), *common, "--curve", by]) == 0
        replayed = json.loads(capsys.readouterr().out)
        assert replayed["curve"] == curve
        assert sum(row["n"] for row in curve[f"{by}s"]) == replayed["answer"]["whole"]["n"]
        return list(curve[f"{by}s"])

    before = asked("hour")
    config.write_text(config.read_text() + "[retention]\nbucket_days = 40\nhour_days = 50\n")
    found = load_config(config)
    with closing(open_session(found, str(config))) as session:
        while tend(session, found, START_S + 400 * 86_400):
            pass
        kept = session.rolled_up(2).until
        assert min(kept[SUMMED], kept[24]) > before[-1]["from_s"] // 3600  # its buckets are hours
    assert asked("hour") == before
    day = before[-1]["from_s"] // 86_400 * 86_400
    (last,) = asked("day", "--since", str(day), "--until", str(day + 86_400))
    assert last["n"] == sum(row["n"] for row in before if row["from_s"] >= day)


def test_the_curve_of_a_replay_is_shown_to_people_and_needs_a_stream(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    load(capsys, config)
    for zone, more in (("UTC", ()), ("Asia/Kolkata", ("--zone", "Asia/Kolkata"))):
        assert aggregator(["load-curve", "-c", str(config), *more, "--by", "day"]) == 0
        shown = capsys.readouterr().out
        assert shown.startswith(f"power by day ({zone}), W")
        assert replay(["-c", str(config), "--stream", "power", *more, "--curve", "day"]) == 0
        assert capsys.readouterr().out.endswith(shown)
    assert replay(["-c", str(config), "--zone", "Mars"]) == 2
    assert "--zone: expected a time zone" in capsys.readouterr().err
    assert replay(["-c", str(config), "--curve", "hour"]) == 2
    assert "--curve: expected --stream beside it" in capsys.readouterr().err


def test_counts_that_are_not_as_sent_are_found_by_the_load_and_by_the_replay(
    capsys: pytest.CaptureFixture[str], config: Path, tmp_path: Path
) -> None:
    found = load_config(config)
    spec = Spec(devices=20, rounds=4, reports=10, seed=1, window_s=35 * 86_400)
    traffic, ran = run_offline(found, str(config), spec, lambda _: None)
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
    truth = ExpectedCounts()
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
    traffic = traffic_of(config, duplicates=0, delayed=0, lost=0, liars=0)
    rounds = [*traffic.rounds()]
    assert [len(one.messages) for one in rounds] == [30] * 6
    assert traffic.truth.reports == 30 * 6 * 5
    assert not traffic.truth.refused
    epochs = [decode(one.messages[0].payload).epoch for one in rounds]
    assert epochs == [1, 1, 1, 2, 2, 2]


def test_disturbed_frames_all_come_and_not_in_order(config: Path) -> None:
    traffic = traffic_of(config, duplicates=0.3, delayed=0.3, liars=0)
    messages = [one for each in traffic.rounds() for one in each.messages]
    times = Counter((one.device, one.payload) for one in messages)
    assert len(times) == 30 * 6
    assert sum(times.values()) == 30 * 6 + traffic.truth.refused["duplicate"]
    batches = {
        at: [decode(one.payload).batch for one in messages if one.device == at] for at in range(30)
    }
    assert any(mine != sorted(mine) for mine in batches.values())
    assert all(set(mine) == set(range(1, 7)) for mine in batches.values())


def test_every_kind_of_lie_is_refused_for_a_reason_of_its_own(config: Path) -> None:
    found = load_config(config)
    plan = issue(found, found.streams[0], START_S)[0]
    frame = HonestFrame(plan, 9, np.arange(2 * 10**6, 2 * 10**6 + 5), np.arange(5))
    told = [tell(kind, frame, 86_400, 5) for kind in range(LIES)]
    assert len({one.reason for one in told}) == LIES
    assert frame.payload not in {one.payload for one in told}
    with pytest.raises(IndexError):
        tell(LIES, frame, 86_400, 5)


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
        main(["-c", str(config), *options])
    assert word in capsys.readouterr().err


def test_a_store_that_is_in_use_is_not_loaded(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    load(capsys, config)
    assert main(["-c", str(config), *RUN], run_offline) == 4
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


def test_devices_that_lose_their_state_number_anew_and_their_accounts_add_up(
    capsys: pytest.CaptureFixture[str], config: Path
) -> None:
    more = ["--reinstalls", "0.5", "--lost", "0.3", "--delayed", "0.3", "--rounds", "20"]
    view = load(capsys, config, *BAD, *more)
    assert (view["wrong"], view["refused_wrong"], view["accounts_wrong"]) == (0, [], [])
    accounts: dict[str, int] = view["accounts"]  # type: ignore[assignment]
    assert accounts["created"] == accounts["counted"] + accounts["rejected"]
    assert accounts["expired"] == accounts["pending"] == 0
    gone = view["gone"]
    assert isinstance(gone, int)
    assert 0 < gone == 60 * 20 * 10 * 2 - accounts["created"]
    found = load_config(config)
    with closing(SqliteReader.open(config.parent / "a.db")) as reader:
        states = [record.state.highest for _, record in reader.records()]
        assert 10 < sum(highest > 1000 for highest in states) < 60
        lost = Traffic(Spec(devices=60, rounds=20, reports=10, seed=9, window_s=1), [])
        wrong = check_accounts(reader, lost)["accounts_wrong"]
    assert len(wrong) == 20  # the first of them: another run's devices made nothing
    assert found.streams


def test_a_frame_that_was_not_through_when_its_device_lost_its_state_never_comes(
    config: Path,
) -> None:
    found = load_config(config)
    spec = Spec(30, 24, 5, 3, 35 * 86_400, duplicates=0, lost=0.5, liars=0, reinstalls=1)
    traffic = Traffic(spec, [Source(issue(found, found.streams[0], START_S), 4, 10**6)])
    came: dict[int, list[tuple[int, int]]] = {at: [] for at in range(30)}
    renewed = {}
    for one in traffic.rounds():
        renewed.update(dict.fromkeys(one.renewed, one.at))
        for sent in one.messages:
            came[sent.device].append((one.at, sent.batch))
        assert all(at % 8 == 0 for at in renewed.values())
    assert set(renewed) == set(range(30))
    for device, frames in came.items():
        begins = 10**6 + renewed[device] * 5
        assert {batch for at, batch in frames if at < renewed[device]} <= set(range(1, 25))
        after = {batch for at, batch in frames if at >= renewed[device]}
        assert after == set(range(begins, begins + 24 - renewed[device]))
    lacking = 30 * 24 - sum(map(len, came.values()))
    assert lacking * 5 == traffic.truth.gone > 0
    assert traffic.truth.reports == 30 * 24 * 5 - traffic.truth.gone


def test_poisoners_send_one_code_the_highest_codes_or_the_ceiling_and_count(config: Path) -> None:
    traffic = traffic_of(config, liars=1, delayed=0, lost=0, duplicates=0)
    codes: dict[int, list[int]] = {}
    for one in traffic.rounds():
        for sent in one.messages:
            with suppress(WireError):
                codes.setdefault(sent.device, []).extend(decode(sent.payload).codes)
    kinds = draw_fates(traffic.spec, np.random.default_rng(traffic.spec.seed)).poison.tolist()
    assert {1, 2, 3} <= set(kinds)
    for device, kind in enumerate(kinds):
        if kind == Poison.POINT:
            assert len(set(codes[device])) == 1
        if kind == Poison.SPREAD:
            assert 2 < len(set(codes[device])) <= 16
    assert traffic.truth.reports > 6 * 5 * sum(kind > 0 for kind in kinds) - 1


def test_what_is_kept_in_memory_does_not_grow_with_the_rounds(config: Path) -> None:
    traffic = traffic_of(config, delayed=0.5, lost=0.5, duplicates=0.5)
    held = [sum(isinstance(one, Sent) for one in reached(traffic)) for _ in traffic.rounds()]
    assert max(held) <= 2 * 30 * MAX_DELAY


def test_a_frame_is_kept_until_a_receipt_covers_it_and_what_waits_for_it_goes_then() -> None:
    box = Unreceipted(3.0, lambda _: 0)
    frames = [Sent(3, b"a", 1, 1), Sent(3, b"b", 1, 2), Sent(3, b"copy", 1, 1, settles=False)]
    lie = Sent(3, b"lie", 1, 2, settles=False, after=True)
    assert box.put([*frames, lie], 0.0) == frames
    assert (len(box), box.oldest(), box.asking()) == (2, {3: {1: 1}}, [3])
    assert box.due(2.9) == []
    assert [one.payload for one in box.due(3.0)] == [b"b"]  # its receipt tells of all before it
    assert (box.due(8.9), box.asking()) == ([], [])
    box.cover(4, Receipt((StreamReceipt(1, 9, ()),)), 8.9)
    box.cover(3, Receipt((StreamReceipt(1, 2, ((1, 1),)),)), 8.9)
    assert box.released() == [lie]
    assert [one.payload for one in box.due(8.9)] == [b"a"]  # what a receipt tells is missing
    box.cover(3, Receipt((StreamReceipt(1, 2, ()),)), 9.0)
    assert (len(box), box.released(), box.asking()) == (0, [], [])
    assert box.put([lie], 9.0) == [lie]  # of what is covered already
