"""The archive holds exactly what the store counted, whatever dies or fails in between."""

import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from aggregator.archive.directory import open_spool, read_about
from aggregator.archive.files import Compacted, compact
from aggregator.archive.spool import Spool
from aggregator.config import parse_config
from aggregator.counting.records import Changes, Doubt
from aggregator.counting.tally import Tally
from aggregator.errors import StoreError, StoreHeldError
from aggregator.intake.intake import commit
from aggregator.replay.comparison import compare_archive, tally_of_rows
from aggregator.replay.counts import Counted, count_archive
from aggregator.replay.statement import Selection
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.service.broker import Message
from tests.aggregator.archive_run import (
    BATCHES,
    CONFIG,
    DEVICES,
    REPORTS,
    RULES,
    SLOT_S,
    config_in,
    frame_of,
    traffic,
)
from tests.processes import run_told

ALL = DEVICES * BATCHES * REPORTS
QUESTION = Selection({1: 4})


class House:
    def __init__(self, place: Path) -> None:
        self.place = place
        self.archive = place / "archive"
        self.open()

    def open(self) -> None:
        self.store = SqliteStore.open(self.place / "a.db")
        spool = open_spool(config_in(self.place), self.store)
        assert spool is not None
        self.spool = spool

    def close(self) -> None:
        self.spool.close()
        self.store.close()

    def take(self, *messages: Message) -> Changes:
        return commit(self.store, fleet="demo", messages=messages, rules=RULES, spool=self.spool)

    def compact(self) -> Compacted:
        return compact(self.archive, {1: SLOT_S}, self.store.committed)

    def counted(self) -> Tally:
        return tally_of_rows({1: self.store.counts(1, 0, 1 << 32)})

    def replayed(self, *, resume: bool = False) -> Counted:
        return count_archive(self.archive, QUESTION, resume=resume)

    def check(self, reports: int) -> None:
        """Assert that store and archive hold the same, and so many reports."""
        self.compact()
        found = self.replayed()
        assert found.tally == self.counted()
        assert found.tally.total == reports


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.close()


def kill_again_and_again(place: Path, batches: int) -> int:
    done = run_told(
        [sys.executable, "-m", "tests.aggregator.archive_run", str(place), str(batches)],
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_killed_at_any_step_the_archive_holds_what_was_counted_AGG_01_AGG_02(
    tmp_path: Path,
) -> None:
    assert kill_again_and_again(tmp_path, BATCHES) >= 30
    house = House(tmp_path)
    house.check(ALL)
    house.close()


def test_without_a_crash_every_counted_report_is_archived_once(house: House) -> None:
    for flush in traffic():
        house.take(*flush)
    house.check(ALL)


def test_what_is_not_counted_is_not_archived(house: House) -> None:
    house.take(frame_of(1, 1))
    house.take(frame_of(1, 1), frame_of(1, 1, code=5))
    house.check(REPORTS)


def test_a_flush_that_was_not_committed_is_replaced_by_the_next(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise StoreHeldError("here", "is full", "wait")

    house.take(frame_of(1, 1))
    (segment,) = (house.archive / "spool").glob("*.open")
    size = segment.stat().st_size
    with monkeypatch.context() as patched:
        patched.setattr("aggregator.store.sqlite.store.write", fail)
        with pytest.raises(StoreHeldError):
            house.take(frame_of(2, 1), frame_of(3, 1))
        assert segment.stat().st_size > size
    house.check(REPORTS)
    house.take(frame_of(4, 1))
    house.check(2 * REPORTS)


def test_a_commit_that_happened_though_it_failed_is_kept_AGG_07(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = SqliteStore.update

    def lose_answer(*args: object, **kwargs: object) -> None:
        update(*args, **kwargs)  # type: ignore[arg-type]
        raise StoreHeldError("here", "met an input/output error", "wait")

    with monkeypatch.context() as patched:
        patched.setattr(SqliteStore, "update", lose_answer)
        with pytest.raises(StoreHeldError):
            house.take(frame_of(1, 1))
    assert not house.take(frame_of(1, 1)).counted
    house.take(frame_of(2, 1))
    house.check(2 * REPORTS)


@pytest.mark.parametrize("call", ["pwrite", "fdatasync", "ftruncate"])
def test_a_full_disk_of_the_archive_holds_the_flush_AGG_05(
    house: House, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_args: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    house.take(frame_of(1, 1))
    with monkeypatch.context() as patched:
        patched.setattr(os, call, full)
        with pytest.raises(StoreHeldError, match="No space left"):
            house.take(frame_of(2, 1))
    assert house.counted().total == REPORTS
    house.take(frame_of(2, 1))
    house.check(2 * REPORTS)


def test_a_second_aggregator_cannot_write_to_the_same_archive(house: House) -> None:
    with pytest.raises(StoreError, match="in use by another process"):
        Spool.open(house.archive / "spool", house.store.committed)


def test_damage_in_the_midst_of_a_spool_is_told_and_nothing_is_cut(tmp_path: Path) -> None:
    house = House(tmp_path)
    for batch in (1, 2, 3):
        house.take(frame_of(1, batch))
    (segment,) = (house.archive / "spool").glob("*.open")
    content = bytearray(segment.read_bytes())
    content[40] ^= 1
    segment.write_bytes(content)
    with pytest.raises(StoreError, match="damaged at byte 0"):
        house.compact()
    house.spool._doubt = Doubt(bytes(16), "home-1", 1, 3)  # noqa: SLF001 — as if it had died here
    house.close()
    with pytest.raises(StoreError, match="damaged at byte 0"):
        house.open()
    house.store.close()
    assert segment.read_bytes() == content


def test_a_report_that_contradicts_the_archive_is_counted_as_a_conflict(house: House) -> None:
    house.take(frame_of(1, 1))
    house.check(REPORTS)
    house.close()
    for name in ("a.db", "a.db-wal", "a.db-shm"):
        (house.place / name).unlink(missing_ok=True)  # a store that was lost
    house.open()
    house.take(frame_of(1, 1, code=1))
    assert house.compact().conflicts == REPORTS
    differ = compare_archive(house.replayed().tally, house.counted(), house.counted()).differ
    assert sum(one.archive for one in differ) >= 1


def test_files_stand_by_day_and_shard_sorted_and_small(house: House) -> None:
    for flush in traffic():
        house.take(*flush)
    house.compact()
    files = sorted((house.archive / "reports").glob("day=*/shard-*.parquet"))
    assert {path.parent.name for path in files} >= {"day=2023-11-15", "day=2023-11-16"}
    assert {path.name for path in files} == {"shard-000.parquet", "shard-001.parquet"}
    total = 0
    for path in files:
        found = pq.read_table(path, columns=["device", "slot"]).to_pydict()
        total += len(found["slot"])
        keys = [*zip(found["device"], found["slot"], strict=True)]
        assert keys == sorted(set(keys))
    assert total == ALL


def test_an_archive_knows_its_fleet_and_shards_and_whether_it_began_with_the_store(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    assert read_about(house.archive).complete
    house.take(frame_of(1, 1))
    house.close()
    store = SqliteStore.open(tmp_path / "a.db")
    other = CONFIG.format(place=tmp_path).replace("shards = 2", "shards = 3")
    with pytest.raises(StoreError, match="made for fleet demo in 2 shards"):
        open_spool(parse_config(other, "a.toml"), store)
    late = parse_config(other.replace("/archive", "/late"), "a.toml")
    spool = open_spool(late, store)
    assert spool is not None
    assert not read_about(tmp_path / "late").complete
    spool.close()
    store.close()


def test_no_archive_is_kept_unless_it_is_asked_for(tmp_path: Path) -> None:
    text = CONFIG.format(place=tmp_path).replace('[archive]\npath = "', '[clock]\n# "')
    config = parse_config(text.replace("shards = 2", ""), "a.toml")
    store = SqliteStore.open(tmp_path / "a.db")
    assert open_spool(config, store) is None
    store.close()


def test_an_interrupted_replay_goes_on_where_it_was(house: House) -> None:
    for flush in traffic():
        house.take(*flush)
    house.compact()
    days = house.replayed().days
    assert days >= 3
    seen: list[int] = []

    def interrupt(done: int, _all: int) -> None:
        if done == days - 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_archive(house.archive, QUESTION, progress=interrupt)
    changed = min((house.archive / "reports").glob("day=*/*.parquet"))
    again = count_archive(
        house.archive, QUESTION, resume=True, progress=lambda at, _: seen.append(at)
    )
    assert (again.resumed, seen) == (days - 1, list(range(1, days + 1)))
    assert again.tally == house.counted()
    with pytest.raises(KeyboardInterrupt):
        count_archive(house.archive, QUESTION, progress=interrupt)
    os.utime(changed, ns=(1, 1))  # another file than the one that was counted
    assert house.replayed(resume=True).resumed == days - 2
    assert house.replayed(resume=True).resumed == 0


def test_a_damaged_file_is_named_and_not_replaced(house: House) -> None:
    house.take(frame_of(1, 1))
    house.compact()
    (path,) = (house.archive / "reports").glob("day=*/*.parquet")
    content = path.read_bytes()
    for damaged in (content[:-20], b"", content[:4] + bytes(len(content) - 8) + content[-4:]):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match="restore it from a backup"):
            house.compact()
        with pytest.raises(StoreError, match="cannot be read"):
            house.replayed()
        assert path.read_bytes() == damaged
    path.write_bytes(content)
    house.check(REPORTS)


def test_reports_of_a_stream_that_is_gone_are_kept_and_named(house: House) -> None:
    house.take(frame_of(1, 1))
    with pytest.raises(StoreError, match="reports of stream 1, which is not configured"):
        compact(house.archive, {2: SLOT_S}, house.store.committed)
    house.check(REPORTS)


def test_only_its_owner_and_group_read_an_archive(house: House) -> None:
    house.take(frame_of(1, 1))
    house.compact()
    files = [path for path in house.archive.rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert not [path for path in files if path.stat().st_mode & 0o007]
    assert not house.archive.stat().st_mode & 0o007


def test_two_replays_do_not_count_at_the_same_time(house: House) -> None:
    house.take(frame_of(1, 1))
    house.compact()

    def again(_done: int, _all: int) -> None:
        with pytest.raises(StoreError, match="in use by another process"):
            house.replayed()

    assert count_archive(house.archive, QUESTION, progress=again).tally.total == REPORTS
