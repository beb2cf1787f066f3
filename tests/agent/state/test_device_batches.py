"""Reports become batches, and go when their receipt comes or their age is over."""

import logging
import os
from pathlib import Path

import pytest

from agent.claims.batches import Key
from agent.claims.silence import silence
from agent.errors import StorageError
from agent.state.manifest import manifest
from edge_ldp.device.frame import decode
from edge_ldp.mechanisms import Hybrid
from edge_ldp.protocol.ledger import Window
from edge_ldp.protocol.messages import Status
from edge_ldp.protocol.utc import utc
from edge_ldp.ratio import floor_ratio
from tests.agent.samples import FLEET, SLOT, SLOT_S, StillClock, make_plan
from tests.agent.state.device_bench import Bench, planned, receipt


def test_offline_reports_wait_and_are_packed_together_when_there_is_a_link(running: Bench) -> None:
    running.live(5, online=False)
    assert running.keys == []
    assert len(running.journal.waiting()) == 5
    running.device.pack_waiting()
    (key,) = running.keys
    assert key == Key(1, 1)
    assert decode(running.payload(key) or b"").slots == tuple(range(SLOT + 2, SLOT + 7))
    assert running.taken() == [key]
    running.device.pack_waiting()
    assert running.keys == [key]


def test_what_waits_is_packed_with_the_next_report_once_online(running: Bench) -> None:
    running.live(3, online=False)
    running.restart()
    running.live(1)
    (key,) = running.keys
    assert len(decode(running.payload(key) or b"").slots) == 4


def test_batches_are_made_no_faster_than_their_interval(tmp_path: Path) -> None:
    bench = planned(tmp_path / "s.db", sending=f"batch_interval_s = {4 * SLOT_S}", slots=1)
    bench.live(9)
    sizes = [len(decode(bench.payload(key) or b"").slots) for key in bench.keys]
    assert sizes == [1, 4, 4]
    bench.live(1)
    bench.device.pack_waiting()
    assert len(bench.keys) == 3
    bench.device.pack_waiting(at_once=True)
    assert len(bench.keys) == 4


def test_a_batch_is_the_same_bytes_however_often_it_is_sent_PRV_02(running: Bench) -> None:
    running.live(4)
    first = {key: running.payload(key) for key in running.keys}
    running.device.accept_plan("power", make_plan(2).to_json())
    running.live(3)
    running.restart()
    assert {key: running.payload(key) for key in first} == first
    assert running.taken() == running.keys[-1:]  # until a receipt comes


@pytest.mark.parametrize("value", [0, 1, 999, 1000, 1001, 4000, 10**9, -7])
def test_lengths_of_frames_and_the_status_do_not_depend_on_the_value_PRV_17_PRV_10(
    running: Bench, value: int
) -> None:
    running.live(3, value=value)
    running.live(2, online=False, value=value)
    running.device.pack_waiting()
    assert [len(running.payload(key) or b"") for key in running.keys] == [31, 31, 31, 35]
    assert running.status == Status(
        state="online",
        software=running.status.software,
        streams=running.status.streams,
        ledger={"reports": 5, "day_reports": 5, "window_reports": 1, "window_slots": 1},
        manifest=manifest(running.config),
    )
    (stream,) = running.status.streams
    assert (stream.first, stream.next, stream.created) == (1, 5, 5)


def test_a_receipt_deletes_what_it_covers_for_good(running: Bench) -> None:
    running.live(5)
    running.send()
    assert running.hear(4, (2, 2)) == 3
    assert [key.number for key in running.keys] == [2, 5]
    assert running.hear(4, (2, 2)) == 0
    assert running.device.core.journal.payload(Key(1, 1)) is None
    running.restart()
    assert running.keys == [Key(1, 2), Key(1, 5)]
    (stream,) = running.status.streams
    assert (stream.oldest, stream.next, stream.created) == (2, 6, 5)


def test_batches_beyond_the_age_limit_are_given_up_and_counted_AGT_16(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = planned(tmp_path / "s.db", sending="max_age_days = 1", slots=1)
    bench.live(10)
    bench.pass_slots(96 - 5)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        bench.device.housekeeping()
        bench.device.housekeeping()
    (stream,) = bench.status.streams
    assert (stream.created, stream.expired, len(bench.keys)) == (10, 5, 5)
    assert [record.message for record in caplog.records] == [
        "gave up 5 unconfirmed batches and 0 unsent reports older than the age limit"
    ]
    assert bench.taken() == bench.keys


def test_reports_that_never_found_a_link_are_given_up_too_and_counted_AGT_16(
    tmp_path: Path,
) -> None:
    bench = planned(tmp_path / "s.db", sending="max_age_days = 1", slots=1)
    for _ in range(30):
        bench.live(10, online=False)
        bench.device.housekeeping()
    assert len(bench.journal.waiting()) <= 96
    bench.device.pack_waiting()
    (stream,) = bench.status.streams
    (key,) = bench.keys
    kept = len(decode(bench.payload(key) or b"").slots)
    assert stream.created == 300 == stream.expired + kept
    assert kept == 96


def test_each_report_made_is_kept_settled_or_expired_and_the_count_says_so(tmp_path: Path) -> None:
    """S3 on the device: created = settled + expired + kept."""
    bench = planned(tmp_path / "s.db", sending="max_age_days = 1", slots=1)
    settled = 0
    for hour in range(60):
        bench.live(4, online=hour % 5 > 0)
        bench.device.housekeeping()
        if hour % 7 == 0:
            (account,) = bench.status.streams
            bench.send()
            before = len(bench.made)
            bench.hear(min(2 * hour, account.next - 1))
            settled += before - len(bench.made)
        if hour % 11 == 0:
            bench.restart()
    (stream,) = bench.status.streams
    assert stream.expired > 0
    assert settled > 0
    assert stream.created == 240 == settled + stream.expired + len(bench.made)


def test_the_policy_charges_what_the_owner_allows_not_what_the_plan_needs(running: Bench) -> None:
    """A plan below the policy's ε costs the policy's ε: the ledger never undersells."""
    assert running.device.accept_plan("power", make_plan(2, epsilon="0.5").to_json()) is None
    running.live(2)
    ledger, ratio = running.journal.ledger(), floor_ratio(1)
    assert ledger is not None
    assert ledger.spent == ((ratio.num, ratio.den, 2),)
    assert ledger.window == Window(1, 1, 1)
    assert make_plan(fleet=FLEET).stream_mechanism == Hybrid(epsilon=1, low=0, high=1000, size=16)


def test_while_nothing_can_be_stored_nothing_is_drawn_and_plans_and_receipts_wait_AGT_05_AGT_06(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    drawn = []

    def entropy(size: int) -> bytes:
        drawn.append(size)
        return os.urandom(size)

    bench = planned(tmp_path / "s.db", entropy=entropy)

    def is_full(*_: object) -> None:
        raise StorageError("s.db", "database or disk is full", passes=True)

    bench.live(2)
    (key, *_) = bench.keys
    bench.send()
    (account,) = bench.status.streams
    before = len(drawn)
    with monkeypatch.context() as patched, caplog.at_level(logging.INFO):
        for name in ("commit", "save_plan", "settle", "probe", "expire"):
            patched.setattr(bench.journal, name, is_full)
        bench.live(1)
        first = len(drawn)
        for _ in range(5):
            bench.live(1)
            bench.device.housekeeping()
        assert len(drawn) == first, "a word was drawn for what cannot be stored"
        assert bench.device.accept_plan("power", make_plan(2).to_json()) == "held"
        covered = receipt(key.number, series=account.series)
        assert bench.device.accept_receipt(covered) == 0
        assert bench.device.health == "degraded: storage"
    assert first > before
    bench.live(1)
    assert bench.device.health == "ok"
    (later,) = bench.status.streams
    assert (later.created, later.epoch) == (account.created + 1, 2)
    assert bench.device.accept_receipt(covered) == 1
    said = [record.message for record in caplog.records if "stored" in record.message]
    assert len(said) == 1


@pytest.mark.parametrize("late_s", [0, 100, SLOT_S - 1])
def test_run_and_status_name_one_end_of_a_silence_also_after_a_restart(
    late_s: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = StillClock()
    clock.step(late_s)
    bench = Bench(tmp_path / "s.db", window=(10, 10), clock=clock)
    for _ in range(2):
        held, elapsed = bench.journal.ledger(), bench.journal.elapsed()
        assert held is not None
        assert elapsed is not None
        moment = bench.device.core.moment
        silent = silence(held, elapsed.at(moment), moment)
        assert silent is not None
        (told,) = [record.message for record in caplog.records]
        assert told == (
            f"silent until {utc(silent.until_s):%Y-%m-%d %H:%M:%S} UTC: no usable ledger, so the"
            " window counts as spent, which is no fault"
        )
        caplog.clear()
        bench.live(3)
        assert not caplog.records
        bench.restart()
    bench.live(10)
    caplog.clear()
    bench.restart()
    assert not caplog.records, "the silence is over"
