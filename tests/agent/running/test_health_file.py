"""The line that says how the agent is: whole, of a living process, gone with it."""

import os
import subprocess
import sys
from pathlib import Path

from agent.running.health_file import forget_health, note_health, read_health


def test_what_was_noted_is_read_until_it_is_forgotten(tmp_path: Path) -> None:
    state = tmp_path / "home.db"
    assert read_health(state) == "stopped"
    note_health(state, "ok")
    note_health(state, "degraded: link down, port gone")
    assert read_health(state) == "degraded: link down, port gone"
    forget_health(state)
    forget_health(state)
    assert read_health(state) == "stopped"
    assert not list(tmp_path.iterdir())


def test_an_agent_that_was_killed_is_stopped(tmp_path: Path) -> None:
    state = tmp_path / "home.db"
    done = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    note_health(state, "ok")
    beside = tmp_path / "home.db.health"
    beside.write_text(beside.read_text().replace(str(os.getpid()), done.stdout.decode().strip()))
    assert read_health(state) == "stopped"


def test_an_agent_whose_number_another_process_has_now_is_stopped(tmp_path: Path) -> None:
    state = tmp_path / "home.db"
    note_health(state, "ok")
    assert read_health(state) == "ok"
    beside = tmp_path / "home.db.health"
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:  # until its input ends
        beside.write_text(beside.read_text().replace(str(os.getpid()), str(other.pid), 1))
        assert read_health(state) == "stopped"


def test_an_agent_that_ended_while_nobody_looked_is_stopped(tmp_path: Path) -> None:
    """Its number is still taken: without an init that reaps it, for as long as the machine runs."""
    state = tmp_path / "home.db"
    words = (
        "import sys; from pathlib import Path; from agent.running.health_file import note_health;"
    )
    words += "note_health(Path(sys.argv[1]), 'ok'); print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", words, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"\n"
        assert read_health(state) == "ok"
        agent.kill()
        os.waitid(os.P_PID, agent.pid, os.WEXITED | os.WNOWAIT)  # ended, and left as it is
        assert read_health(state) == "stopped"


def test_a_line_of_an_older_version_says_stopped(tmp_path: Path) -> None:
    (tmp_path / "home.db.health").write_text(f"{os.getpid()} ok\n")
    assert read_health(tmp_path / "home.db") == "stopped"


def test_a_line_that_is_none_says_stopped(tmp_path: Path) -> None:
    (tmp_path / "home.db.health").write_text("")
    assert read_health(tmp_path / "home.db") == "stopped"


def test_where_nothing_can_be_written_nothing_fails(tmp_path: Path) -> None:
    note_health(tmp_path / "gone" / "home.db", "ok")
    forget_health(tmp_path / "gone" / "home.db")
