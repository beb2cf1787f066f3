"""A curator's device step by step: released once, the same after any restart, wiped in time."""

import logging
import os
import resource
import sqlite3
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shutil import copytree, rmtree
from struct import pack

import pytest

from agent.claims.batches import Key
from agent.claims.slots import SlotValues
from agent.curator.journal import CuratorJournal
from agent.curator.running_file import AREA, SECTOR, RunningFile
from agent.errors import StorageError
from agent.main import main, open_journal
from agent.state.journal import Journal
from edge_ldp.continual import parse_state
from edge_ldp.protocol.messages import Receipt, StreamReceipt, parse_status
from edge_ldp.protocol.signing import Keyring
from tests.agent.curated import FIXED, QUANTILE, Bench, key_of, sealed_by_the_chunks_key
from tests.agent.samples import SLOT_S, T0, StillClock, config_text, make_config, make_plan
from tests.agent.state.device_bench import Bench as LocalBench
from tests.agent.state.device_bench import planned

BIG = 1 << 38  # readings that cannot be met by chance
WIDE = f"""\
epsilon = 1
method = "fixed"
theta = {BIG}
chunk = 16
fanout = 4
pruned = 1
"""
DEEP = WIDE.replace("fanout = 4\npruned = 1", 'fanout = 2\npruned = 0\nstructure = "causal"')


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "s.db")


def test_every_slot_is_released_once_at_consecutive_positions(bench: Bench) -> None:
    bench.push(*range(20))
    made = bench.made
    assert [one.position for one in made] == list(range(20))
    assert len({one.slot for one in made}) == 20
    assert {one.theta for one in made} == {1000}
    chunks = [frame.position // 8 for frame in bench.frames]
    assert chunks == sorted(chunks)


@pytest.mark.parametrize("table", [FIXED, DEEP])
def test_a_restart_anywhere_gives_the_same_values_as_none_AGT_01(
    tmp_path: Path, table: str
) -> None:
    """The noise is a function of the chunk's key: copies of one file go on alike, restarted or not.

    So whatever differs between them would be noise lost or used again.
    """
    calm, shaken = tmp_path / "calm.db", tmp_path / "shaken.db"
    first = Bench(calm, table, ceiling=BIG)
    first.push(7)
    first.journal.close()
    for ending in ("", ".lock", "-running"):
        Path(f"{shaken}{ending}").write_bytes(Path(f"{calm}{ending}").read_bytes())
    clocks = [StillClock(T0 + 2 * SLOT_S), StillClock(T0 + 2 * SLOT_S)]
    quiet, restarted = (
        Bench(path, table, ceiling=BIG, clock=clock)
        for path, clock in zip((calm, shaken), clocks, strict=True)
    )
    for bench in (quiet, restarted):
        for value in range(6):  # up to the end of the chunk, whose key they share
            bench.push(100 + value)
            if bench is restarted:
                bench.restart()
    assert len(quiet.made) == 7
    assert restarted.made == quiet.made
    for bench in (quiet, restarted):
        bench.journal.close()


def test_a_crash_before_the_commit_takes_the_slot_with_it_and_no_noise_AGT_02(bench: Bench) -> None:
    bench.push(500)
    bench.clock.pass_s(SLOT_S)
    bench.device.close_slot(SlotValues(bench.device.slot - 1, (500,)), online=False)
    bench.restart()  # pushed, never flushed
    assert [one.position for one in bench.made] == [0]
    bench.push(500)
    assert [one.position for one in bench.made] == [0, 1]


def test_a_slot_is_never_taken_twice_PRV_01(bench: Bench) -> None:
    bench.push(500)
    slot = bench.device.slot - 1
    for _ in range(2):
        bench.device.close_slot(SlotValues(slot, (900,)), online=False)
        bench.device.flush(online=False)
        bench.restart()
    assert len(bench.made) == 1


def test_a_new_state_gives_the_slot_up_that_a_lost_one_may_have_taken_PRV_12(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "s.db")
    bench.push(500)
    bench.journal.close()
    for path in tmp_path.iterdir():
        path.unlink()
    again = Bench(tmp_path / "s.db", clock=bench.clock)
    again.close(500)
    assert [one.slot for one in again.made] == []


def test_nothing_is_released_while_theta_is_chosen(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db", QUANTILE)
    bench.push(*[300] * 12)
    assert bench.made == []
    bench.push(300)
    (value,) = bench.made
    assert value.position == 0
    assert value.theta >= 1


def test_a_restart_while_theta_is_chosen_collects_anew_and_costs_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db", QUANTILE)
    bench.push(*[300] * 11)
    bench.restart()
    bench.push(300, slots=2)
    assert bench.made == []
    assert bench.device.status("online").ledger == {"reports": 0, "released": 0, "chunks": 0}
    bench.push(*[300] * 12)
    assert len(bench.made) == 1


@pytest.mark.parametrize(
    ("table", "slots", "positions"),
    [
        (FIXED, [0, 6], [0, 1]),
        (FIXED + 'missing = "zero"\n', list(range(7)), list(range(7))),
    ],
    ids=["skipped", "zero"],
)
def test_missing_slots_are_left_out_and_count_as_zero_only_where_that_is_written(
    tmp_path: Path, table: str, slots: list[int], positions: list[int]
) -> None:
    bench = Bench(tmp_path / "s.db", table)
    bench.push(500, None)
    bench.push(500, slots=5)
    assert [one.slot - bench.made[0].slot for one in bench.made] == slots
    assert [one.position for one in bench.made] == positions


def test_a_silence_too_long_to_be_zero_begins_a_new_series(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db", FIXED + 'missing = "zero"\n')
    bench.push(500)
    bench.push(500, slots=97)
    made = bench.made
    assert len({one.series for one in made}) == 2
    assert [one.position for one in made] == [0, 0]


def test_a_chunk_that_lay_still_for_days_is_not_gone_on_with_PRV_06(tmp_path: Path) -> None:
    """It may be a restored image, whose noise was used since; θ is kept, so nothing waits."""
    bench = Bench(tmp_path / "s.db", QUANTILE)
    bench.push(*[300] * (12 + 3))
    bench.restart()
    bench.push(300)
    assert len({one.series for one in bench.made}) == 1
    key = key_of(bench.curated.series()[0])
    bench.clock.pass_s(97 * SLOT_S)
    bench.restart()
    bench.push(300, slots=2)
    last = bench.made[-1]
    assert last.series > bench.made[0].series
    assert (last.position, last.theta) == (0, bench.made[0].theta)
    assert key_of(bench.curated.series()[-1]) != key
    assert not bench.curated.series()[-1].is_ended


def on_disk(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in directory.iterdir())


def test_a_chunks_end_leaves_nothing_that_opens(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db")
    for _ in range(7):
        bench.push(500)
        assert RunningFile(bench.state.with_name("s.db-running")).read() is not None
        assert key_of(bench.curated.series()[0]) not in (None, b"")
    bench.push(500)
    assert key_of(bench.curated.series()[0]) is None
    assert RunningFile(bench.state.with_name("s.db-running")).read() is None


def test_a_running_file_of_another_state_opens_nothing_and_theta_stays(tmp_path: Path) -> None:
    """A state that was restored by itself: its chunk is over, and what was sealed is wiped."""
    bench = Bench(tmp_path / "s.db", QUANTILE)
    bench.push(*[300] * (12 + 2))
    theta = bench.made[-1].theta
    bench.journal.close()
    saved = bench.state.read_bytes()
    bench.start()
    bench.push(*[300] * 3)
    bench.journal.close()
    bench.state.write_bytes(saved)
    bench.state.with_name("s.db.lock").unlink()
    bench.start()
    assert [(key_of(row), row.is_ended) for row in bench.curated.series()] == [(None, 1), (None, 0)]
    assert RunningFile(bench.state.with_name("s.db-running")).read() is None
    bench.push(300, slots=2)
    assert bench.made[-1].theta == theta


@pytest.mark.parametrize("damage", [0, 7, 20, 60, SECTOR + 3, SECTOR + AREA + 3])
def test_a_damaged_running_file_ends_the_chunk_and_nothing_else(
    tmp_path: Path, damage: int
) -> None:
    bench = Bench(tmp_path / "s.db")
    bench.push(*[300] * 3)
    bench.journal.close()
    file = bench.state.with_name("s.db-running")
    body = bytearray(file.read_bytes())
    body[damage] ^= 1
    file.write_bytes(body)
    bench.start()
    in_use = damage != SECTOR + 3  # three writes: the second area, the first, the second
    assert [row.is_ended for row in bench.curated.series()] == ([1, 0] if in_use else [0])
    bench.push(300, slots=2)
    assert len(bench.made) == 4


def as_before(bench: Bench) -> bytes:
    """Make the closed state what an earlier version left in mid-chunk; return the chunk's key."""
    (row,) = bench.curated.series()
    assert row.secret
    payload, key = sealed_by_the_chunks_key(parse_state(row.secret))
    bench.journal.close()
    with closing(Journal(bench.state)) as journal, journal.transaction() as db:
        db.execute("UPDATE curated SET state = ?", (payload,))
        db.execute("INSERT INTO curator_keys VALUES (256, ?)", (key,))
    bench.state.with_name("s.db-running").unlink()
    return key


def test_a_chunk_of_an_earlier_version_goes_on_and_its_key_leaves_the_journal(
    tmp_path: Path,
) -> None:
    calm, moved = (Bench(tmp_path / name / "s.db") for name in ("calm", "moved"))
    calm.push(500)
    calm.journal.close()
    moved.journal.close()
    rmtree(tmp_path / "moved")
    copytree(tmp_path / "calm", tmp_path / "moved")
    moved.clock.step(SLOT_S)
    calm.start()
    moved.start()
    key = as_before(moved)
    assert key in on_disk(tmp_path / "moved")
    moved.start()
    for value in range(7):
        assert key not in on_disk(tmp_path / "moved")
        calm.push(100 + value)
        moved.push(100 + value)
    assert moved.made == calm.made
    assert len(moved.made) == 8
    for bench in (calm, moved):
        bench.journal.close()


def test_a_key_that_a_reader_kept_in_the_log_is_gone_with_the_next_commit(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db")
    bench.push(500)
    key = as_before(bench)
    with closing(sqlite3.connect(bench.state)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM released").fetchall()
        bench.start()
        with bench.journal.reading() as db:
            db.execute("PRAGMA busy_timeout = 0")
        bench.push(500)
        assert key in on_disk(tmp_path), "the reader still holds it"
    bench.push(500)
    assert key not in on_disk(tmp_path)
    assert len(bench.made) == 3


def encodings(number: int) -> Iterator[bytes]:
    """Yield what a number looks like in any file that we can think of (docs/faults.md, S1)."""
    yield str(number).encode()
    yield b64encode(str(number).encode())[:-4]
    for code in ("<q", ">q", "<d", ">d"):
        yield pack(code, number)
        yield pack(code, number).hex().encode()
    yield number.to_bytes(6, "big")  # as SQLite packs integers of this size
    yield number.to_bytes(6, "little")


def test_no_reading_no_true_total_and_no_difference_stands_in_any_file_S1_PRV_05(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    bench = Bench(tmp_path / "s.db", WIDE, ceiling=BIG)
    readings = [BIG // 3 + 1_000_003 * at for at in range(14)]
    seen = bytearray()
    for value in readings:
        bench.push(value)
        for path in tmp_path.iterdir():  # the log too, with every page it ever held
            seen += path.read_bytes().replace(bytes(SECTOR), b"")  # holes of the running file
        seen += bench.device.status("online").to_json()
    totals = [sum(readings[at:end]) for at in range(14) for end in range(at + 1, 15)]
    seen += caplog.text.encode() + "".join(capsys.readouterr()).encode()
    found = [n for n in {*readings, *totals} if any(text in seen for text in encodings(n))]
    assert found == []
    waiting = bench.curated.released()
    assert any(str(one.value).encode() in str(waiting).encode() for one in waiting)
    value = max((one.value for one in waiting), key=abs)  # SQLite packs a small one shorter
    stored = value.to_bytes(6, "big", signed=True)  # the control: released values are found
    assert any(stored[at:] in seen for at in range(2))


def test_values_go_out_in_batches_and_stay_until_their_receipt(bench: Bench) -> None:
    bench.push(*[500] * 5)
    bench.device.pack_waiting(at_once=True)
    assert bench.curated.released() == []
    assert [len(frame.slots) for frame in bench.frames] == [5]
    (key,) = bench.keys
    assert key.stream == 256
    status = parse_status(bench.device.status("online").to_json())
    (account,) = status.streams
    assert (account.stream, account.created) == (256, 5)
    (frame,) = bench.frames
    assert (frame.batch, frame.numbering) == (1, account.series)
    for first, _, _ in bench.device.take_messages(0):
        bench.device.delivery.acknowledged(first, 0.0)
    reports_only = Receipt((StreamReceipt(0, key.number, series=account.series),))
    assert bench.device.accept_receipt(reports_only) == 0
    heard = Receipt((StreamReceipt(256, key.number, series=account.series),))
    assert bench.device.accept_receipt(heard) == 1
    assert bench.keys == []


def test_a_batch_is_the_same_bytes_for_ever_PRV_02(bench: Bench) -> None:
    bench.push(500, online=True)
    (key,) = bench.keys
    before = bench.device.core.journal.payload(key)
    bench.restart()
    assert bench.device.core.journal.payload(key) == before


def test_a_chunks_end_ends_the_batch_and_numbers_go_on(bench: Bench) -> None:
    bench.push(*[500] * 20)
    bench.device.pack_waiting(at_once=True)
    assert [len(frame.slots) for frame in bench.frames] == [8, 8, 4]
    numbers = [key.number for key in bench.keys]
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2]


def test_old_values_expire_and_are_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db", sending="jitter_s = 0\nmax_age_days = 1")
    bench.push(*[500] * 3)
    bench.push(500, slots=96)
    bench.device.housekeeping()
    (account,) = bench.device.status("online").streams
    assert (account.created, account.expired) == (4, 3)
    assert len(bench.made) == 1


def test_changed_settings_end_the_series_and_begin_another(bench: Bench) -> None:
    bench.push(*[500] * 3)
    before = bench.made
    bench.restart(FIXED.replace("epsilon = 1", "epsilon = 2"))
    rows = bench.curated.series()
    assert [bool(row.is_ended) for row in rows] == [True, False]
    assert [key_of(row) for row in rows] == [None, None]
    bench.push(500, slots=2)
    assert bench.made[:3] == before
    last = bench.made[3]
    assert last.position == 0
    assert last.series > before[0].series
    bench.device.pack_waiting(at_once=True)
    assert [frame.design.epsilon for frame in bench.frames] == [(1, 1), (2, 1)]


def test_a_full_disk_releases_nothing_and_the_next_slot_goes_on_AGT_05(bench: Bench) -> None:
    bench.push(500)
    with closing(sqlite3.connect(bench.state)) as other:
        other.execute("PRAGMA busy_timeout = 0")
        other.execute("BEGIN IMMEDIATE")
        with bench.journal.reading() as db:
            db.execute("PRAGMA busy_timeout = 0")
        with pytest.raises(StorageError):
            bench.push(500)
    assert [one.position for one in bench.made] == [0]
    bench.push(500)
    assert [one.position for one in bench.made] == [0, 1]


def test_without_room_nothing_is_released_and_it_goes_on_by_itself_AGT_05(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(*_: object) -> None:
        raise StorageError("s.db", "database or disk is full", passes=True)

    bench.push(500)
    with monkeypatch.context() as patched:
        patched.setattr(CuratorJournal, "commit_series", is_full)
        bench.push(500)
        assert bench.device.health == "degraded: storage"
    assert [one.position for one in bench.made] == [0]
    bench.push(500)
    assert bench.device.health == "ok"
    assert [one.position for one in bench.made] == [0, 1]


def test_a_log_that_cannot_be_emptied_leaves_what_was_committed_AGT_05(bench: Bench) -> None:
    """At a chunk's end its values are stored and the key is wiped; then the main file may not grow.

    Were the commit taken for undone, the next value would have the noise of the one before.
    """
    bench.push(*range(7))
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = bench.state.with_name("s.db-wal")
    with bench.journal.reading() as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    most = bench.state.stat().st_size * 3 // 4  # beyond the log's end, not beyond the file's
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, usual[1]))
    try:
        bench.push(100)
        assert len(bench.made) == 8
        assert log.stat().st_size > 0
        bench.push(900)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    bench.push(200)
    assert log.stat().st_size == 0
    slots = [one.slot for one in bench.made]
    assert len(set(slots)) == len(slots)
    assert [one.position for one in bench.made] == list(range(len(slots)))
    assert len(slots) >= 8
    (status,) = bench.journal.status()
    assert status.created == len(slots)


def test_without_randomness_nothing_is_released_AGT_11(tmp_path: Path) -> None:
    works = [True]

    def entropy(size: int) -> bytes:
        if not works[0]:
            raise OSError
        return os.urandom(size)

    bench = Bench(tmp_path / "s.db", entropy=entropy)
    bench.push(*[500] * 8)
    works[0] = False
    bench.push(500)  # a new chunk needs a key
    assert len(bench.made) == 8
    works[0] = True
    bench.push(500)
    assert len(bench.made) == 9


def test_a_clock_that_runs_away_releases_no_faster_than_time(bench: Bench) -> None:
    for _ in range(10):
        bench.clock.step(SLOT_S)
        bench.close(500)
    assert len(bench.made) <= 3


@pytest.mark.parametrize("restarts", [False, True])
def test_after_a_clock_that_had_been_ahead_a_new_series_begins_AGT_23(
    bench: Bench, *, restarts: bool
) -> None:
    """One slot of another year must not mute the stream until that year comes."""
    bench.push(*[500] * 3)
    bench.clock.step(10**8)
    bench.push(500)
    bench.clock.step(-(10**8))
    if restarts:
        bench.restart()
    bench.push(*[500] * 4)
    made = bench.made
    assert len({one.slot for one in made}) == len(made) >= 3 + 1 + 3
    assert len({one.series for one in made}) >= 2
    assert [one.position for one in made if one.series == made[-4].series][:1] == [0]


def test_no_plan_is_taken(bench: Bench) -> None:
    assert bench.device.accept_plan("power", make_plan().to_json()) == "mode"


@pytest.mark.parametrize("is_proof", [True, False])
def test_a_restored_curator_ends_its_chunk_when_a_receipt_tells_of_the_other_copy_PRV_19(
    tmp_path: Path, *, is_proof: bool
) -> None:
    """What is published after the receipt is drawn from a key that the other copy never had."""
    bench = Bench(tmp_path / "state" / "s.db")
    bench.push(500, online=True)
    bench.journal.close()
    copytree(bench.state.parent, tmp_path / "copy")
    bench.start()
    key = key_of(bench.curated.series()[-1])
    bench.push(*[500] * 3, online=True)
    (other,) = bench.device.status("online").streams
    bench.journal.close()
    rmtree(bench.state.parent)
    copytree(tmp_path / "copy", bench.state.parent)
    bench.start()
    assert key_of(bench.curated.series()[-1]) == key
    bench.push(900, online=True)
    assert bench.device.health == "ok"
    bench.push(900)
    bench.device.core.keyring = Keyring((), lambda *_: False) if is_proof else None
    heard = Receipt((StreamReceipt(256, other.next - 1, series=other.series),))
    assert bench.device.accept_receipt(heard) == 0
    assert bench.device.health == "degraded: rollback"
    assert [key_of(row) for row in bench.curated.series()] == [None, None]
    (account,) = bench.device.status("online").streams
    if is_proof:
        assert bench.made == []
        assert (account.created, account.expired) == (3, 3)
    else:  # what was packed went, or will go, as it is
        assert [len(bench.made), bench.curated.released()] == [2, []]
        assert (account.created, account.expired) == (3, 1)
    assert (account.next, account.series == other.series) == (1, False)
    bench.device.accept_receipt(heard)  # once a day is enough
    kept = len(bench.made)
    bench.push(900, slots=2, online=True)
    value = bench.made[-1]
    assert len(bench.made) == kept + 1
    assert (value.position, value.theta) == (0, 1000)
    assert key_of(bench.curated.series()[-1]) not in (None, key)
    assert bench.device.health == "degraded: rollback"
    bench.clock.pass_s(86_400)
    assert bench.device.health == "ok"


def test_a_restored_curator_ends_its_chunk_when_its_own_status_tells_of_the_other_copy_PRV_19(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "state" / "s.db")
    bench.push(500, online=True)
    bench.journal.close()
    copytree(bench.state.parent, tmp_path / "copy")
    bench.start()
    bench.push(500, online=True)
    said = parse_status(bench.device.status("offline").to_json())
    bench.device.accept_own_status(said)
    assert [bool(row.secret) for row in bench.curated.series()] == [True]  # it is this copy's own
    bench.journal.close()
    rmtree(bench.state.parent)
    copytree(tmp_path / "copy", bench.state.parent)
    bench.start()
    key = key_of(bench.curated.series()[-1])
    bench.device.accept_own_status(said)
    assert bench.device.health == "degraded: rollback"
    assert [key_of(row) for row in bench.curated.series()] == [None, None]
    bench.push(900, slots=2, online=True)
    assert key_of(bench.curated.series()[-1]) not in (None, key)


@pytest.mark.parametrize(("table", "block"), [(WIDE, 4), (DEEP, 1)])
def test_a_restored_or_cloned_curator_repeats_no_noise_PRV_19(
    tmp_path: Path, table: str, block: int
) -> None:
    """The attack: within a day, a copy's values differed from the other's by the readings alone."""
    bench = Bench(tmp_path / "one" / "s.db", table, ceiling=BIG)
    bench.push(BIG // 3)
    bench.journal.close()
    copytree(bench.state.parent, tmp_path / "two")
    bench.start()
    clone = Bench(
        tmp_path / "two" / "s.db", table, ceiling=BIG, clock=StillClock(bench.clock.now())
    )
    clone.clock.step(-SLOT_S)  # a bench passes a slot when it is made
    assert clone.device.slot == bench.device.slot
    for at in range(14):
        bench.push(BIG // 5)
        clone.push(BIG // 5 + 1 + at)
    ours, theirs = ([one.value for one in b.made] for b in (bench, clone))
    assert [len(ours), len(theirs)] == [15, 15]
    assert ours[0] == theirs[0]
    blocks = range(max(block - 1, 1), 15, block)  # the last value of each block carries its noise
    assert all(abs(ours[at] - theirs[at]) > 10**6 for at in blocks)
    for b in (bench, clone):
        b.journal.close()


# modes of one file


def test_a_curators_file_goes_on_in_the_local_mode_with_nothing_lost(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db")
    bench.push(*[500] * 3)
    last = bench.made[-1].slot
    bench.journal.close()
    with closing(Journal(bench.state)) as journal:
        curated = CuratorJournal(journal)
        assert curated.retire() == 1
        assert curated.retire() == 0
        assert [key_of(row) for row in curated.series()] == [None]
        assert curated.released() == []
    plain = LocalBench(bench.state, clock=bench.clock)
    assert plain.payload(Key(256, plain.journal.numbers()[256].following - 1))
    ledger = plain.journal.ledger()
    assert ledger is not None
    assert ledger.floor >= last


def test_slots_that_the_local_mode_reported_are_not_released_and_its_ledger_shows_both(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    local = planned(tmp_path / "s.db", slots=2)
    local.live(1, online=False)
    (waiting,) = local.journal.waiting()
    local.journal.close()
    bench = Bench(tmp_path / "s.db", clock=local.clock)
    series = bench.curated.series()[0].series
    assert series >= waiting.slot
    bench.push(500)
    bench.device.pack_waiting(at_once=True)
    assert {key.stream for key in bench.keys} == {1, 256}
    status = bench.device.status("online")
    assert [one.stream for one in parse_status(status.to_json()).streams] == [1, 256]
    assert status.ledger["reports"] == 1
    bench.journal.close()
    config = tmp_path / "agent.toml"
    config.write_text(config_text(tmp_path / "s.db"))
    assert main(["ledger", "-c", str(config)]) == 0
    text = capsys.readouterr().out
    for told in ("1 report", "curated power", "at most ε 1"):
        assert told in text


def test_the_local_mode_ends_what_a_curator_left_when_it_opens_its_file(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "s.db")
    bench.push(500)
    bench.journal.close()
    with closing(open_journal(make_config(bench.state))) as journal:
        assert [row.is_ended for row in CuratorJournal(journal).series()] == [1]
        assert len(journal.keys()) == 1
