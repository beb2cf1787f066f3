"""A state that moves: one agent goes on with it, whatever breaks in between."""

import errno
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent.errors import StateGoneError, StorageError
from agent.state.journal import Journal
from agent.state.moving import is_movable, move_state
from tests.agent.state.test_journal import content, fill


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Give the state of an agent that ran."""
    path = tmp_path / "trial" / "s.db"
    fill(Journal(path)).close()
    return path


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "service" / "home.db"


def held(path: Path) -> Any:
    with closing(Journal(path, create=False)) as journal:
        return content(journal)


def goes_on(source: Path, target: Path, before: Any) -> None:
    """Expect the target to be what the source was, for its agent too, and the source to be gone."""
    assert held(target) == before
    with closing(Journal(target)) as journal:
        assert journal.set_aside is None
        assert content(journal) == before
    assert not source.exists()
    assert sorted(path.name for path in source.parent.iterdir()) == ["s.db.lock"]
    assert target.stat().st_mode & 0o077 == 0


def test_a_state_moves_with_all_that_it_holds_AGT_31(source: Path, target: Path) -> None:
    before = held(source)
    assert is_movable(source, target)
    move_state(source, target)
    goes_on(source, target, before)
    move_state(source, target)  # a second call finds it moved
    assert held(target) == before


def test_a_state_moves_to_another_file_system_AGT_31(
    source: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def within(old: Any, new: Any, **more: Any) -> None:
        if Path(old).parent != Path(new).parent:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        rename(old, new, **more)

    before = held(source)
    monkeypatch.setattr(os, "rename", within)
    move_state(source, target)
    goes_on(source, target, before)


def test_a_curators_secret_goes_along_and_stays_nowhere_else_AGT_31(
    source: Path, target: Path
) -> None:
    (source.parent / "s.db-running").write_bytes(b"secret" * 100)
    move_state(source, target)
    assert (target.parent / "home.db-running").read_bytes() == b"secret" * 100
    assert not (source.parent / "s.db-running").exists()


def test_what_an_agent_has_open_does_not_move_AGT_31(source: Path, target: Path) -> None:
    with closing(Journal(source)) as running:
        before = content(running)
        with pytest.raises(StorageError, match=f"process {os.getpid()} holds it"):
            move_state(source, target)
        assert content(running) == before
    assert not target.exists()
    move_state(source, target)


def test_what_somebody_reads_moves_when_it_is_read_AGT_31(source: Path, target: Path) -> None:
    before = held(source)
    with closing(Journal(source)) as one:
        one.probe()
        reader = Journal(source, create=False)
        reader.ledger()
    with closing(reader):  # the reader keeps the log from being emptied, or not
        try:
            move_state(source, target)
        except StorageError as exc:
            assert exc.reason == "it is being read"  # noqa: PT017 (either may be)
    move_state(source, target)
    assert held(target)[1:] == before[1:]


def test_two_states_of_one_device_are_not_joined_AGT_31(source: Path, target: Path) -> None:
    fill(Journal(target)).close()
    before = held(source), held(target)
    for call in (is_movable, move_state):
        with pytest.raises(StorageError, match="another state is there"):
            call(source, target)
    assert (held(source), held(target)) == before


def test_a_move_that_was_cut_off_goes_on_AGT_31(source: Path, target: Path) -> None:
    before = held(source)
    source.rename(source.with_name("s.db.moving"))
    with pytest.raises(StateGoneError):  # whoever starts meanwhile finds none
        Journal(source, create=False)
    assert is_movable(source, target)
    move_state(source, target)
    goes_on(source, target, before)


def test_a_move_that_was_cut_off_after_it_arrived_is_done_AGT_31(
    source: Path, target: Path
) -> None:
    before, body = held(source), source.read_bytes()
    move_state(source, target)
    source.with_name("s.db.moving").write_bytes(body)
    with pytest.raises(StorageError, match="another state is there"):
        move_state(source, target)
    assert held(target) == before


@pytest.mark.parametrize(("gone", "state"), [("cut", "damaged"), ("deleted", "lost")])
def test_nothing_goes_on_from_a_state_that_is_gone_AGT_31(
    source: Path, target: Path, gone: str, state: str
) -> None:
    if gone == "cut":
        os.truncate(source, 3000)
    else:
        source.unlink()
    with pytest.raises(StateGoneError) as told:
        is_movable(source, target)
    assert told.value.state == state
    assert not target.parent.exists()


def test_a_trial_that_never_ran_has_nothing_to_move_AGT_31(tmp_path: Path, target: Path) -> None:
    assert not is_movable(tmp_path / "s.db", target)
    assert not is_movable(target, target)
    move_state(tmp_path / "s.db", target)
    assert not target.parent.exists()


def test_a_place_that_no_agent_may_use_is_none_to_move_to_AGT_31(
    source: Path, target: Path
) -> None:
    target.parent.mkdir()
    target.parent.chmod(0o1777)
    before = held(source)
    with pytest.raises(StorageError, match="others may write to"):
        move_state(source, target)
    assert held(source) == before
