"""Which slots a device claims: windows and ledgers, whatever clocks and disks do."""

import logging
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from agent.errors import StorageError
from tests.agent.samples import SLOT, SLOT_S, T0, StillClock, make_config, make_plan
from tests.agent.state.device_bench import (
    DAY_S,
    TEN_YEARS_S,
    Bench,
    planned,
    receipt,
    restored,
    saved,
)


def test_a_slot_is_randomised_once_whatever_is_closed_again_PRV_01(running: Bench) -> None:
    running.live(1)
    (key,) = running.keys
    payload = running.payload(key)
    for _ in range(20):
        running.close(4000)
    running.restart()
    for _ in range(20):
        running.close(4000)
    assert running.keys == [key]
    assert running.payload(key) == payload
    assert running.status.ledger["reports"] == 1


def test_a_slot_in_the_future_or_not_over_yet_is_not_claimed_SER_17(running: Bench) -> None:
    running.pass_slots()
    for slot in (running.device.slot, running.device.slot + 1, running.device.slot + 10**6):
        running.close(slot=slot)
    assert running.made == []
    running.close(slot=running.device.slot - 1)
    assert running.made == [(SLOT + 2, 1)]


def test_a_clock_ten_years_ahead_cannot_spend_faster_than_time_AGT_10(running: Bench) -> None:
    running.live(3)
    running.clock.step(TEN_YEARS_S)
    for _ in range(2000):
        running.clock.step(SLOT_S)
        running.close()
    assert running.status.ledger["reports"] == 3
    running.live(5)
    assert running.status.ledger["reports"] == 3 + 5


@pytest.mark.parametrize("back_s", [3600, DAY_S, T0])
def test_a_clock_that_goes_back_reports_no_slot_twice_AGT_10(running: Bench, back_s: int) -> None:
    running.live(8)
    before = running.made
    running.clock.step(-back_s)
    running.live(min(back_s // SLOT_S, 100) // 2)
    running.restart()
    running.live(min(back_s // SLOT_S, 100) // 2)
    slots = [slot for slot, _ in running.made]
    assert len(slots) == len(set(slots))
    assert {slot for slot, _ in before} <= set(slots)
    if back_s < 8 * SLOT_S:  # all of them had reported
        assert sorted(running.made) == before


def test_a_device_without_state_waits_a_window_and_skips_the_current_slot_PRV_12(
    tmp_path: Path,
) -> None:
    bench = planned(tmp_path / "s.db", window=(10, 10))
    bench.live(30)
    assert [slot for slot, _ in bench.made] == list(range(SLOT + 10, SLOT + 30))


@pytest.mark.parametrize("wrong_s", [0, T0 + TEN_YEARS_S])
def test_the_window_is_spent_from_when_the_clock_is_sane_not_from_a_wrong_time_PRV_12_AGT_10(
    tmp_path: Path, wrong_s: int
) -> None:
    """A board without a clock of its own starts in 1970 with an empty disk: no gift, no curse."""
    bench = Bench.__new__(Bench)
    bench.state, bench.clock = tmp_path / "s.db", StillClock(wrong_s)
    bench.config = make_config(bench.state, window=(10, 10))
    bench.start(trusted=False)
    assert (
        bench.device.accept_plan("power", make_plan(expires_s=T0 + 2 * TEN_YEARS_S).to_json())
        == "held"
    )
    bench.live(3)
    assert bench.made == []
    bench.clock.step(T0 - bench.clock.now())
    bench.device.trust_clock()
    bench.live(30)
    assert [slot for slot, _ in bench.made] == list(range(SLOT + 10, SLOT + 30))


def test_until_the_clock_is_sane_nothing_is_claimed_or_expired_AGT_10(running: Bench) -> None:
    running.live(3)
    before = running.made
    running.restart(trusted=False)
    running.clock.step(TEN_YEARS_S)
    running.live(3)
    running.device.housekeeping()
    assert running.made == before
    assert running.status.ledger["reports"] == 3


def test_a_commit_that_fails_changes_nothing_in_memory(running: Bench) -> None:
    """AGT-02, AGT-09: what is not durable has not happened; nothing of it may be sent."""
    running.live(2)
    running.pass_slots()
    with running.journal.reading() as db:
        db.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)  # every statement fails
    with pytest.raises(StorageError):
        running.close()
    with running.journal.reading() as db:
        db.set_authorizer(None)
    assert running.status.ledger["reports"] == 2
    assert len(running.taken()) == 2
    assert running.taken() == []


def stepped(bench: Bench, real_s: int, *, each_s: int = 30) -> None:
    """Set the clock from slot to slot for so much real time, with restarts and reboots between.

    The worst that whoever serves the time can do: every slot of the window passes in a minute.
    """
    for at in range(real_s // each_s):
        bench.clock.pass_s(each_s)
        bench.clock.step(SLOT_S - each_s)
        bench.close()
        if at % 7 == 0:
            bench.restart()
        if at % 501 == 500:
            bench.clock.reboot(3 * SLOT_S)
            bench.restart()


def test_a_clock_stepped_from_slot_to_slot_gains_no_report_AGT_22(tmp_path: Path) -> None:
    """The default window: 8 reports in 97 quarter hours; it gave 95 in 24 real hours."""
    bench = planned(tmp_path / "s.db", window=(8, 97))
    bench.live(97)
    before = int(bench.status.ledger["reports"])
    stepped(bench, DAY_S)
    gained = int(bench.status.ledger["reports"]) - before
    assert 0 < gained <= 8
    slots = [slot for slot, _ in bench.made]
    assert len(slots) == len(set(slots))


def test_a_clock_once_ahead_by_years_mutes_for_one_window_and_says_so_AGT_23(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(tmp_path / "s.db", window=(10, 10))
    bench.device.accept_plan("power", make_plan(expires_s=T0 + 2 * TEN_YEARS_S).to_json())
    bench.live(20)
    before = len(bench.made)
    bench.clock.step(TEN_YEARS_S)
    bench.live(1)  # one reporting slot
    assert len(bench.made) == before + 1
    bench.clock.step(-TEN_YEARS_S)
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        bench.live(1)
    (told,) = [record.message for record in caplog.records]
    assert re.match(r"silent until \S+ \S+ UTC: the clock had been ahead, so the window", told)
    assert bench.device.health == "degraded: the clock had been ahead"
    bench.restart()
    assert bench.device.health == "degraded: the clock had been ahead"
    bench.live(12)
    assert len(bench.made) == before + 1 + 2
    assert bench.device.health == "ok"
    slots = [slot for slot, _ in bench.made]
    assert len(slots) == len(set(slots))


def test_another_slot_length_mutes_for_one_window_and_says_so_AGT_24(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db", window=(8, 97), slot_seconds=60)
    bench.device.accept_plan("power", make_plan(slot_seconds=60).to_json())
    for _ in range(200):
        bench.clock.pass_s(60)
        bench.close()
    before = len(bench.made)
    assert before > 0
    bench.restart(window=(8, 97))
    assert bench.device.health == "degraded: the slot length changed"
    bench.device.accept_plan("power", make_plan(2).to_json())
    bench.live(97)
    assert len(bench.made) == before
    bench.live(107)
    assert len(bench.made) == before + 8
    assert bench.device.health == "ok"


def test_at_the_end_of_its_lifetime_a_device_is_silent_said_before_and_after_AGT_27(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    life: Any = {"tables": "[policy.lifetime]\nreports = 3000"}
    bench = Bench(tmp_path / "s.db", **life)
    bench.pass_slots(2)
    bench.device.accept_plan("power", make_plan().to_json())
    caplog.clear()
    bench.live(24)  # 2976 are left: 31 days
    assert caplog.records == []
    bench.live(10)
    assert ["ends in 30 days or less" in record.message for record in caplog.records] == [True]
    life = {"tables": "[policy.lifetime]\nreports = 40"}
    bench.restart(**life)
    bench.live(10)
    assert bench.status.ledger["reports"] == 40
    assert bench.device.health == "degraded: lifetime reached"
    assert "nothing is reported any more" in caplog.records[-1].message
    bench.restart(**life)
    bench.live(10)
    assert bench.status.ledger["reports"] == 40


def test_of_reports_that_nobody_heard_of_nothing_tells_AGT_25(tmp_path: Path) -> None:
    """A limit, as docs/privacy.md says: the copy reports slots of the other life again."""
    bench = planned(tmp_path / "state" / "s.db")
    bench.live(3)
    place = saved(bench, tmp_path / "copy")
    clock = bench.clock.now()
    bench.live(5)
    unheard = set(bench.made)
    restored(bench, place)
    bench.clock.step(clock - bench.clock.now())
    bench.live(5)
    assert set(bench.made) == unheard
    assert bench.device.health == "ok"


def test_a_restart_takes_a_looser_file_that_a_reload_refuses(running: Bench) -> None:
    sharper = make_plan(2, epsilon="2").to_json()
    assert running.device.accept_plan("power", sharper) == "ratio"
    running.restart(policy="epsilon = 2")
    assert running.device.accept_plan("power", sharper) is None


def test_a_lost_state_is_no_rollback_but_its_own_window_AGT_25_PRV_12(tmp_path: Path) -> None:
    bench = planned(tmp_path / "s.db", slots=2)
    bench.live(5)
    (account,) = bench.status.streams
    bench.journal.close()
    for path in tmp_path.iterdir():
        path.unlink()
    bench.start()
    assert bench.device.accept_receipt(receipt(account.next - 1)) == 0
    assert bench.device.health == "ok"
    assert bench.status.streams == ()
