"""The state file: one commit per claim, whole or not at all; damage is found and set aside."""

import os
import random
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from types import SimpleNamespace
from typing import Any

import pytest

from agent.claims.batches import Key, pack
from agent.claims.elapsed import Elapsed
from agent.claims.pipeline import Claim, Report
from agent.claims.rollback import Told
from agent.curator.journal import CuratorJournal
from agent.curator.outbox import ReleasedValue, SeriesRow
from agent.errors import StorageError
from agent.state.journal import Journal
from agent.state.journal_schema import SCHEMA
from agent.state.plan_journal import StoredPlan
from agent.state.state_file import refuse_place
from edge_ldp.device.frame import decode
from edge_ldp.protocol.ledger import Ledger, Window, charge, included, open_ledger
from edge_ldp.protocol.messages import StreamStatus
from edge_ldp.ratio import floor_ratio
from tests.agent.samples import (
    SERIES,
    SLOT,
    SLOT_S,
    StillClock,
    begun,
    local_device,
    make_config,
    make_plan,
    numbered,
)
from tests.processes import run_told

WINDOW = Window(8, 97, 1, 107)
RATIO = floor_ratio(1)
FRAME_BYTES = 512 + 24  # a page in the write-ahead log, with its header
PLAN = StoredPlan("power", 1, make_plan().to_json())


def fresh_ledger() -> Ledger:
    return Ledger(WINDOW, tuple(range(0, 80, 10)), SLOT - 1, silent_until=0)


def claim_after(ledger: Ledger, streams: tuple[int, ...] = (1,)) -> Claim:
    slot = ledger.floor + 1
    charged = charge(ledger, slot, slot * SLOT_S // 86_400, [RATIO] * len(streams))
    return Claim(charged, tuple(Report(stream, slot, 1, slot % 50) for stream in streams))


def commit_claim(journal: Journal, ledger: Ledger, *, packed: bool = True) -> Ledger:
    """Claim the next slot, packed with what waits or left to wait; return the new ledger."""
    claim = claim_after(ledger)
    waiting = [*journal.waiting(), *claim.reports]
    numbers = journal.numbers()
    fresh = [] if numbers else begun(1)
    batches = pack(waiting, numbered(1) | numbers) if packed else []
    journal.commit(claim, batches, fresh)
    return claim.ledger


def content(journal: Journal) -> tuple[object, ...]:
    return (
        journal.ledger(),
        journal.status(),
        journal.numbers(),
        journal.plans(),
        journal.waiting(),
        [(key, journal.payload(key)) for key in sorted(journal.keys())],
    )


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    made = Journal(tmp_path / "s.db")
    made.save_ledger(fresh_ledger())
    return made


# one commit


def test_of_a_stream_one_series_that_is_not_its_own_is_noted(journal: Journal) -> None:
    commit_claim(journal, fresh_ledger())
    own, strange, other = Told(1, SERIES, 9), Told(1, SERIES + 1, 3), Told(1, SERIES + 2, 4)
    for each in (own, strange, other):
        journal.suspect([each], [], None, None)
    assert journal.told() == [own, other]


def test_batches_are_told_oldest_first_whatever_their_stream(journal: Journal) -> None:
    ledger = fresh_ledger()
    for stream in (2, 1, 3):
        claim = claim_after(ledger, (stream,))
        journal.commit(claim, pack([*claim.reports], numbered(stream)), begun(stream))
        ledger = claim.ledger
    told = journal.keys()
    assert [key.stream for key in told] == [2, 1, 3]


@pytest.mark.parametrize("packed", [True, False])
def test_claim_and_report_are_one_commit(journal: Journal, *, packed: bool) -> None:
    said: list[str] = []
    with journal.reading() as db:
        db.set_trace_callback(said.append)
    commit_claim(journal, fresh_ledger(), packed=packed)
    verbs = [text.split()[0] for text in said if not text.startswith(("SELECT", "PRAGMA"))]
    assert verbs.count("BEGIN") == verbs.count("COMMIT") == 1
    assert (verbs[0], verbs[-1]) == ("BEGIN", "COMMIT")
    assert "ledger" in " ".join(said)
    assert ("INTO batches" if packed else "INTO waiting") in " ".join(said)


def test_the_file_is_written_synchronously_in_small_pages(journal: Journal) -> None:
    def pragma(name: str) -> object:
        with journal.reading() as db:
            return db.execute(f"PRAGMA {name}").fetchone()[0]

    assert (pragma("page_size"), pragma("journal_mode"), pragma("synchronous")) == (512, "wal", 2)


def test_only_its_owner_may_read_the_state(tmp_path: Path) -> None:
    usual = os.umask(0)
    try:
        journal = Journal(tmp_path / "s.db")
    finally:
        os.umask(usual)
    commit_claim(journal, fresh_ledger())
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == dict.fromkeys(("s.db", "s.db-wal", "s.db-shm", "s.db.lock"), 0o600)


def test_what_earlier_versions_left_open_is_closed_to_others(tmp_path: Path) -> None:
    """A state and its lock of mode 0644, and a log that a kill left behind: kept, and closed."""
    before = Journal(tmp_path / "s.db")
    commit_claim(before, fresh_ledger())
    (tmp_path / "other").mkdir()
    for path in tmp_path.glob("s.db*"):
        copy = tmp_path / "other" / path.name
        copy.write_bytes(path.read_bytes())
        copy.chmod(0o644)
    kept = before.ledger()
    before.close()
    journal = Journal(tmp_path / "other" / "s.db")
    assert journal.ledger() == kept
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "other").iterdir()}
    assert modes == dict.fromkeys(("s.db", "s.db-wal", "s.db-shm", "s.db.lock"), 0o640)


@pytest.mark.parametrize(
    ("packed", "settled", "typical_frames"), [(True, True, 3), (True, False, 3), (False, False, 3)]
)
def test_a_claim_of_one_stream_writes_about_2_kB(
    journal: Journal, *, packed: bool, settled: bool, typical_frames: int
) -> None:
    wal = journal.path.with_name("s.db-wal")
    ledger = fresh_ledger()
    written = []
    for slot in range(200):
        before = wal.stat().st_size
        ledger = commit_claim(journal, ledger, packed=packed)
        written.append(wal.stat().st_size - before)
        if settled and slot % 4 == 3:
            journal.settle(journal.keys())
    assert all(size % FRAME_BYTES == 0 for size in written)
    assert min(written) > 0, "the log was begun anew: measure fewer commits"
    assert sorted(written)[len(written) // 2] == typical_frames * FRAME_BYTES
    assert mean(written) <= 4 * FRAME_BYTES
    assert not settled or max(written[1:]) <= 2048  # the first begins a series


def test_what_was_committed_is_there_after_a_restart(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s.db")
    ledger = open_ledger(WINDOW, SLOT, lambda n: n // 2)
    journal.save_ledger(ledger)
    journal.save_plan(PLAN)
    for packed in (True, False, False):
        ledger = commit_claim(journal, ledger, packed=packed)
    before = content(journal)
    journal.close()
    journal = Journal(tmp_path / "s.db")
    assert content(journal) == before
    assert journal.set_aside is None
    assert before[0] == ledger
    assert before[1] == [StreamStatus(1, 1, 2, 1, 3, 0, series=SERIES, since=SLOT + 1)]


def test_time_and_sharing_are_stored_beside_the_ledger(journal: Journal) -> None:
    assert (journal.elapsed(), journal.sharing()) == (None, b"")
    begun, later = (Elapsed(SLOT_S, 1, ms, 0, "new") for ms in (1, 2))
    journal.save_ledger(fresh_ledger(), begun, b"terms")
    assert (journal.elapsed(), journal.sharing()) == (begun, b"terms")
    journal.save_elapsed(later)
    journal.save_ledger(fresh_ledger())
    assert (journal.elapsed(), journal.sharing()) == (later, b"terms")


def test_reports_that_a_batch_carries_wait_no_longer(journal: Journal) -> None:
    ledger = commit_claim(journal, fresh_ledger(), packed=False)
    ledger = commit_claim(journal, ledger, packed=False)
    assert [report.slot for report in journal.waiting()] == [SLOT, SLOT + 1]
    commit_claim(journal, ledger)
    assert journal.waiting() == []
    assert journal.keys() == [Key(1, 1)]


def test_streams_are_numbered_from_one_on_and_apart(journal: Journal) -> None:
    claim = claim_after(fresh_ledger(), (4, 9))
    journal.commit(claim, pack(claim.reports, numbered(4, 9)), begun(4, 9))
    later = claim_after(claim.ledger, (9,))
    journal.commit(later, pack(later.reports, journal.numbers()))
    assert {key: one.following for key, one in journal.numbers().items()} == {4: 2, 9: 3}
    assert journal.keys() == [Key(4, 1), Key(9, 1), Key(9, 2)]


def test_a_series_that_begins_is_numbered_from_one_and_the_batches_before_stay(
    journal: Journal,
) -> None:
    ledger = commit_claim(journal, fresh_ledger())
    ledger = commit_claim(journal, ledger)
    journal.commit(None, (), begun(1, base=2, series=78))
    assert journal.status()[0].oldest == journal.status()[0].next == 1
    commit_claim(journal, ledger)
    kept = journal.keys()
    frames = [decode(journal.payload(key) or b"") for key in kept]
    assert [(frame.series, frame.batch) for frame in frames] == [(77, 1), (77, 2), (78, 1)]
    assert [(one.series, one.made) for one in journal.series()] == [(77, 2), (78, 1)]
    (account,) = journal.status()
    assert account == StreamStatus(1, 1, 2, 1, 3, 0, series=78, since=SLOT)
    path = journal.path
    journal.close()
    again = Journal(path)
    assert again.set_aside is None


def test_as_many_series_are_known_as_receipts_tell_of_and_those_of_batches(
    journal: Journal,
) -> None:
    ledger = commit_claim(journal, fresh_ledger())
    for at in range(1, 8):
        journal.commit(None, (), begun(1, base=at, series=77 + at))
        ledger = commit_claim(journal, ledger)
    assert [one.series for one in journal.series()] == list(range(77, 85))
    journal.settle([Key(1, 1), Key(1, 2), Key(1, 4)])
    journal.commit(None, (), begun(1, base=8, series=99))
    assert [one.series for one in journal.series()] == [79, 81, 82, 83, 84, 99]
    journal.settle(journal.keys())
    journal.commit(None, (), begun(1, base=8, series=100))  # no batch was of 99
    assert [one.series for one in journal.series()] == [82, 83, 84, 100]


def test_settled_batches_are_gone_and_the_oldest_kept_moves_on(journal: Journal) -> None:
    ledger = fresh_ledger()
    for _ in range(4):
        ledger = commit_claim(journal, ledger)
    journal.settle([Key(1, 1), Key(1, 3), Key(7, 1)])
    assert journal.keys() == [Key(1, 2), Key(1, 4)]
    assert journal.payload(Key(1, 1)) is None
    (stream,) = journal.status()
    assert (stream.oldest, stream.next, stream.created) == (2, 5, 4)
    journal.settle(journal.keys())
    assert journal.status()[0].oldest == 5


def test_old_reports_expire_packed_or_waiting_and_are_counted(journal: Journal) -> None:
    ledger = fresh_ledger()
    for slot in range(6):
        ledger = commit_claim(journal, ledger, packed=slot < 3)
    assert journal.expire(SLOT, SLOT_S) == []
    assert journal.expire(SLOT + 2, SLOT_S) == [Key(1, 1), Key(1, 2)]
    assert journal.expire(SLOT + 5, SLOT_S) == [Key(1, 3)]
    (stream,) = journal.status()
    assert (stream.created, stream.expired) == (6, 5)
    assert [report.slot for report in journal.waiting()] == [SLOT + 5]


def test_batches_of_other_slots_expire_by_their_own_length_AGT_28(journal: Journal) -> None:
    ledger = commit_claim(journal, fresh_ledger())
    commit_claim(journal, ledger)
    minutes = 60  # slots of SLOT_S were 15 of these
    assert journal.expire((SLOT + 1) * SLOT_S // minutes, minutes) == [Key(1, 1)]
    assert journal.expire((SLOT + 1) * SLOT_S // minutes, minutes) == []
    assert journal.expire((SLOT + 2) * SLOT_S // minutes, minutes) == [Key(1, 2)]


def test_each_stream_is_charged_what_it_lost_itself(tmp_path: Path) -> None:
    """Streams with 1 and with 3 reports and values below the limit, and one on it."""
    journal = Journal(tmp_path / "s.db")
    curated = CuratorJournal(journal)
    slots = {4: (SLOT, SLOT + 3), 9: (SLOT, SLOT + 1, SLOT + 2, SLOT + 3)}
    reports = tuple(Report(key, slot, 1, 5) for key in slots for slot in slots[key])
    journal.commit(Claim(fresh_ledger(), reports), [], begun(4, 9))
    values = [
        ReleasedValue(256 + key, slot, SLOT - 1, at, 9, 7)
        for key in slots
        for at, slot in enumerate(slots[key])
    ]
    curated.commit_series([], values, (), begun(260, 265))
    for lost in (4, 0):  # what was given up is not given up again
        assert journal.expire(SLOT + 3, SLOT_S) == []
        assert curated.expire(SLOT + 3) == lost
        expired = {one.stream: one.expired for one in journal.status()}
        assert expired == {4: 1, 9: 3, 260: 1, 265: 3}
        assert [(one.stream, one.slot) for one in journal.waiting()] == [
            (4, SLOT + 3),
            (9, SLOT + 3),
        ]
        assert [(one.stream, one.slot) for one in curated.released()] == [
            (260, SLOT + 3),
            (265, SLOT + 3),
        ]


def test_it_says_up_to_which_slot_a_curator_took(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s.db")
    curated = CuratorJournal(journal)
    assert journal.released_until() == -1
    rows = [SeriesRow(256, SLOT, SLOT + at, b"d", b"t", b"s") for at in (0, 7)]
    curated.commit_series(rows[:1])
    assert journal.released_until() == SLOT
    curated.commit_series(rows[1:])
    assert journal.released_until() == SLOT + 7


def test_the_newest_plan_of_a_name_is_kept(journal: Journal) -> None:
    journal.save_plan(PLAN)
    newer = StoredPlan("power", 2, make_plan(2).to_json())
    other = StoredPlan("energy_import", 1, make_plan(stream="energy_import").to_json())
    journal.save_plan(newer)
    journal.save_plan(other)
    assert sorted(journal.plans(), key=lambda plan: plan.name) == [other, newer]


# crashes


class Failing(sqlite3.Connection):
    """A database that fails at its n-th statement, counting from 0; at none, until n is set."""

    left = 10**9

    def execute(self, *args: Any) -> sqlite3.Cursor:
        self.left -= 1
        if self.left == -1:
            raise sqlite3.OperationalError("disk I/O error")
        return super().execute(*args)


ACTS: dict[str, Callable[[Journal], object]] = {
    "claim": lambda journal: commit_claim(journal, journal.ledger() or fresh_ledger()),
    "wait": lambda journal: commit_claim(journal, journal.ledger() or fresh_ledger(), packed=False),
    "settle": lambda journal: journal.settle(journal.keys()),
    "expire": lambda journal: journal.expire(SLOT + 100, SLOT_S),
    "plan": lambda journal: journal.save_plan(StoredPlan("power", 2, make_plan(2).to_json())),
}


def prepare(path: Path) -> None:
    journal = Journal(path)
    journal.save_ledger(fresh_ledger())
    journal.save_plan(PLAN)
    ledger = commit_claim(journal, fresh_ledger())
    ledger = commit_claim(journal, ledger)
    commit_claim(journal, ledger, packed=False)
    journal.close()


def outcomes(tmp_path: Path, act: str) -> tuple[tuple[object, ...], tuple[object, ...]]:
    """Return the content before and after an act that nothing disturbs."""
    prepare(tmp_path / "good.db")
    journal = Journal(tmp_path / "good.db")
    before = content(journal)
    ACTS[act](journal)
    after = content(journal)
    journal.close()
    assert before != after
    return before, after


def consistent(found: tuple[object, ...]) -> bool:
    """Say whether as many reports are there as the ledger charged."""
    ledger, status = found[0], found[1]
    assert isinstance(ledger, Ledger)
    assert isinstance(status, list)
    created = sum(int(stream.created) for stream in status)
    return ledger.reports == created


@pytest.mark.parametrize("act", ACTS)
def test_a_failure_at_any_statement_leaves_all_or_nothing_AGT_01_AGT_02(
    tmp_path: Path, act: str
) -> None:
    before, after = outcomes(tmp_path, act)
    seen = []
    for at in range(100):
        path = tmp_path / f"{at}.db"
        prepare(path)
        journal = Journal(path, connection=Failing)
        with journal.reading() as failing:
            assert isinstance(failing, Failing)
            failing.left = at
        try:
            ACTS[act](journal)
        except StorageError:
            pass
        else:
            assert failing.left >= 0, "the failure was swallowed"
        left, failing.left = failing.left, -1
        found = content(journal)
        journal.close()
        journal = Journal(path)
        assert content(journal) == found
        journal.close()
        assert found in (before, after)
        assert consistent(found)
        seen.append(found == after)
        if left >= 0:
            break
    assert seen == sorted(seen), "done, then undone"
    assert len(seen) >= 3


KILLS = """
import os, signal, sqlite3, sys
from pathlib import Path
from agent.state.journal import Journal
from tests.agent.state.test_journal import ACTS, Failing, prepare

class Killing(Failing):
    def execute(self, *args):
        self.left -= 1
        if self.left == -1:
            os.kill(os.getpid(), signal.SIGKILL)
        return sqlite3.Connection.execute(self, *args)

directory, act = Path(sys.argv[1]), sys.argv[2]
for at in range(100):
    path = directory / f"{at}.db"
    prepare(path)
    child = os.fork()
    if child == 0:
        journal = Journal(path, connection=Killing)
        with journal.reading() as db:
            db.left = at
        ACTS[act](journal)
        os._exit(0)
    if os.waitpid(child, 0)[1] == 0:
        break
print(at)
"""


@pytest.mark.parametrize("act", ACTS)
def test_sigkill_at_any_statement_leaves_all_or_nothing_AGT_01_AGT_02(
    tmp_path: Path, act: str
) -> None:
    before, after = outcomes(tmp_path, act)
    done = run_told([sys.executable, "-c", KILLS, str(tmp_path), act], check=True)
    found = []
    for at in range(int(done.stdout) + 1):
        journal = Journal(tmp_path / f"{at}.db")
        assert journal.set_aside is None
        found.append(content(journal))
        assert consistent(found[-1])
        journal.close()
    assert len(found) >= 3
    assert set(map(repr, found)) == {repr(before), repr(after)}
    assert found[-1] == after


def test_a_report_cannot_be_stored_twice_for_one_slot(journal: Journal) -> None:
    claim = claim_after(fresh_ledger())
    journal.commit(claim, [], begun(1))
    with pytest.raises(StorageError, match="UNIQUE"):
        journal.commit(claim, [], begun(1))
    assert len(journal.waiting()) == 1


# one process


def test_a_second_process_is_refused_and_told_the_pid_AGT_14(journal: Journal) -> None:
    script = (
        "import sys; from pathlib import Path; from agent.state.journal import Journal; "
        "Journal(Path(sys.argv[1]))"
    )
    done = run_told([sys.executable, "-c", script, str(journal.path)])
    assert done.returncode != 0
    assert f"StorageError: {journal.path}: process {os.getpid()} holds it" in done.stderr.replace(
        "agent.errors.", ""
    )
    commit_claim(journal, fresh_ledger())
    assert len(journal.keys()) == 1


def test_the_lock_is_free_again_after_close_and_after_a_refusal_AGT_14(tmp_path: Path) -> None:
    first = Journal(tmp_path / "s.db")
    for _ in range(3):
        with pytest.raises(StorageError, match="holds it"):
            Journal(tmp_path / "s.db")
    first.close()
    Journal(tmp_path / "s.db").close()


def test_a_file_of_a_newer_version_is_left_alone_AGT_21(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s.db")
    with journal.reading() as db:
        db.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    journal.close()
    for _ in range(2):
        with pytest.raises(StorageError, match=f"its schema is {SCHEMA + 1}.*use the version"):
            Journal(tmp_path / "s.db")
    assert list(tmp_path.glob("*damaged*")) == []


def test_reading_needs_no_lock_and_creates_nothing(journal: Journal, tmp_path: Path) -> None:
    commit_claim(journal, fresh_ledger())
    reader = Journal(journal.path, create=False)
    assert content(reader) == content(journal)
    assert (reader.is_read_only, journal.is_read_only) == (True, False)
    with pytest.raises(StorageError, match="readonly"):
        reader.save_plan(PLAN)
    with pytest.raises(StorageError, match="readonly"):
        reader.probe()
    reader.close()
    with pytest.raises(StorageError, match="there is no state"):
        Journal(tmp_path / "absent.db", create=False)
    assert not (tmp_path / "absent.db").exists()


@pytest.mark.parametrize("path", ["file/s.db", "directory"])
def test_a_path_that_cannot_be_used_is_named(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "directory").mkdir()
    with pytest.raises(StorageError) as refused:
        Journal(tmp_path / path)
    assert refused.value.path == str(tmp_path / path)
    assert (tmp_path / "directory").is_dir()


# damage


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory with the file of an agent that was stopped."""
    directory = tmp_path_factory.mktemp("stopped")
    fill(Journal(directory / "s.db")).close()
    return directory


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a directory as SIGKILL leaves it: part of the state only in the log."""
    directory = tmp_path_factory.mktemp("killed")
    running = tmp_path_factory.mktemp("running")
    journal = fill(Journal(running / "s.db"))
    with journal.reading() as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    fill(journal)
    shutil.copytree(running, directory, dirs_exist_ok=True)
    journal.close()
    return directory


def fill(journal: Journal) -> Journal:
    ledger = journal.ledger() or fresh_ledger()
    journal.save_ledger(ledger)
    journal.save_plan(PLAN)
    for slot in range(40):
        ledger = commit_claim(journal, ledger, packed=slot % 4 > 0)
    journal.settle(journal.keys()[:10])
    return journal


def expect_whole_or_fresh(directory: Path, good: Path) -> str:
    """Open a file that something happened to; return "whole", "fresh" or "refused".

    Whole: all that budget, numbering and plans depend on is as it was. Fresh: the damaged bytes lie
    aside, unchanged, and the window and the current slot are spent. Anything else fails.
    """
    clock = StillClock((SLOT + 80) * SLOT_S + 100)
    config = make_config(directory / "s.db", window=(8, 97))
    bytes_before = {path.name: path.read_bytes() for path in directory.iterdir()}
    try:
        journal = Journal(directory / "s.db")
    except StorageError as refusal:
        if "its schema is" in refusal.reason:  # takes the file for another version's
            return "refused"
        raise
    device = local_device(config, journal, clock)
    device.trust_clock()
    ledger, aside = journal.ledger(), journal.set_aside
    assert ledger is not None
    kept = (ledger, journal.status()[0].created if journal.status() else 0, journal.plans())
    device.status("online")
    for key in sorted(journal.keys()):
        journal.payload(key)
    journal.save_ledger(ledger)  # it can be written, too
    journal.close()
    if aside is None:
        reference = Journal(good / "s.db", create=False)
        assert kept == (reference.ledger(), reference.status()[0].created, reference.plans())
        reference.close()
        return "whole"
    assert aside.parent == directory
    for name in ("s.db", "s.db-wal"):
        if name in bytes_before:
            moved = directory / name.replace("s.db", aside.name)
            assert moved.read_bytes() == bytes_before[name]
    assert kept[1:] == (0, [])
    assert ledger.floor >= device.slot
    assert ledger.silent_until >= device.slot + WINDOW.slots
    assert not any(included(ledger, device.slot + later) for later in range(WINDOW.slots))
    again = Journal(directory / "s.db")
    assert again.set_aside is None
    assert again.ledger() == ledger
    again.close()
    return "fresh"


def reference_of(tmp_path: Path, source: Path) -> Path:
    good = tmp_path / "good"
    shutil.copytree(source, good)
    Journal(good / "s.db").close()
    return good


def damage(
    tmp_path: Path, source: Path, changes: list[Callable[[Path], None]]
) -> dict[str, list[int]]:
    """Return which of the changes to a copy of the directory ended how."""
    good = reference_of(tmp_path, source)
    ended: dict[str, list[int]] = {}
    for at, change in enumerate(changes):
        directory = tmp_path / str(at)
        shutil.copytree(source, directory)
        change(directory)
        ended.setdefault(expect_whole_or_fresh(directory, good), []).append(at)
        shutil.rmtree(directory)
    return ended


def flip(name: str, at: int, bit: int) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        path = directory / name
        body = bytearray(path.read_bytes())
        body[at % len(body)] ^= 1 << bit
        path.write_bytes(body)

    return change


def cut(name: str, size: int) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        path = directory / name
        path.write_bytes(path.read_bytes()[:size])

    return change


def remove(*names: str) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        for name in names:
            (directory / name).unlink()

    return change


def test_undamaged_copies_are_whole_AGT_07(tmp_path: Path, stopped: Path, killed: Path) -> None:
    for number, source in enumerate((stopped, killed)):
        (tmp_path / str(number)).mkdir()
        assert damage(tmp_path / str(number), source, [lambda _: None]) == {"whole": [0]}


@pytest.mark.parametrize("flips", [40, pytest.param(150, marks=pytest.mark.slow)])
def test_a_flipped_bit_anywhere_in_the_file_changes_no_budget_AGT_07(
    tmp_path: Path, stopped: Path, flips: int
) -> None:
    choose = random.Random(7)  # noqa: S311 (which bytes a test damages)
    size = (stopped / "s.db").stat().st_size
    header = [flip("s.db", at, at % 8) for at in (0, 16, 18, 19, 20, 28, 31, 44, 47, 56, 59)]
    spread = [flip("s.db", choose.randrange(size), choose.randrange(8)) for _ in range(flips)]
    ended = damage(tmp_path, stopped, [*header, *spread])
    assert {"whole", "fresh"} == set(ended)
    assert len(ended["fresh"]) >= 10  # the check finds damage at all


def test_a_flipped_schema_number_is_refused_or_fresh_AGT_07(tmp_path: Path, stopped: Path) -> None:
    changes = [flip("s.db", at, bit) for at in (60, 63) for bit in range(8)]
    ended = damage(tmp_path, stopped, changes)
    assert set(ended) == {"refused", "fresh"}


def test_a_flipped_bit_in_the_ledger_is_always_found_AGT_07(tmp_path: Path, stopped: Path) -> None:
    """Every bit of a digit still reads as a digit: only the seal can tell."""
    body = (stopped / "s.db").read_bytes()
    start = body.rindex(b'{"v":2,"window"')
    places = [
        start + body[start:].index(text)
        for text in (b'"floor":', b'"silent_until":', b'"spent":[[')
    ]
    ended = damage(tmp_path, stopped, [flip("s.db", at + 12, 0) for at in places])
    assert ended == {"fresh": [0, 1, 2]}


@pytest.mark.parametrize(
    "change",
    [
        *("UPDATE waiting SET code = -1", "UPDATE waiting SET code = 65536"),
        *("UPDATE waiting SET code = 'x'", "UPDATE waiting SET slot = slot + 4294967296"),
        *("UPDATE waiting SET stream = 2", "UPDATE batches SET number = number + 100000"),
        *("UPDATE batches SET stream = 'x'", "UPDATE batches SET reports = 9"),
        *("UPDATE batches SET last_slot = 5", "UPDATE batches SET payload = substr(payload, 2)"),
        *("UPDATE batches SET payload = 'text'", "UPDATE streams SET next = next - 1"),
        *("UPDATE streams SET stream = 2", "UPDATE plans SET epoch = 9"),
        *("UPDATE plans SET payload = x'00'", "UPDATE ledger SET commits = commits - 1"),
        *("DELETE FROM streams", "DELETE FROM ledger"),
        "INSERT INTO waiting VALUES (1, 2000501, 1, -1, 0)",
        "INSERT INTO waiting VALUES (1, 2000501, 1, 65536, 0)",
        *("DROP TABLE waiting", "ALTER TABLE waiting RENAME COLUMN code TO kode"),
    ],
)
def test_rows_that_could_not_be_sent_or_believed_are_found_AGT_07(
    tmp_path: Path, stopped: Path, change: str
) -> None:
    def execute(directory: Path) -> None:
        db = sqlite3.connect(directory / "s.db")
        db.execute("INSERT INTO waiting VALUES (1, 2000500, 1, 7, 0)")
        db.execute(change)
        db.commit()
        db.close()

    assert damage(tmp_path, stopped, [execute]) == {"fresh": [0]}


def test_a_file_cut_at_each_page_an_emptied_and_a_foreign_one_are_found_AGT_07(
    tmp_path: Path, stopped: Path
) -> None:
    def overwrite(directory: Path) -> None:
        (directory / "s.db").write_bytes(b"not a database" * 100)

    def other_database(directory: Path) -> None:
        (directory / "s.db").unlink()
        other = sqlite3.connect(directory / "s.db")
        other.executescript("PRAGMA journal_mode = WAL; CREATE TABLE x (y)")
        other.close()

    pages = range(1, (stopped / "s.db").stat().st_size // 512)
    assert len(pages) >= 10
    cuts = [cut("s.db", size) for size in (0, 100, *(page * 512 for page in pages))]
    ended = damage(tmp_path, stopped, [*cuts, overwrite, other_database])
    assert ended == {"fresh": list(range(len(cuts) + 2))}


def test_a_log_that_is_gone_or_damaged_is_found_AGT_07(tmp_path: Path, killed: Path) -> None:
    """The file alone is sound but old: its batch numbers would be used a second time."""
    choose = random.Random(8)  # noqa: S311 (which bytes a test damages)
    wal = (killed / "s.db-wal").stat().st_size
    frames = (wal - 32) // FRAME_BYTES
    changes = [
        remove("s.db"),
        remove("s.db-wal"),
        remove("s.db-wal", "s.db-shm"),
        cut("s.db-wal", 0),
        cut("s.db-wal", 32),
        *(cut("s.db-wal", 32 + frame * FRAME_BYTES) for frame in range(0, frames - 6, 5)),
        *(flip("s.db-wal", choose.randrange(wal - 6 * FRAME_BYTES), 1) for _ in range(40)),
    ]
    ended = damage(tmp_path, killed, changes)
    assert ended == {"fresh": list(range(len(changes)))}


def test_a_flipped_bit_in_a_killed_agents_file_changes_no_budget_AGT_07(
    tmp_path: Path, killed: Path
) -> None:
    choose = random.Random(9)  # noqa: S311 (which bytes a test damages)
    size = (killed / "s.db").stat().st_size
    changes = [flip("s.db", choose.randrange(size), choose.randrange(8)) for _ in range(40)]
    ended = damage(tmp_path, killed, [*changes, remove("s.db-shm")])
    assert 40 in ended["whole"]


def test_a_deleted_file_spends_the_window_PRV_12(tmp_path: Path, stopped: Path) -> None:
    directory = tmp_path / "deleted"
    shutil.copytree(stopped, directory)
    (directory / "s.db").unlink()
    journal = Journal(directory / "s.db")
    device = local_device(make_config(directory / "s.db", window=(8, 97)), journal, StillClock())
    device.trust_clock()
    ledger = journal.ledger()
    assert ledger is not None
    assert (ledger.floor, ledger.silent_until) == (SLOT, SLOT + 97)
    elapsed = journal.elapsed()
    assert elapsed is not None
    assert elapsed.runs == ((SLOT - 35 * 96, SLOT),)  # where the lost state reported (AGT-30)
    commit_claim(journal, ledger)
    before = content(journal)
    journal.close()
    journal = Journal(directory / "s.db")
    assert journal.set_aside is None
    assert content(journal) == before


def test_an_old_copy_put_back_is_not_believed_PRV_12(tmp_path: Path) -> None:
    """Putting yesterday's file back would give yesterday's budget again."""
    journal = fill(Journal(tmp_path / "s.db"))
    journal.close()
    shutil.copy(tmp_path / "s.db", tmp_path / "copy")
    journal = Journal(tmp_path / "s.db")
    commit_claim(journal, journal.ledger() or fresh_ledger())
    journal.close()
    shutil.copy(tmp_path / "copy", tmp_path / "s.db")
    journal = Journal(tmp_path / "s.db")
    assert journal.set_aside is not None
    assert journal.ledger() is None


def test_damaged_files_are_kept_each_under_its_own_name_AGT_07(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        Journal(tmp_path / "s.db").close()  # what begins after a damaged one is sound at once
        (tmp_path / "s.db").write_bytes(b"x" * 600 * number)
        journal = Journal(tmp_path / "s.db")
        assert journal.set_aside == tmp_path / f"s.db.damaged-{number}"
        journal.close()
    assert [(tmp_path / f"s.db.damaged-{n}").stat().st_size for n in (1, 2, 3)] == [600, 1200, 1800]


def test_a_lock_file_that_says_nonsense_is_no_obstacle(tmp_path: Path) -> None:
    for text in ("", "\n", "12345\n", "x" * 1000, "99 99999999999999999999999999\n"):
        (tmp_path / "s.db.lock").write_text(text)
        journal = Journal(tmp_path / "s.db")
        assert journal.set_aside is None
        journal.save_ledger(fresh_ledger())
        journal.close()


def test_a_disk_without_room_is_refused_with_how_much_it_takes_AGT_05(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    full = SimpleNamespace(f_bfree=1, f_bavail=1, f_frsize=4096, f_flag=0)
    monkeypatch.setattr(os, "statvfs", lambda _: full)
    with pytest.raises(StorageError, match="No space left on device; make room there: 64 KiB"):
        refuse_place(tmp_path / "s.db")
