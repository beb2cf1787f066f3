"""The log of changes: what operators did, by whom, in the store itself, whatever becomes of it."""

import argparse
import getpass
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from aggregator.main import main, parser
from aggregator.plans import planner
from aggregator.store.contract import PlanRow
from aggregator.store.opening import open_session
from aggregator.store.rows import AuditRow
from tests.aggregator.engines import Engine
from tests.aggregator.home_traffic import NOW_S
from tests.aggregator.operator import Operator, operator
from tests.postgres import PostgresServer


@pytest.fixture
def desk(engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Operator:
    with closing(engine.open()) as store:
        plan = planner.first_plan("demo", engine.config().streams[0], epoch=1, now_s=int(NOW_S))
        store.add_plan(PlanRow(1, 1, plan.issued_s, plan.to_json()))
    return operator(tmp_path, engine.text(), capsys)


def commands(desk: Operator) -> list[str]:
    found = desk.json("audit")["audit"]
    return [re.sub(r" -c \S+", "", row["command"]) for row in found]


def test_every_command_that_changes_the_store_is_logged_with_who_typed_it(desk: Operator) -> None:
    lines = [
        "devices enrol home-1 home-2",
        "devices group home-1 --to feeder-1",
        "devices quarantine home-1",
        "devices release home-1",
        "devices revoke home-2",
        "plan publish --theta 400 --hold",
        "plan release",
        "streams retire power",
    ]
    for line in (*lines, "status", "devices list"):
        desk.text(*line.split())
    assert commands(desk) == lines
    view = desk.json("audit")
    assert view["fleet"] == "demo"
    assert all(getpass.getuser() in row["who"] for row in view["audit"])
    assert all("@" in row["who"] for row in view["audit"])
    told = desk.text("audit")
    assert told.count("\n") == 8
    assert "devices revoke" in told


def test_a_command_that_is_refused_is_not_logged(desk: Operator) -> None:
    desk.text("devices", "revoke", "nobody", code=2)
    desk.text("plan", "publish", "--theta", "1000000", code=2)
    assert commands(desk) == []
    assert desk.text("audit") == "nothing was changed by a command\n"


def test_a_change_and_its_line_stand_or_fall_together(engine: Engine, desk: Operator) -> None:
    row = AuditRow(5, "anna@here", "devices enrol home-1")
    with closing(open_session(engine.config(), "test.toml")) as session:
        session.orders = [row]
        with pytest.raises(ZeroDivisionError), session.transaction():
            session.enrol(["home-1"], 1 // 0)
        assert (session.audit(), session.devices()) == ([], [])
        for name in ("home-1", "home-2"):  # one line for one command, however many transactions
            with session.transaction():
                session.enrol([name], 5)
        assert session.audit() == [row]
        assert [one.device for one in session.devices()] == ["home-1", "home-2"]
    assert commands(desk) == ["devices enrol home-1"]


def test_the_log_can_be_asked_for_from_a_time_on(engine: Engine, desk: Operator) -> None:
    rows = [AuditRow(at_s, "anna@here", f"devices enrol home-{at_s}") for at_s in (9, 5, 7)]
    with closing(engine.open()) as store:
        store.add_audit(rows[:2])
        store.add_audit(rows[2:])
        assert store.audit() == rows  # as it was done, whatever the clock said
        assert store.audit(7) == [rows[0], rows[2]]
    assert [
        row["at_s"] for row in desk.json("audit", "--since", "1970-01-01T00:00:07")["audit"]
    ] == [9, 7]


def test_a_long_command_is_cut_and_nothing_in_it_reaches_a_terminal(desk: Operator) -> None:
    desk.text("devices", "enrol", *(f"home-{at}" for at in range(1000)))
    (said,) = commands(desk)
    assert len(said) < 1100
    assert said.endswith("characters)")
    (desk.file.parent / "\x1b.csv").write_text("device\nhome-9\n")
    desk.text("devices", "import", str(desk.file.parent / "\x1b.csv"))
    assert "?.csv" in commands(desk)[-1]


def test_what_was_ordered_since_a_backup_stays_in_the_log_after_it_is_restored_AGG_20(
    desk: Operator, tmp_path: Path
) -> None:
    file = str(tmp_path / "backup")
    desk.text("devices", "enrol", "home-1")
    desk.text("backup", file)
    desk.text("devices", "revoke", "home-1")
    desk.text("restore", file)
    told = [command.partition(" /")[0] for command in commands(desk)]
    assert told == ["devices enrol home-1", "devices revoke home-1", "restore"]
    assert desk.json("devices", "list")["devices"][0]["revoked_s"] is None


def test_the_log_moves_with_the_store_AGG_22(
    server: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, url = tmp_path / "a.db", server.new_database()
    old = Engine("sqlite", f'path = "{path}"', path, "")
    old.open().close()
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    desk = operator(tmp_path / "old", old.text(), capsys)
    desk.text("devices", "enrol", "home-1")
    new = operator(tmp_path / "new", Engine("postgres", f'url = "{url}"', path, url).text(), capsys)
    move = ["migrate", "--from", str(desk.file), "--to", str(new.file)]
    assert main(move) == 0
    told = [command.partition(" -")[0] for command in commands(new)]
    assert told == ["devices enrol home-1", "migrate"]
    new.text("devices", "revoke", "home-1")
    assert len(commands(new)) == 3


def parsers(found: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield found
    for action in found._actions:  # noqa: SLF001 — argparse shows them in no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 — same
            for below in action.choices.values():
                yield from parsers(below)


def test_no_option_takes_a_secret_so_that_a_command_may_be_logged() -> None:
    every: list[Any] = [action for one in parsers(parser()) for action in one._actions]  # noqa: SLF001 — same
    named = {name for action in every for name in (*action.option_strings, action.dest)}
    assert len(named) > 40
    told = "pass|secret|token|(?<!mon|ca[_-])(?<!plan[_-])key"  # of these two, a key's file
    assert not [name for name in named if re.search(told, name)]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True)
@pytest.mark.parametrize("command", ["status", "audit"])
def test_times_of_a_rehearsal_are_said_to_be_by_its_clock(desk: Operator, command: str) -> None:
    note = "all times here are by the rehearsal's clock ([clock])\n"
    assert "clock" not in desk.text(command)
    with desk.file.open("a") as file:
        file.write("\n[clock]\norigin_s = 1_700_000_000\nstarted_s = 1\nrate = 17280.0\n")
    assert desk.text(command).startswith(note)
    assert "clock" not in desk.text(command, "--json")
