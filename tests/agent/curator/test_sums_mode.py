"""Sums at home: what leaves of a period, once, and what never does, whatever happens meanwhile."""

import time
from fractions import Fraction
from pathlib import Path

import pytest

from agent.claims.rollback import Told
from agent.config.summed_streams import sum_terms
from agent.errors import StorageError
from agent.state.place import running_path
from edge_ldp.entropy import system_draw
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from tests.agent.samples import SERIES, SLOT_S, StillClock
from tests.agent.summed import BOTH, DAY, MIDNIGHT, SUMS, SumsBench, steady

pytestmark = pytest.mark.usefixtures("runtime")


def test_a_period_leaves_once_as_its_sums_and_noise_drawn_then(tmp_path: Path) -> None:
    """Exactly: the same bytes of the source make the same noise of nothing."""
    benches = [
        SumsBench(tmp_path / name, SUMS + "cells = 4\n", entropy=steady()) for name in ("a", "b")
    ]
    for bench, value in zip(benches, (0, 700), strict=True):
        bench.day(value)
        assert bench.frames == []
        bench.push(value)
    none, some = ([*bench.frames] for bench in benches)
    assert len(none) == len(some) == 1
    assert none[0].n == some[0].n == (24,) * 4
    assert [y - z for y, z in zip(some[0].y, none[0].y, strict=True)] == [24 * 700] * 4
    assert len(set(none[0].y)) == 4
    frame, terms = some[0], sum_terms(benches[1].config)[0]
    assert (frame.period, frame.cells, frame.days) == (MIDNIGHT // 86_400, 4, 1)
    assert (frame.low, frame.span, frame.scale) == (0, 4000, terms.scale)
    assert (frame.stream, frame.batch, frame.name, frame.unit) == (0, 1, "power", "W")
    assert frame.series not in (0, SERIES)
    (account,) = benches[1].journal.status()
    assert (account.created, account.next, account.expired) == (1, 2, 0)
    (row,) = benches[1].sums.released()
    assert row.epsilon == Fraction(96 * 4000, terms.scale) <= 24 * 8
    for bench in benches:
        bench.day(0)
        bench.push(0)
        assert [one.batch for one in bench.frames] == [1, 2]
        bench.journal.close()


def test_two_homes_noise_is_not_the_same(tmp_path: Path) -> None:
    """As shipped, from the operating system's words."""
    made = []
    for name in ("a", "b"):
        bench = SumsBench(tmp_path / name)
        bench.day(0)
        bench.push(0)
        made.append((bench.frames[0].series, bench.frames[0].y))
        bench.journal.close()
    assert made[0] != made[1]


def test_a_slots_value_enters_a_sum_and_a_report_and_pays_for_both(tmp_path: Path) -> None:
    bench = SumsBench(tmp_path / "s.db", BOTH)
    bench.day()
    bench.push(500)
    assert [one.n for one in bench.frames] == [(96,)]
    ledger = bench.ledger
    assert (ledger.window.reports, ledger.window.slots) == (4, 4)
    assert ledger.reports == 97
    terms = sum_terms(bench.config)[0]
    assert 4 * (terms.per_slot + Fraction(bench.config.policy.epsilon)) <= 8
    told = {one.stream: one.created for one in bench.device.status("online").streams}
    assert list(told.values()) == [97, 1]
    spent = bench.device.status("online").ledger
    assert (spent["sums"], spent["summed_slots"], spent["reports"]) == (1, 96, 97)


@pytest.mark.parametrize("stream", [SUMS, BOTH], ids=["sums", "both"])
def test_the_owners_limit_of_all_epsilon_counts_sums_and_reports_together_AGT_27(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stream: str
) -> None:
    """A slot of a sum counts from when it is added: what runs is never beyond the limit."""
    life = "lifetime = { epsilon = 40 }"
    bench = SumsBench(tmp_path / "s.db", stream + "least_share = 0\n", policy=life)
    bench.push(*[500] * 5)
    assert "the lifetime of reports ends in 30 days or less" in caplog.text
    bench.restart()
    bench.push(*[500] * (DAY - 5), None)
    assert [sum(one.n) for one in bench.frames] == [19 if stream == SUMS else 20]
    assert bench.device.health == "degraded: lifetime reached"
    assert "lifetime reached: nothing is reported any more" in caplog.text
    bench.day()
    bench.push(500)
    ledger = bench.ledger
    assert ledger.reports == (0 if stream == SUMS else 20)
    assert 37 < ledger.epsilon_spent + bench.sums.spent() <= 40
    assert len(bench.frames) == 1
    bench.restart(policy="lifetime = { epsilon = 50 }")
    bench.push(*[500] * 10)
    assert bench.running[0].slots == 5
    bench.journal.close()


def test_values_are_cut_to_the_homes_own_ceiling(tmp_path: Path) -> None:
    bench = SumsBench(tmp_path / "s.db", SUMS + "ceiling = 1000\n")
    bench.push(5000, -3, 999)
    assert [(one.n, one.sums) for one in bench.running] == [((3,), (1999,))]


def test_a_partly_seen_period_leaves_with_its_slots_and_a_hardly_seen_one_not_AGT_35(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench = SumsBench(tmp_path / "s.db")
    for seen in (96, 24, 23):
        bench.push(*[500] * seen, *[None] * (DAY - seen))
    bench.push(None)
    assert [one.n for one in bench.frames] == [(96,), (24,)]
    assert "a period is given up, 23 of 96 slots of it were seen" in caplog.text
    bench.push(None)
    assert bench.running == []


def test_a_period_that_is_over_leaves_without_another_value(tmp_path: Path) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.day()
    bench.pass_slots(1)
    bench.device.housekeeping()
    assert bench.frames == []  # a value of its last slots may still come
    bench.pass_slots(1)
    bench.device.housekeeping()
    bench.device.housekeeping()
    assert [one.n for one in bench.frames] == [(96,)]


# what a copy of the disk shows: PRV-25


def content(directory: Path) -> dict[str, object]:
    """Return what is on a disk: files as they are, of the write-ahead log every page ever written.

    Its salts are random; what they are is no matter of readings.
    """
    found: dict[str, object] = {}
    for file in sorted(directory.iterdir()):
        body = file.read_bytes()
        if file.name.endswith("-wal"):
            size = 24 + 512
            found[file.name] = [body[at + 24 : at + size] for at in range(32, len(body), size)]
        elif not file.name.endswith((".lock", "-shm")):
            found[file.name] = body
    return found


@pytest.mark.parametrize("keep", ["run", "disk"])
def test_no_byte_on_the_disk_depends_on_a_reading_but_what_leaves_PRV_25(
    tmp_path: Path, keep: str
) -> None:
    """Database, log and free pages, at every slot, over a restart and the period's end.

    Two homes whose readings add up to the same: any number of copies of both are the same bytes.
    But for the one file of a sum that its owner keeps on the disk.
    """
    readings = ([0] * 48 + [3000] * 48 + [7, 900], [3000] * 48 + [0] * 48 + [900, 7])
    seen: list[list[dict[str, object]]] = [[], []]
    running: list[list[tuple[int, ...]]] = [[], []]
    for at, values in enumerate(readings):
        home = tmp_path / f"{at}"
        home.mkdir(mode=0o700)
        bench = SumsBench(home / "s.db", entropy=steady(), device=f'keep = "{keep}"')
        for number, value in enumerate(values):
            bench.device.core._draw_series = system_draw(steady())  # noqa: SLF001 (as its noise)
            bench.push(value)
            seen[at].append(content(home))
            running[at] += [one.sums for one in bench.running]
            if number == 50:
                bench.restart()
        assert [sum(one.n) for one in bench.frames] == [96]
        bench.journal.close()
    assert sum(one != other for one, other in zip(*running, strict=True)) == 96, "the control"
    kept = [copy.pop("s.db-sums", None) for copies in seen for copy in copies]
    assert seen[0] == seen[1]
    assert {name for copy in seen[0] for name in copy} <= {"s.db", "s.db-wal"}
    assert [one is None for one in kept] == [keep == "run"] * len(kept)


def test_what_runs_is_in_memory_in_a_closed_file_or_the_agent_does_not_start_PRV_25(
    tmp_path: Path, runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.push(500)
    (file,) = runtime.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    beside = {one.name.removeprefix("s.db") for one in tmp_path.iterdir()}
    assert beside == {"", "-wal", "-shm", ".lock"}
    bench.journal.close()
    monkeypatch.setenv("RUNTIME_DIRECTORY", "/proc")
    with pytest.raises(StorageError, match=r"not in memory.*RuntimeDirectory=.*keep = 'disk'"):
        running_path(tmp_path / "s.db", "-sums", "run")
    runtime.chmod(0o777)
    monkeypatch.setenv("RUNTIME_DIRECTORY", f"{runtime}:/other")
    with pytest.raises(StorageError, match="others may write there"):
        running_path(tmp_path / "s.db", "-sums", "run")


def test_the_key_is_gone_with_the_period_PRV_25(tmp_path: Path, runtime: Path) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.day()
    bench.push(None)
    assert len(bench.frames) == 1
    assert list(runtime.iterdir()) == []


@pytest.mark.parametrize("keep", ["run", "disk"])
def test_a_reboot_loses_the_period_so_far_but_where_its_owner_keeps_it_on_disk_AGT_35(
    tmp_path: Path, keep: str
) -> None:
    bench = SumsBench(tmp_path / "s.db", device=f'keep = "{keep}"')
    bench.push(*[500] * 40)
    bench.reboot(off_s=SLOT_S)
    bench.push(*[500] * 55, None)
    ((n,),) = [one.n for one in bench.frames]
    most, given_up = {"run": 55, "disk": 95}[keep], 5  # time goes on where it was last stored
    assert most - given_up <= n <= most


# kills, copies, clocks: AGT-34, AGT-36


def test_a_restart_goes_on_and_the_slot_between_is_no_loss_AGT_34(tmp_path: Path) -> None:
    bench = SumsBench(tmp_path / "s.db")
    for _ in range(DAY):
        bench.push(500)
        bench.restart()
    bench.push(None)
    assert [one.n for one in bench.frames] == [(96,)]


def test_a_copy_of_the_disk_cannot_go_on_with_a_period_nor_release_it_again_AGT_36(
    tmp_path: Path,
) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy"
    home.mkdir(mode=0o700)
    bench = SumsBench(home / "s.db")
    bench.push(*[500] * 60)
    bench.journal.close()
    copy.mkdir(mode=0o700)
    for file in home.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    bench.start()
    bench.push(*[500] * 37)
    assert [one.period for one in bench.frames] == [MIDNIGHT // 86_400]
    bench.journal.close()
    late = SumsBench(copy / "s.db", clock=bench.clock, begins=False)
    assert late.running == []
    late.push(*[700] * 95, None)
    assert [one.period for one in late.frames] == [MIDNIGHT // 86_400 + 1]


def test_a_proven_copy_books_what_the_other_may_release_and_skips_that_period_AGT_36(
    tmp_path: Path,
) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.push(*[500] * 60)
    mode = bench.device._mode  # noqa: SLF001 (what a signed receipt leads to)
    mode.roll_back([Told(FIRST_SUMS_KEY, 5, 9)], is_proof=True)
    assert bench.running == []
    (row,) = bench.sums.released()
    assert row.slots >= 60
    bench.push(*[500] * 36)
    assert (bench.frames, bench.running) == ([], [])
    bench.day()
    bench.push(None)
    assert [one.n for one in bench.frames] == [(96,)]


def test_a_clock_set_back_adds_no_slot_twice_and_ends_no_period_twice_AGT_36(
    tmp_path: Path,
) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.push(*[500] * 30)
    bench.clock.step(-10 * SLOT_S)
    bench.push(*[500] * 10)
    assert bench.running[0].n == (30,)
    bench.push(*[500] * 66)
    bench.push(None)
    bench.clock.step(-20 * SLOT_S)
    bench.push(*[500] * 21)
    assert [one.n for one in bench.frames] == [(96,)]


def test_the_night_of_summer_time_is_of_a_day_like_any_other_AGT_36(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Days are counted from midnight UTC, or so many seconds past it, all year."""
    night = 1_806_192_000  # 2027-03-28
    assert night % 86_400 == 0
    made = []
    for zone in ("UTC", "Europe/Berlin"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        clock = StillClock(night - 10 * SLOT_S)
        bench = SumsBench(tmp_path / zone[:3], clock=clock, entropy=steady())
        bench.day()
        bench.push(None)
        made += [(one.period, one.n, one.y) for one in bench.frames]
        bench.journal.close()
    monkeypatch.undo()
    time.tzset()
    assert made == [(night // 86_400, (DAY,), made[0][2])] * 2


def test_a_clock_ahead_ends_a_period_early_and_it_is_never_ended_again_AGT_36(
    tmp_path: Path,
) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.push(*[500] * 40)
    bench.clock.step(86_400)
    bench.push(500)  # a slot of tomorrow
    assert [one.n for one in bench.frames] == [(40,)]
    bench.clock.step(-86_400)
    bench.push(*[500] * 56)
    bench.push(*[500] * 96, None)
    bench.push(*[500] * 96, None)
    periods = [one.period for one in bench.frames]
    assert len(set(periods)) == len(periods) >= 2
    first = MIDNIGHT // 86_400
    assert periods[0] == first
    assert first < periods[1]
    assert periods[1:] == sorted(periods[1:])


@pytest.mark.parametrize(
    "change",
    [{"stream": SUMS + "cells = 4\n"}, {"stream": BOTH}, {"window": (8, 6)}, {"window": (7, 4)}],
    ids=lambda change: next(iter(change)),
)
def test_another_mode_share_window_or_layout_begins_with_a_silent_window_AGT_35(
    tmp_path: Path, change: dict[str, object]
) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.push(*[500] * 40)
    bench.restart(**change)  # type: ignore[arg-type] # as the table has it
    assert bench.running == []
    silent = bench.config.window.slots
    bench.push(*[500] * silent)
    assert bench.running == []
    ledger = bench.ledger
    assert ledger.reports == 0
    bench.push(500, 500)
    (running,) = bench.running
    assert running.slots in (1, 2)


def test_a_new_layout_begins_with_a_period_that_overlaps_none_before_AGT_35(tmp_path: Path) -> None:
    """An aggregator takes no two overlapping periods: the first week is left out."""
    bench = SumsBench(tmp_path / "s.db")
    to_next_week = -(MIDNIGHT // 86_400) % 7
    for _ in range(to_next_week - 1):
        bench.day()
    bench.restart(SUMS.replace("days = 1", "days = 7"))
    for _ in range(1 + 7):
        bench.day()
    bench.push(None)
    *days, week = bench.sums.released()
    assert [row.slots for row in days] == [96] * (to_next_week - 2)
    assert (week.until_s - week.first_s, week.slots) == (7 * 86_400, 7 * 96)
    assert week.first_s == MIDNIGHT + to_next_week * 86_400


def test_a_changed_ceiling_takes_effect_with_the_next_period_AGT_35(tmp_path: Path) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.push(*[3000] * 40)
    bench.restart(SUMS + "ceiling = 1000\n")
    bench.push(*[3000] * 57)
    bench.day(3000)
    bench.push(None)
    assert [(one.n, one.span) for one in bench.frames] == [((96,), 4000), ((96,), 1000)]
    assert [row.epsilon / row.slots <= 2 for row in bench.sums.released()] == [True, True]


def test_an_agent_away_for_part_of_a_period_releases_what_it_saw_AGT_35(tmp_path: Path) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.push(*[500] * 40)
    bench.journal.close()
    bench.pass_slots(90)
    bench.start()
    bench.device.housekeeping()
    assert [one.n for one in bench.frames] == [(40,)]


def test_a_lost_state_begins_with_a_silence_and_counts_nothing_of_before_AGT_35(
    tmp_path: Path,
) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.push(*[500] * 40)
    bench.journal.close()
    for file in tmp_path.glob("s.db*"):
        file.unlink()
    bench.start()
    bench.push(*[500] * 4)
    assert bench.running == []
    bench.push(*[500] * 3)
    assert bench.running[0].n[0] <= 3


def test_without_randomness_a_period_waits_and_its_sum_is_not_lost_AGT_11(tmp_path: Path) -> None:
    is_dry, source = False, steady()

    def entropy(size: int) -> bytes:
        if is_dry:
            raise OSError
        return source(size)

    bench = SumsBench(tmp_path / "s.db", entropy=entropy)
    bench.day()
    is_dry = True
    bench.push(500, 500)
    assert bench.frames == []
    is_dry = False
    bench.push(500)
    assert [one.n for one in bench.frames] == [(96,)]
