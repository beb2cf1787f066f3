"""Files of a service are closed to others, whatever the umask."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent.running.health_file import note_health, read_health
from aggregator.store.sqlite.backup import back_up, restore
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.service.files import make_closed


@contextmanager
def umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def modes(directory: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o777])
@pytest.mark.parametrize("mode", [0o640, 0o600])
def test_a_file_is_made_with_its_mode_whatever_the_umask(
    tmp_path: Path, mask: int, mode: int
) -> None:
    with umask(mask):
        make_closed(tmp_path / "f", mode)
    assert modes(tmp_path) == {"f": mode}


@pytest.mark.parametrize(("found", "left"), [(0o644, 0o640), (0o666, 0o660), (0o600, 0o600)])
def test_a_file_that_is_there_keeps_what_is_in_it_and_loses_others_rights(
    tmp_path: Path, found: int, left: int
) -> None:
    path = tmp_path / "f"
    path.write_text("kept")
    path.chmod(found)
    make_closed(path)
    assert (path.read_text(), modes(tmp_path)) == ("kept", {"f": left})


def test_a_file_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        make_closed(tmp_path / "nowhere" / "f")


def test_the_line_about_health_is_closed_to_others(tmp_path: Path) -> None:
    (tmp_path / "s.db.health").touch()
    (tmp_path / "s.db.health").chmod(0o644)  # as earlier versions made it
    with umask(0):
        note_health(tmp_path / "s.db", "ok")
        note_health(tmp_path / "t.db", "ok")
    assert modes(tmp_path) == {"s.db.health": 0o640, "t.db.health": 0o640}
    assert read_health(tmp_path / "s.db") == "ok"


def test_a_store_and_all_beside_it_are_closed_to_others(tmp_path: Path) -> None:
    with umask(0):
        store = SqliteStore.open(tmp_path / "a.db")
        store.pin({"fleet": "demo"})
        made = modes(tmp_path)
        store.close()
        back_up(tmp_path / "a.db", tmp_path / "backup.db")
        restore(tmp_path / "again.db", tmp_path / "backup.db", lambda _reader, since: since)
    assert set(made) == {"a.db", "a.db-wal", "a.db-shm", "a.db.lock"}
    assert set(made.values()) == set(modes(tmp_path).values()) == {0o640}
