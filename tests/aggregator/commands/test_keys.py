"""What --json prints and what --help names are the same keys, of every command that has both."""

import argparse
import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from aggregator.commands import dossier
from aggregator.console.main import _parser as console_parser
from aggregator.main import ASKING, READING, main, parser
from tests.aggregator.commands.test_query import two_feeders
from tests.aggregator.engines import Engine
from tests.aggregator.operator import Operator, operator
from tests.aggregator.test_wrong_turns import free_port

NEW = (
    "restore",
    "setup",
    "migrate",
    "renew",
    "export",
)  # they need another place than a store in use, or a key
ARGUMENTS = {
    "backup": "{place}/backup",
    "devices enrol": "home-1 --group east",
    "devices revoke": "home-1",
    "devices reinstate": "home-1",
    "devices group": "home-1 --to west",
    "devices quarantine": "home-1",
    "devices release": "home-1",
    "devices import": "{place}/devices.csv",
    "devices erase": "home-1 --yes",
    "devices show": "--device home-1",
    "devices rename": "home-1 home-9",
    "devices invite": "home-2",
    "load-curve": "--group north",
    "plan publish": "--share 1/8",
    "plan repair": "--above 9",
    "query": "--by hour-of-day --range 0:500",
    "streams retire": "power",
    "streams reinstate": "power",
}
DEVICES = '\n[devices]\nhost = "broker.example"\npasswords_file = "{place}/passwords"\n'
KEY = r"(?:\A|[;,.:]\s|\band\s){}(?:\[\])?(?=[,;:.\s]|\Z)"  # not a word within a sentence


def commands(
    parser: argparse.ArgumentParser, name: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:  # noqa: SLF001 — argparse shows them in no other way
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 — same
            for word, below in action.choices.items():
                yield from commands(below, f"{name} {word}".strip())


def helps(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for name, below in commands(parser):
        if "--json" in below.format_usage():
            yield name, below.format_help().partition("\n--json, ")[2]


HELPS = dict(helps(parser()))


def check(name: str, view: dict[str, Any]) -> None:
    """Every key on top is named as one; and so is what the help begins with, which is on top."""
    text = " ".join(HELPS[name].removeprefix("keys:").split())
    unnamed = [key for key in view if not re.search(KEY.format(key), text)]
    first = re.split(r"[;:(]", text, maxsplit=1)[0].split(",")
    unprinted = {key.strip(" []") for key in first} - set(view)
    assert (unnamed, unprinted) == ([], set()), name


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Operator:
    path = tmp_path / "a.db"
    engine = Engine("sqlite", f'path = "{path}"', path, "")
    (tmp_path / "passwords").touch()
    (tmp_path / "devices.csv").write_text("device,group,revoked\nhome-3,east,\n")
    return operator(tmp_path, two_feeders(engine) + DEVICES.format(place=tmp_path), capsys)


@pytest.mark.parametrize("word", ASKING + READING)
def test_a_question_that_loads_its_part_alone_has_the_same_help(word: str) -> None:
    (alone,) = (epilog for name, epilog in helps(parser([word])) if name == word)
    assert alone == HELPS[word]


def test_every_command_has_help_also_without_json() -> None:
    found = dict(commands(parser())) | dict(commands(console_parser(), "console"))
    assert {"run", "devices export", "console tokens make"} <= found.keys()
    for name, below in found.items():
        assert below.format_help().startswith(f"usage: {below.prog} "), name


def test_every_question_is_known_to_be_one() -> None:
    """Else it would load all commands."""
    for words in (ASKING, READING):
        assert {name for name, _ in helps(parser(words[:1]))} == set(words)


def test_what_a_command_prints_is_what_its_help_names(desk: Operator, tmp_path: Path) -> None:
    for name in HELPS:
        if name not in NEW:
            check(name, printed(desk, *name.split(), *arguments(name, tmp_path)))
    check("restore", printed(desk, "restore", str(tmp_path / "backup")))


def test_so_is_what_a_new_fleets_setup_prints(capsys: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as place:  # below one that the broker may enter
        Path(place).chmod(0o755)
        options = ("--rehearsal", "--port", str(free_port()), "--json")
        assert main(["setup", f"{place}/fleet", *options]) == 0
    check("setup", json.loads(capsys.readouterr().out))


def test_every_help_tells_its_keys_and_not_how_they_are_made() -> None:
    assert len(HELPS) > 25
    for name, epilog in HELPS.items():
        assert epilog.startswith("keys:"), name
        assert "Return" not in epilog, name
        assert "half-range" not in epilog, name
    assert "tables: {name: rows copied}" in HELPS["migrate"]


def test_the_dossiers_help_names_all_that_is_promised_of_a_plan(
    desk: Operator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dossier.main(["-c", str(desk.file), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["streams"][0]["plan"]
    with suppress(SystemExit):
        dossier.main(["--help"])
    shown = " ".join(capsys.readouterr().out.split())
    promised = shown.partition(" plan: ")[2].partition(" retention: ")[0]
    assert [key for key in plan if not re.search(rf"\b{key}\b", promised)] == []
    assert "half-range" not in shown
    assert "in multiples of the way from there to θ" in promised


def arguments(name: str, place: Path) -> list[str]:
    return ARGUMENTS.get(name, "").format(place=place).split()


def printed(desk: Operator, *command: str) -> dict[str, Any]:
    at = 2 if command[0] in ("devices", "plan", "streams") else 1
    desk.capsys.readouterr()
    main([*command[:at], "-c", str(desk.file), *command[at:], "--json"])
    said = desk.capsys.readouterr()
    assert said.out, (command, said.err)
    view = json.loads(said.out)
    assert isinstance(view, dict)
    return view
