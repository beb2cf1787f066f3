"""The archive beside PostgreSQL: a flush is known by its id, whoever counted: AGG-06, AGG-07."""

from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID, uuid4

import pytest

from aggregator.archive.directory import open_spool
from aggregator.archive.files import Compacted, compact
from aggregator.archive.spool import Spool
from aggregator.config import AggregatorConfig, parse_config
from aggregator.errors import StoreHeldError
from aggregator.intake.intake import commit
from aggregator.replay.comparison import tally_of_rows
from aggregator.replay.counts import count_archive
from aggregator.replay.statement import Selection
from aggregator.store.contract import LAST_BUCKET
from aggregator.store.flush_ids import DAY_MS, flush_id
from aggregator.store.postgres.store import PostgresStore
from edge_ldp.service.broker import Message
from tests.aggregator.archive_run import CONFIG, REPORTS, RULES, SLOT_S, frame_of
from tests.integration.cutting_proxy import CuttingProxy
from tests.postgres import PostgresServer


class House:
    """One worker of several, with its spool in the archive that they share."""

    def __init__(self, place: Path, url: str, worker: str) -> None:
        self.archive = place / "archive"
        self._worker = worker
        text = CONFIG.format(place=place).replace(f'path = "{place}/a.db"', f'url = "{url}"')
        self._config: AggregatorConfig = parse_config(text, "a.toml")
        self.open(url)

    def open(self, url: str) -> None:
        self.store = PostgresStore.open(url, alone=False, worker=self._worker, archived=True)
        self.spool = self._spool()

    def die(self) -> None:
        """Leave everything as a killed process does, but for its locks and connections."""
        doubt = self.spool._doubt or "nothing is sealed"  # noqa: SLF001 — closed, it would seal
        self.spool._doubt = doubt  # type: ignore[assignment] # noqa: SLF001 — same
        self.spool.close()
        self.store.close()

    def take(self, *messages: Message, name: UUID | None = None) -> None:
        commit(
            self.store, fleet="demo", messages=messages, rules=RULES, name=name, spool=self.spool
        )

    def take_again(self, *messages: Message) -> None:
        """Take messages as the keeper does: the same flush until the store is there."""
        name = uuid4()
        for _ in range(20):
            try:
                return self.take(*messages, name=name)
            except StoreHeldError:
                continue
        raise AssertionError("the store is held for ever")

    def check(self, reports: int) -> Compacted:
        done = compact(self.archive, {1: SLOT_S}, self.store.committed)
        found = count_archive(self.archive, Selection({1: 4}))
        counted = tally_of_rows({1: self.store.counts(1, 0, LAST_BUCKET)})
        assert found.tally == counted
        assert counted.total == reports
        return done

    def _spool(self) -> Spool:
        made = open_spool(self._config, self.store, self._worker)
        assert made is not None
        return made


# a third of the steps, from the first to beyond the last; each of them with the slow tests
@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("answered", [False, True], ids=["before", "answer-lost"])
def test_cut_at_each_step_of_a_flush_the_archive_holds_what_is_counted_AGG_06_AGG_07(
    tmp_path: Path, server: PostgresServer, stride: int, *, answered: bool
) -> None:
    url = server.new_database()
    with TemporaryDirectory(prefix="cut-") as place:
        proxy = CuttingProxy(Path(place), server.directory)
        house = House(tmp_path, url.replace(str(server.directory), place), "one")
        for at in count():
            proxy.cut_at(stride * at, answered=answered)
            house.take_again(frame_of(at % 3, at // 3 + 1), frame_of(at % 3 + 3, at // 3 + 1))
            if not proxy.was_cut:
                break
            if at % 4 == 0:
                house.check(2 * REPORTS * (at + 1))
        proxy.close()
        assert stride * at > 4
        house.check(2 * REPORTS * (at + 1))
        house.die()


@pytest.mark.parametrize("resolved", ["by the next flush", "after a kill"])
def test_what_another_worker_counted_meanwhile_is_not_archived_twice_AGG_07(
    tmp_path: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch, resolved: str
) -> None:
    """Its frames are settled then, so only the flush's id tells that ours was not committed."""
    url = server.new_database()
    one, two = House(tmp_path, url, "one"), House(tmp_path, url, "two")
    one.take(frame_of(5, 1))

    def fail(*_args: object) -> None:
        raise StoreHeldError("here", "is gone", "wait")

    with monkeypatch.context() as patched:
        patched.setattr("aggregator.store.postgres.store.write", fail)
        with pytest.raises(StoreHeldError):
            one.take(frame_of(1, 1), frame_of(2, 1), frame_of(3, 1))
    two.take(frame_of(1, 1, code=0))  # what the device sent again
    two.take(frame_of(2, 1, code=3))  # and one that says something else
    if resolved == "after a kill":
        one.die()
        one.open(url)
    one.take(frame_of(4, 1))
    assert one.check(4 * REPORTS) == Compacted(4 * REPORTS, 0, 0, two_files(one.archive))
    one.die()
    two.die()


def two_files(archive: Path) -> int:
    return len(list((archive / "reports").glob("day=*/*.parquet")))


def test_a_worker_that_was_away_for_long_still_learns_what_became_of_its_last_flush_AGG_07(
    tmp_path: Path, server: PostgresServer
) -> None:
    """Days of flush ids are forgotten, but not those that a spool's last record names."""
    url = server.new_database()
    one, two = House(tmp_path, url, "one"), House(tmp_path, url, "two")
    one.take(frame_of(1, 1))
    one.take(frame_of(1, 2))
    one.take(frame_of(1, 2))  # a duplicate: nothing is spooled
    one.die()
    two.take(frame_of(2, 1))
    with two.store.reading() as db:
        db.execute("UPDATE flushes SET day = 0, made = now() - interval '1 year', at_s = 1")
    two.take(frame_of(2, 2), name=UUID(bytes=flush_id(DAY_MS, bytes(10))))
    two.store.merge()
    with two.store.reading() as db:
        assert db.execute("SELECT day FROM flushes").fetchall() == [(1,)]
    one.open(url)
    one.check(4 * REPORTS)
    one.die()
    two.die()


def test_each_worker_spools_by_itself(tmp_path: Path, server: PostgresServer) -> None:
    url = server.new_database()
    houses = [House(tmp_path, url, name) for name in ("one", "two", "three")]
    for batch in range(1, 5):
        for at, house in enumerate(houses):
            house.take(frame_of(at, batch), frame_of(at + 3, batch))
    segments = sorted((tmp_path / "archive" / "spool").rglob("*.open"))
    assert [path.parent.name for path in segments] == ["one", "three", "two"]
    houses[0].check(24 * REPORTS)
    houses[1].take(frame_of(1, 5))
    houses[2].check(25 * REPORTS)
    for house in houses:
        house.die()
