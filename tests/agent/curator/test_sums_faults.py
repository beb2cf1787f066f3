"""Faults of storage, configuration and time beside sums: a named outcome each, at one cost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.claims.rollback import Told
from agent.curator.running_file import SUMS_ENDING, RunningFile
from agent.errors import StorageError
from agent.state.moving import move_state
from agent.state.place import running_path
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from tests.agent.samples import SLOT_S, make_config
from tests.agent.summed import BOTH, DAY, SUMS, SumsBench

FULL = StorageError("/run", "no space left", passes=True)


pytestmark = pytest.mark.usefixtures("runtime")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[SumsBench]:
    made = SumsBench(tmp_path / "s.db", SUMS + "least_share = 0\n")
    yield made
    made.journal.close()


def fail(*_: object) -> None:
    raise FULL


def test_a_file_read_again_that_spends_less_begins_a_window_anew_AGT_04(bench: SumsBench) -> None:
    """What ran was to cost more than its owner allows now: it is given up."""
    bench.push(*[500] * 10)
    tighter = make_config(bench.state, stream=bench.stream, window=(7, 4))
    bench.device.reconfigure(tighter, None)
    assert bench.running == []
    bench.push(*[500] * 4)
    assert bench.running == []
    bench.push(*[500] * 2)
    (running,) = bench.running
    assert running.terms.scale > 4000 * 4 // 8
    assert running.slots in (1, 2)


def test_where_what_runs_cannot_be_kept_a_slot_is_not_added_AGT_05(
    bench: SumsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.push(*[500] * 10)
    with monkeypatch.context() as full:
        full.setattr(RunningFile, "write", fail)
        bench.push(*[500] * 3)
        assert bench.device.health == "degraded: storage"
    bench.push(*[500] * (DAY - 13), None)
    assert [one.n for one in bench.frames] == [(DAY - 3,)]


def test_where_a_period_cannot_be_stored_it_waits_and_leaves_once_AGT_05(
    bench: SumsBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.day()
    with monkeypatch.context() as full:
        full.setattr(bench.journal, "put_batch", fail)
        bench.push(500, 500)
        assert (bench.frames, bench.sums.released()) == ([], [])
    bench.push(500)
    assert [one.n for one in bench.frames] == [(DAY,)]
    assert len(bench.sums.released()) == 1


def test_a_place_in_memory_that_a_logout_takes_away_is_made_again_AGT_05(
    bench: SumsBench, runtime: Path
) -> None:
    """Not while what is above it is gone, too: those slots are not added."""
    bench.push(*[500] * 10)
    for file in runtime.iterdir():
        file.unlink()
    runtime.rmdir()
    bench.push(*[500] * 10)
    assert runtime.stat().st_mode & 0o777 == 0o700
    assert bench.running[0].n == (20,)
    with pytest.raises(StorageError) as gone:
        RunningFile(runtime / "a" / "b" / "c").write(b"")
    assert gone.value.passes


@pytest.mark.parametrize("damage", ["torn", "cut", "other"])
def test_what_runs_and_is_damaged_is_lost_and_nothing_else_AGT_07(
    bench: SumsBench, damage: str
) -> None:
    bench.push(*[500] * 10)
    place = running_path(bench.state, SUMS_ENDING, "run")
    if damage == "other":
        RunningFile(place).write(b'["of", "another", "version"]')
    else:
        body = bytearray(place.read_bytes())
        body[40] ^= 1  # of its key
        place.write_bytes(body if damage == "torn" else body[:100])
    bench.restart()
    assert bench.running == []
    bench.push(*[500] * (DAY - 10), None)
    assert [one.n for one in bench.frames] == [(DAY - 10,)]


def test_sums_without_a_receipt_for_weeks_are_given_up_and_counted_AGT_16(bench: SumsBench) -> None:
    bench.day()
    bench.push(None)
    assert len(bench.frames) == 1
    for _ in range(36):
        bench.pass_slots(DAY)
        bench.device.housekeeping()
    assert bench.frames == []
    (account,) = bench.journal.status()
    assert (account.created, account.expired) == (1, 1)
    assert len(bench.sums.released()) == 1, "what it cost stays"


def test_another_slot_length_begins_anew_and_no_time_is_summed_again_AGT_24(
    bench: SumsBench,
) -> None:
    bench.day()
    bench.push(*[500] * 3)
    (before,) = bench.sums.released()
    bench.restart(slot_seconds=SLOT_S // 3)
    assert bench.running == []
    bench.clock.step(-40 * SLOT_S)
    bench.push(*[500] * 60)
    began = [one.terms.layout.first_slot(one.period) for one in bench.running]
    assert all(slot * SLOT_S // 3 >= before.until_s for slot in began)
    assert bench.sums.released() == [before]


def test_a_word_of_a_copy_that_nobody_signed_begins_a_silence_and_charges_nothing_AGT_25(
    bench: SumsBench,
) -> None:
    bench.push(*[500] * 10)
    bench.device._mode.suspect([Told(FIRST_SUMS_KEY, 5, 9)])  # noqa: SLF001 (what a receipt leads to)
    assert (bench.running, bench.sums.released()) == ([], [])
    bench.push(*[500] * 4)
    assert bench.running == []


def test_two_meters_streams_have_one_window_and_a_gap_of_one_is_its_own_AGT_26(
    tmp_path: Path,
) -> None:
    share = BOTH.replace("0.5", "0.25") + "least_share = 0\n"
    bench = SumsBench(tmp_path / "s.db", share, quantities=("power", "power_export"))
    bench.push(*[500] * 10)
    assert [one.n for one in bench.running] == [(10,), (10,)]
    ledger = bench.ledger
    assert (ledger.window.reports, ledger.window.streams) == (4, 2)
    bench.journal.close()


def test_a_state_that_is_moved_releases_no_period_again_AGT_31(bench: SumsBench) -> None:
    """What ran in memory is of the place before: it is lost, as with a reboot."""
    bench.day()
    bench.push(*[500] * 10)
    bench.journal.close()
    there = bench.state.parent / "service"
    there.mkdir(mode=0o700)
    move_state(bench.state, there / "s.db")
    bench.state = there / "s.db"
    bench.start()
    bench.push(*[500] * (DAY - 10), None)
    assert [one.n for one in bench.frames] == [(DAY,), (DAY - 10,)]
    assert [one.batch for one in bench.frames] == [1, 2]
