"""`check` passes nothing that `run` refuses; and what is told of a state that is gone."""

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agent.main import main
from agent.state.journal import Journal
from agent.state.place import doubt_of_place, file_system
from agent.state.state_file import earlier_states
from tests.agent.samples import config_text
from tests.agent.state.test_journal import fill

KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"


def mode(name: str, bits: int) -> Callable[[Path], None]:
    return lambda home: (home / name).chmod(bits)


def changed(old: str, new: str) -> Callable[[Path], None]:
    def change(home: Path) -> None:
        text = (home / "agent.toml").read_text()
        before = old.format(home=home)
        assert before in text
        (home / "agent.toml").write_text(text.replace(before, new.format(home=home), 1))

    return change


def newer(home: Path) -> None:
    with closing(sqlite3.connect(home / "state" / "s.db")) as db:
        db.execute("PRAGMA user_version = 99")


def put(name: str, text: str, bits: int) -> Callable[[Path], None]:
    def write(home: Path) -> None:
        (home / name).write_text(text)
        (home / name).chmod(bits)

    return write


def both(*changes: Callable[[Path], None]) -> Callable[[Path], None]:
    def change(home: Path) -> None:
        for one in changes:
            one(home)

    return change


def a_directory(home: Path) -> None:
    (home / "state" / "s.db").unlink()
    (home / "state" / "s.db").mkdir()


PASSWORD = changed("[broker]\n", '[broker]\nusername = "u"\npassword_file = "{home}/secret"\n')
TLS = changed("[broker]\n", '[broker]\ntls = true\nca_file = "{home}/ca.pem"\n')
STATE = "/state/s.db"
REFUSED: dict[str, tuple[Callable[[Path], None], int, str]] = {
    "no file": (lambda home: (home / "agent.toml").unlink(), 2, "a readable file"),
    "no TOML": (put("agent.toml", "[", 0o600), 2, "syntax"),
    "an unknown key": (changed("[device]\n", "[device]\nnick = 1\n"), 2, "device.nick"),
    "keys that contradict": (changed("ceiling = 4000", "ceiling = 0"), 2, "more than low"),
    "no password's file": (PASSWORD, 2, "broker.password_file"),
    "a password others read": (both(PASSWORD, put("secret", "x", 0o644)), 2, "chmod 600"),
    "an empty password": (both(PASSWORD, put("secret", "", 0o600)), 2, "a password in the file"),
    "no authority's file": (TLS, 2, "broker.ca_file"),
    "an authority of nonsense": (both(TLS, put("ca.pem", "x", 0o644)), 2, "that can be used"),
    "a key of no form": (
        changed("[policy]\n", '[plans]\nkeys = ["x"]\n[policy]\n'),
        2,
        "plans.keys",
    ),
    "keys that nothing here checks": (
        changed("[policy]\n", f'[plans]\nkeys = ["{KEY}"]\n[policy]\n'),
        2,
        "the extra `sign`",
    ),
    "a place anybody writes to": (mode("state", 0o777), 4, "a directory of its own"),
    "everybody's own place": (mode("state", 0o1777), 4, "a directory of its own"),
    "a state others write to": (mode("state/s.db", 0o660), 4, "chmod go-w"),
    "a state that is a directory": (a_directory, 4, "Is a directory"),
    "a place below a file": (changed(STATE, "/agent.toml/s.db"), 4, "Not a directory"),
    "a place that takes no file": (changed("{home}/state/s.db", "/proc/s.db"), 4, "/proc/s.db"),
    "a state of a newer version": (newer, 4, "its schema is 99"),
    "a port that is a file": (changed("/dev/null", "{home}/agent.toml"), 4, "a regular file"),
    "a port that is a directory": (changed("/dev/null", "/dev"), 4, "is a directory"),
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Give the directory of an agent that ran."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "agent.toml").write_text(config_text(tmp_path / "state" / "s.db"))
    fill(Journal(tmp_path / "state" / "s.db")).close()
    return tmp_path


@pytest.mark.parametrize("fault", REFUSED)
def test_check_refuses_whatever_run_refuses_AGT_32_SVC_05(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    change, code, words = REFUSED[fault]
    change(home)
    monkeypatch.setitem(sys.modules, "edge_ldp.service.verify", None)  # as where it is not there
    said = []
    for command in ("run", "check"):
        assert main([command, "-c", f"{home}/agent.toml"]) == code, command
        said.append(capsys.readouterr().err)
    assert words in said[0]
    assert said[0] == said[1]


def test_what_runs_is_passed_and_nothing_is_made_AGT_32(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "state").chmod(0o750)
    assert main(["check", "-c", f"{home}/agent.toml"]) == 0
    shutil.rmtree(home / "state")
    assert main(["check", "-c", f"{home}/agent.toml"]) == 0
    assert list(home.iterdir()) == [home / "agent.toml"]
    assert "epsilon_per_report" in capsys.readouterr().out


def test_a_place_that_forgets_is_told_AGT_32(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = home / "mountinfo"
    mounts.write_text("1 0 0:1 / / rw - tmpfs none rw\n")
    monkeypatch.setattr("agent.state.place._MOUNTS", mounts)
    assert main(["check", "-c", f"{home}/agent.toml", "--json"]) == 0
    warned = json.loads(capsys.readouterr().out)["warnings"]
    assert any("gone with a reboot (tmpfs)" in one for one in warned), warned
    mounts.write_text("1 0 0:1 / / rw - ext4 none rw\n")
    assert not doubt_of_place(home / "s.db")


MOUNTS = r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:26 / /run rw shared:5 - tmpfs tmpfs rw
31 22 0:27 / /srv/my\040home rw - overlay overlay rw,lowerdir=/a
32 31 8:2 / /srv/my\040home/kept rw master:2 - xfs /dev/sdb rw
33 22 8:2 / /twice rw - ext4 /dev/sdb rw
34 33 0:30 / /twice rw - ramfs none rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/edge-ldp/s.db", "ext4"),
        ("/run/s.db", "tmpfs"),
        ("/running/s.db", "ext4"),
        ("/srv/my home/s.db", "overlay"),
        ("/srv/my home/kept/s.db", "xfs"),
        ("/twice/s.db", "ramfs"),
    ],
)
def test_a_file_system_is_that_of_the_nearest_and_last_mount_AGT_32(path: str, kind: str) -> None:
    assert file_system(path, MOUNTS) == kind


# A state that is gone


def zero(state: Path, at: int, size: int) -> None:
    body = bytearray(state.read_bytes())
    body[at : at + size] = bytes(size)
    state.write_bytes(body)


def junk(state: Path) -> None:
    state.write_bytes(b"x" * 5000)


def purge(state: Path) -> None:
    shutil.rmtree(state.parent)
    state.parent.mkdir(mode=0o700)


GONE: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (lambda state: os.truncate(state, 3000), "damaged"),
    "cut within its header": (lambda state: os.truncate(state, 50), "damaged"),
    "emptied": (lambda state: os.truncate(state, 0), "damaged"),
    "zeroed": (lambda state: zero(state, 0, state.stat().st_size), "damaged"),
    "one page zeroed": (lambda state: zero(state, 1024, 512), "damaged"),
    "junk": (junk, "damaged"),
    "deleted": (Path.unlink, "lost"),
    "never there": (purge, "absent"),
}


@pytest.mark.parametrize("command", ["status", "ledger", "explain", "plans"])
@pytest.mark.parametrize("fault", GONE)
def test_a_state_that_is_gone_is_told_by_every_command_AGT_32(
    home: Path, capsys: pytest.CaptureFixture[str], fault: str, command: str
) -> None:
    change, state = GONE[fault]
    change(home / "state" / "s.db")
    before = sorted((home / "state").iterdir())
    assert main([command, "-c", f"{home}/agent.toml", "--json"]) == 4
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert (told["v"], told["state"]) == (1, state)
    assert told["path"] == f"{home}/state/s.db"
    assert "nothing is known of what was spent" in told["reason"]
    assert said.err.count("\n") == 1
    assert main([command, "-c", f"{home}/agent.toml"]) == 4
    assert capsys.readouterr() == ("", said.err)
    assert sorted((home / "state").iterdir()) == before  # only read


@pytest.mark.parametrize("fault", GONE)
def test_check_warns_of_a_state_that_is_gone_and_the_agent_goes_on_AGT_32(
    home: Path, capsys: pytest.CaptureFixture[str], fault: str
) -> None:
    change, state = GONE[fault]
    change(home / "state" / "s.db")
    assert main(["check", "-c", f"{home}/agent.toml", "--json"]) == 0
    warned = json.loads(capsys.readouterr().out)["warnings"]
    assert any(f"the state is {state}" in one for one in warned) == (state != "absent")


@pytest.mark.parametrize(("fault", "state"), [("cut", "damaged"), ("deleted", "lost")])
def test_a_state_set_aside_is_told_for_as_long_as_it_lies_there_AGT_32(
    home: Path, capsys: pytest.CaptureFixture[str], fault: str, state: str
) -> None:
    path = home / "state" / "s.db"
    GONE[fault][0](path)
    fill(Journal(path)).close()  # the agent began anew
    aside = path.with_name(f"s.db.{state}-1")
    assert [found[:2] for found in earlier_states(path)] == [(aside, state == "lost")]
    for command in ("status", "ledger", "explain"):
        assert main([command, "-c", f"{home}/agent.toml", "--json"]) == 0
        (told,) = json.loads(capsys.readouterr().out)["earlier_states"]
        assert (told["state"], told["path"]) == (state, str(aside))
        assert main([command, "-c", f"{home}/agent.toml"]) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "what it spent is in no figure here." in said
        assert f"An earlier state was {state}" in said
    aside.unlink()
    assert main(["ledger", "-c", f"{home}/agent.toml", "--json"]) == 0
    assert "earlier_states" not in json.loads(capsys.readouterr().out)


def test_a_reader_believes_what_a_running_agent_commits_meanwhile_AGT_32(home: Path) -> None:
    path = home / "state" / "s.db"
    with closing(Journal(path)) as running:
        for _ in range(30):
            running.probe()
            with closing(Journal(path, create=False)) as reader:
                assert reader.ledger() == running.ledger()
