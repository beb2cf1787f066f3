"""SQLite's own faults: AGG-04, AGG-05, AGG-12, and stores that must not be opened."""

import os
import resource
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from aggregator.counting.records import Changes
from aggregator.counting.tally import Tally
from aggregator.errors import StoreError, StoreHeldError
from aggregator.store.forms import unpack_pairs
from aggregator.store.sqlite.reader import SqliteReader, translate
from aggregator.store.sqlite.session import SqliteSession
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.errors import RowError
from tests.aggregator.store_contract import changes
from tests.aggregator.tallies import count_batches


def one_count() -> Changes:
    tally = count_batches([((1, 1, 0, 0), 4, np.array([4]), np.array([7]))])
    return Changes({}, {}, tally, {}, {}, frozenset(), frozenset(), frozenset())


def commit(store: SqliteStore, change: Changes | None = None) -> None:
    store.update(frozenset(), frozenset(), 1, lambda _: change or one_count())


def test_every_commit_is_synchronous(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "a.db")
    with store.reading() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()


@pytest.mark.parametrize("link", ["hardlink_to", "symlink_to"])
def test_a_second_writer_under_another_name_of_the_file_is_refused_NET_27(
    tmp_path: Path, link: str
) -> None:
    """The lock beside a name says nothing of the file's other names."""
    store = SqliteStore.open(tmp_path / "a.db")
    getattr(tmp_path / "b.db", link)(tmp_path / "a.db")
    with pytest.raises(StoreError, match="in use under another name"):
        SqliteStore.open(tmp_path / "b.db")
    store.close()
    (tmp_path / "a.db").unlink()
    if link == "hardlink_to":
        SqliteStore.open(tmp_path / "b.db").close()


def test_a_second_writer_is_refused_and_told_who_holds_it(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "a.db")
    with pytest.raises(StoreError, match=f"in use by process {os.getpid()}"):
        SqliteStore.open(tmp_path / "a.db")
    store.close()
    SqliteStore.open(tmp_path / "a.db").close()


def test_a_full_disk_takes_no_word_of_who_holds_it_AGG_05(tmp_path: Path) -> None:
    SqliteStore.open(tmp_path / "a.db").close()
    (tmp_path / "a.db.lock").write_bytes(b"")  # as after a crash
    first, second = (SqliteStore(tmp_path / "a.db") for _ in range(2))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))  # no byte can be written
    try:
        first.hold()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(StoreError, match="is in use by another process; stop it first"):
        second.hold()
    first.close()


def test_no_room_for_what_readers_share_is_told_as_no_room_AGG_05(tmp_path: Path) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_SHMSIZE
    told = str(translate(error, tmp_path / "a.db"))
    assert told.endswith("has no space left on its disk; nothing is acknowledged until it works")


def test_a_lock_held_by_another_process_is_a_hold_and_nothing_is_lost(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "a.db")
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreHeldError, match="locked by another process"):
        commit(store)
    other.execute("ROLLBACK")
    other.close()
    commit(store)
    assert store.totals(1).count.sum() == 1
    store.close()


def test_a_full_disk_is_a_hold_and_the_store_goes_on_when_there_is_space_AGG_05(
    tmp_path: Path,
) -> None:
    store = SqliteStore.open(tmp_path / "a.db")
    with store.reading() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
    slots = np.arange(4000)
    big = count_batches([((1, 1, 0, 0), 1, slots, slots)])
    full = Changes({}, {}, big, {}, {}, frozenset(), frozenset(), frozenset())
    with pytest.raises(StoreHeldError, match="no space"):
        commit(store, full)
    commit(store, full)  # the connection, and its page limit, were given up with the transaction
    assert store.totals(1).count.sum() == 4000
    store.close()


def test_reading_works_while_another_process_writes(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "a.db")
    commit(store)
    reader = SqliteReader.open(tmp_path / "a.db")
    with store.reading() as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("DELETE FROM counts")
        assert reader.totals(1).count.sum() == 1
        db.execute("COMMIT")
    assert reader.totals(1).count.sum() == 0
    reader.close()
    store.close()


def test_reading_works_when_nobody_writes(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "a.db")
    commit(store)
    store.close()
    reader = SqliteReader.open(tmp_path / "a.db")
    assert reader.totals(1).count.sum() == 1
    reader.close()


@pytest.fixture
def only_to_read() -> Iterator[Path]:
    """Give a store that nobody writes to, and be one who may only read where it lies."""
    with TemporaryDirectory() as name:  # pytest's own folders let nobody else through
        place = Path(name)
        SqliteStore.open(place / "a.db").close()
        assert not (place / "a.db-wal").exists()
        (place / "a.db").chmod(0o644)
        place.chmod(0o755 if os.geteuid() == 0 else 0o555)
        with _as_nobody():
            yield place / "a.db"
        place.chmod(0o755)


@contextmanager
def _as_nobody() -> Iterator[None]:
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_reading_works_where_nobody_writes_and_the_reader_may_not(only_to_read: Path) -> None:
    with closing(SqliteReader.open(only_to_read)) as reader:
        assert reader.refused() == []
        with reader.snapshot():
            assert list(reader.records()) == []
    assert {path.name for path in only_to_read.parent.iterdir()} <= {"a.db", "a.db.lock"}


@pytest.mark.skipif(os.geteuid() != 0, reason="writes where the reader may not")
def test_what_lies_still_is_read_anew_once_somebody_writes(only_to_read: Path) -> None:
    refused = {("late", 1): (2, 3)}
    with closing(SqliteReader.open(only_to_read)) as reader:
        os.seteuid(0)
        store = SqliteStore.open(only_to_read)
        commit(store, changes(refused=refused))
        os.seteuid(65534)
        with pytest.raises(StoreHeldError, match="is written to again"):
            reader.refused()
        os.seteuid(0)
        store.close()  # what was in the -wal is in the file now
        os.seteuid(65534)
        assert [row.reports for row in reader.refused()] == [3]
        os.seteuid(0)
        with closing(SqliteStore.open(only_to_read)) as store:  # comes and goes unseen
            commit(store, changes(refused=refused))
        os.seteuid(65534)
        with pytest.raises(StoreHeldError, match="is written to again"), reader.snapshot():
            reader.refused()
        assert [row.reports for row in reader.refused()] == [6]


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        SqliteReader.open(tmp_path / "none.db")
    with pytest.raises(StoreError, match="directory must exist"):
        SqliteStore.open(tmp_path / "none" / "a.db")


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    for opens in (SqliteStore.open, SqliteReader.open):
        with pytest.raises(StoreError, match="not an aggregator's store"):
            opens(tmp_path / "a.db")


@pytest.mark.parametrize("where", ["head", "middle", "all"])
def test_a_damaged_file_is_refused_with_a_remedy(tmp_path: Path, where: str) -> None:
    path = tmp_path / "a.db"
    store = SqliteStore.open(path)
    for slot in range(0, 4000, 400):
        slots = np.arange(slot, slot + 400)
        tally = count_batches([((1, 1, 0, 0), 4, slots, slots)])
        commit(store, Changes({}, {}, tally, {}, {}, frozenset(), frozenset(), frozenset()))
    store.close()
    content = bytearray(path.read_bytes())
    at = {"head": slice(0, 16), "middle": slice(4096, 3 * 4096), "all": slice(0, len(content))}
    content[at[where]] = b"\xa5" * len(content[at[where]])
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"damaged.*set the file aside"):
        SqliteStore.open(path)


@pytest.mark.parametrize("opens", [SqliteStore.open, SqliteReader.open, SqliteSession.open])
@pytest.mark.parametrize("content", [b"\xa5" * 8192, b""], ids=["damaged", "not ours"])
def test_a_file_that_is_refused_is_closed_while_its_error_is_told(
    tmp_path: Path, opens: Callable[[Path], SqliteReader], content: bytes
) -> None:
    path = tmp_path / "a.db"
    path.write_bytes(content)
    if not content:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreError) as told:  # it keeps what was in use when it was raised
        opens(path)
    assert told.tb is not None
    opened = [str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.exists()]
    assert [name for name in opened if name.startswith(str(tmp_path))] == []


def test_damaged_counts_are_an_error_never_numbers(tmp_path: Path) -> None:
    """AGG-12."""
    store = SqliteStore.open(tmp_path / "a.db")
    commit(store)
    for blob in (b"123", b"\x07\x00" + b"\x00" * 8, b"\x07\x00" + b"\xff" * 8):
        with pytest.raises(RowError):
            unpack_pairs(blob)
        with store.reading() as db:
            db.execute("UPDATE counts SET pairs = ?", (blob,))
        with pytest.raises(StoreError, match=r"counts (do not parse|are of no known form)"):
            store.totals(1)
    store.close()


def test_a_damaged_record_is_an_error(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "a.db")
    with store.reading() as db:
        row = ("home", 1, 1, 1, 0, b"123", b"", None, *[0] * 10, b"")
        db.execute(f"INSERT INTO records VALUES ({','.join('?' * 19)})", row)  # noqa: S608
    with pytest.raises(StoreError, match="does not parse"):
        store.states("home")
    store.close()


def test_an_empty_flush_is_a_commit_too(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "a.db")
    commit(store, Changes({}, {}, Tally(), {}, {}, frozenset(), frozenset(), frozenset()))
    assert store.last_commit_s() == 1
    store.close()
