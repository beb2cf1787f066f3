"""A SQLite store moved to PostgreSQL: all of it, once, or nothing: AGG-22."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aggregator.counting.records import HeldCounts, Marked
from aggregator.errors import StoreError
from aggregator.main import main
from aggregator.store.contract import LAST_BUCKET, PlanRow, Reader, RevisionRow, Store
from aggregator.store.moving import move
from aggregator.store.postgres.store import PostgresStore
from aggregator.store.rows import AuditRow, BeatRow
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.protocol.messages import Status
from tests.aggregator.counting.test_curated import FIRST, arrivals, frame, later
from tests.aggregator.fakes import CONFIG
from tests.aggregator.store_contract import NOW_S, RECORD, changes, codes, commit, known

KEY = ("home", 1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Make a store that has something in every table."""
    place = tmp_path / "a.db"
    with closing(SqliteStore.open(place)) as store:
        store.pin({"fleet": "demo"})
        fill(store)
        with store.reading() as db:
            db.execute("INSERT INTO groups VALUES (3, 'feeder')")
            db.execute("UPDATE devices SET grp = 3, held_s = 5 WHERE device = 'other'")
            db.execute("INSERT INTO rolled VALUES (1, 1, 4)")
            db.execute("INSERT INTO facts VALUES ('retired, stream 1', '7')")
            db.execute("INSERT INTO sums VALUES (1, 1, 1, 0, 2, x'010007000000', x'0102')")
        store.beat(BeatRow("", 7, "ok"))
        store.add_audit(
            [AuditRow(7, "anna@here", "devices enrol home"), AuditRow(5, "b@here", "ü")]
        )
    return place


def fill(store: Store) -> None:
    mark = Marked("code 7", 20, 40, 0.25, 1e-9)
    held = HeldCounts(codes((4, 9), group=3), {(1, 1, 3, 0): 2})
    commit(
        store,
        changes(
            {KEY: RECORD, ("other", 256): RECORD._replace(first_slot=None)},
            codes((4, 7), (5, 7), (9, 2), group=3),
            enrolled=frozenset({"home", "other"}),
            presence={(1, 1, 0, 0): 2, (1, 2, 3, 0): 1},
            refused={("late", 1): (1, 96), ("frame", -1): (2, 0)},
            statuses={"home": Status("online", "1.0 ü")},
            released=tuple(arrivals(frame(), later(FIRST + 1, 4))),
            watched={(*KEY, "law"): b"\x00\xff\\kept"},
            marked={KEY: mark},
            held={"other": held},
        ),
    )
    store.add_plan(PlanRow(1, 1, NOW_S, b'{"a": 1}'))
    store.add_plan(PlanRow(1, 2, NOW_S, b"\x00\\."), RevisionRow(1, 9, b"\t\n"))


def everything(reader: Reader) -> list[Any]:
    counts = [reader.counts(1, 0, LAST_BUCKET, group) for group in (None, 0, 3)]
    columns = [(c.epoch, c.bucket, c.code, c.count) for c in counts]
    values = reader.released_values("home-1", 256, FIRST, FIRST + 9)
    return [
        [[part.tolist() for part in four] for four in columns],
        *(reader.presence(1), reader.presence(1, 3), list(reader.records()), reader.devices()),
        *(reader.refused(), reader.plans(), reader.revisions(), reader.marks(), reader.groups()),
        *(reader.last_commit_s(), reader.released_chunks(), values, reader.rolled_up(1)),
        *(reader.retired(), reader.audit()),
        [tuple(map(bytes, row[4:])) + row[:4] for row in reader.sums(1, 0, 99)],
        [[getattr(r, n) if n not in ("codes", "counts") else getattr(r, n).tolist()
          for n in ("device", "stream", "epoch", "group", "bucket", "codes", "counts")]
         for r in reader.held_counts()],
    ]  # fmt: skip


def told(_table: str, _done: int, _size: int) -> None:
    """Say nothing."""


def test_everything_is_there_to_the_bit_and_the_file_is_left_alone_AGG_22(
    path: Path, url: str
) -> None:
    with closing(SqliteStore.open(path)) as source, closing(PostgresStore.open(url)) as target:
        before = everything(source)
        rows = move(source, target, told)
        assert rows["records"] == rows["devices"] == 2
        assert everything(target) == before
        assert everything(source) == before
        assert (len(source.beats()), target.beats()) == (1, [])
        more = changes(enrolled=frozenset({"new"}), released=tuple(arrivals(frame())))
        seen = known(target, [KEY], ["home", "new"], change=more)
        assert (seen.records, seen.device_count) == ({KEY: RECORD}, 2)
        assert seen.retired == {1}
        assert seen.watched == {(*KEY, "law"): b"\x00\xff\\kept"}
        with pytest.raises(StoreError, match="fleet = demo"):
            target.pin({"fleet": "other"})
    with pytest.raises(StoreError, match="was moved to"):
        SqliteStore.open(path)


def test_a_move_cut_off_anywhere_is_made_again_AGG_22(path: Path, url: str) -> None:
    with closing(SqliteStore.open(path)) as source, closing(PostgresStore.open(url)) as target:
        before = everything(source)
        calls: list[str] = []

        def stop(table: str, _done: int, _size: int) -> None:
            calls.append(table)
            if table == "marks":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            move(source, target, stop)
        assert target.plans() == []
        assert list(target.records()) == []
        move(source, target, told)
        assert everything(target) == before


class CutAfter(PostgresStore):
    """Its process ends right after the commit."""

    def in_transaction(self, work: Any, *, together: bool = False) -> Any:
        super().in_transaction(work, together=together)
        raise KeyboardInterrupt


def test_a_move_cut_off_after_its_commit_is_only_ended_AGG_22(path: Path, url: str) -> None:
    PostgresStore.open(url).close()
    with closing(SqliteStore.open(path)) as source:
        before = everything(source)
        with closing(CutAfter(url)) as target, pytest.raises(KeyboardInterrupt):
            move(source, target, told)
    with closing(SqliteStore.open(path)) as source, closing(PostgresStore.open(url)) as target:
        assert move(source, target, told) == {}
        assert everything(target) == before
    with pytest.raises(StoreError, match="was moved to"):
        SqliteStore.open(path)


def test_a_database_that_holds_something_is_refused_AGG_22(path: Path, url: str) -> None:
    with closing(SqliteStore.open(path)) as source, closing(PostgresStore.open(url)) as target:
        commit(target, changes(tally=codes((4, 7))))
        with pytest.raises(StoreError, match=r"is not empty .*name an empty database"):
            move(source, target, told)
    SqliteStore.open(path).close()  # it goes on being the store


def test_the_command_refuses_files_of_other_fleets_and_streams(
    path: Path, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = tmp_path / "old.toml", tmp_path / "new.toml"
    text = CONFIG.format(path=path, intake="")
    moved = text.replace(f'path = "{path}"', f'url = "{url}"')
    old.write_text(text)
    for wrong, key in (
        (moved.replace('fleet = "demo"', 'fleet = "else"'), "fleet"),
        (moved.replace('unit = "W"', 'unit = "Wh"'), "streams"),
        (text, "store.url"),
    ):
        new.write_text(wrong)
        assert main(["migrate", "--from", str(old), "--to", str(new)]) == 2
        assert key in capsys.readouterr().err
    new.write_text(moved)
    assert main(["migrate", "--from", str(new), "--to", str(old)]) == 2
    capsys.readouterr()
    assert main(["migrate", "--from", str(old), "--to", str(new), "--json"]) == 0
    view = json.loads(capsys.readouterr().out)
    assert view["tables"]["records"] == 2
    assert main(["migrate", "--from", str(old), "--to", str(new)]) == 4
    assert "was moved to" in capsys.readouterr().err
