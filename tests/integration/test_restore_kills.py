"""kill -9 before and after each call of a restoration that changes a file: AGG-20.

What is left is the old store or the new one, whole; doing it again ends well, and what was there
before is kept.
"""

import io
import json
import shutil
from collections.abc import Iterator
from contextlib import closing, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aggregator.main import main
from aggregator.store.sqlite.reader import SqliteReader
from aggregator.store.sqlite.store import SqliteStore
from tests.aggregator.engines import Engine
from tests.aggregator.home_traffic import seen
from tests.aggregator.store.test_backup import begun, day, renew
from tests.integration.aggregator_forks import Forks
from tests.integration.faulty import build, environment

NOTHING = "nothing"


class Restoring:
    """Restorations that die at a call each, forked from one process, on copies of one folder."""

    def __init__(self, place: Path) -> None:
        self.place, self.begin = place / "now", place / "begin"
        self.begin.mkdir()
        self.engine = Engine("sqlite", f'path = "{self.place}/a.db"', self.place / "a.db", "")
        (place / "a.toml").write_text(self.engine.text())
        self._command = ("restore", "-c", str(place / "a.toml"), str(self.place / "backup"))
        layer = environment(build(place), self.place, begun=1)
        words = (self._command[0], self._command[3])
        self._forks = Forks(place / "a.toml", layer, *words, log=place / "forks.log")

    def killed(self, call: int) -> int:
        """Restore until it is killed at a call (0: at none); return how it ended."""
        shutil.rmtree(self.place, ignore_errors=True)
        shutil.copytree(self.begin, self.place)
        return self._forks.run(call)

    def again(self) -> dict[str, Any]:
        printed = io.StringIO()
        with redirect_stdout(printed):
            assert main([*self._command, "--json"]) == 0
        found: dict[str, Any] = json.loads(printed.getvalue())
        return found

    def close(self) -> None:
        self._forks.close()


@dataclass(frozen=True)
class Expected:
    """What a store may show, as `shown` returns it."""

    old: object
    new: object


def shown(path: Path) -> object:
    """Return all that a store holds: counts, records, plans; NOTHING where there is none yet."""
    if not path.exists() or not path.stat().st_size:
        return NOTHING
    with closing(SqliteReader.open(path)) as reader:
        return seen(reader), [row.epoch for row in reader.plans()]


@pytest.fixture
def restoring(tmp_path: Path) -> Iterator[Restoring]:
    made = Restoring(tmp_path)
    yield made
    made.close()


def prepare(restoring: Restoring, *, lost: bool = False) -> Expected:
    """Make a store of two days, or none, and a backup of the first."""
    restoring.place.mkdir()
    begun(restoring.engine).close()
    shutil.copy(restoring.engine.path, restoring.begin / "backup")
    store = restoring.engine.open()
    day(store, 2)
    renew(store, 2)
    store.close()
    if not lost:
        shutil.copy(restoring.engine.path, restoring.begin / "a.db")
    assert restoring.killed(0) == 0
    old = NOTHING if lost else shown(restoring.begin / "a.db")
    return Expected(old, shown(restoring.engine.path))


def killed_at_every(restoring: Restoring, step: int, expected: Expected) -> tuple[int, set[str]]:
    """Kill at every call; return how many there are, and what was found after them."""
    call, found = 1, set()
    while restoring.killed(call) == -9:
        left = shown(restoring.engine.path)
        assert left in (expected.old, expected.new)
        is_new = left == expected.new
        found.add("new" if is_new else "old")
        kept = [path for path in restoring.place.glob("a.db.replaced*") if ".new" not in path.name]
        assert all(shown(path) == expected.old for path in kept)
        told = restoring.again()
        epoch = 1002 + 1000 * (is_new and expected.old != NOTHING)
        if expected.old == NOTHING:
            epoch = 1001 + 1000 * is_new
        assert [one["epoch"] for one in told["plans"]] == [epoch]
        after = shown(restoring.engine.path)
        assert isinstance(after, tuple)
        assert isinstance(expected.new, tuple)
        assert after[0] == expected.new[0]
        if told["replaced"] is not None:
            kept_now = shown(restoring.place / told["replaced"].rpartition("/")[2])
            assert kept_now == left
        names = {path.name for path in restoring.place.iterdir()}
        assert not {name for name in names if "restoring" in name or ".new" in name}
        with closing(SqliteStore.open(restoring.engine.path)) as store:
            day(store, 2)  # the service takes it and goes on
        call += step
    return call - 1, found


def test_a_restoration_killed_anywhere_leaves_the_old_store_or_the_new_one_AGG_20(
    restoring: Restoring,
) -> None:
    calls, found = killed_at_every(restoring, 13, prepare(restoring))
    assert calls > 50
    assert found == {"old", "new"}


def test_a_lost_store_restored_and_killed_anywhere_is_restored_when_it_is_done_again_AGG_20(
    restoring: Restoring,
) -> None:
    calls, found = killed_at_every(restoring, 13, prepare(restoring, lost=True))
    assert calls > 50
    assert "old" in found  # it is renamed in the last call but one or two


@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True])
def test_a_restoration_killed_before_and_after_every_call_AGG_20(
    restoring: Restoring, *, lost: bool
) -> None:
    calls, found = killed_at_every(restoring, 1, prepare(restoring, lost=lost))
    assert calls > 50
    assert found == {"old", "new"}
