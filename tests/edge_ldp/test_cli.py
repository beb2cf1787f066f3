"""The command hands over to the part that serves, and says what is missing in one sentence."""

import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from edge_ldp import cli


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(f"  {name} " in shown for name in cli.COMMANDS)


def test_no_command_shows_the_usage_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == cli.EXIT_USAGE
    assert "usage: edge-ldp" in capsys.readouterr().out


def test_an_unknown_command_fails_and_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fly"]) == cli.EXIT_USAGE
    assert "no command 'fly'" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"edge-ldp {version('edge-ldp')}\n"


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "edge_ldp.cli", command, "--help"],
        capture_output=True,
        check=False,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert f"edge-ldp {command}" in done.stdout
    assert not re.search(r"wiring|Return", done.stdout)  # of what the user gets, not of our code


@pytest.mark.parametrize(
    "command", ["check", "status", "query", "theta", "load-curve", "plan show", "devices list"]
)
def test_the_aggregators_commands_say_what_their_json_holds(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["aggregator", *command.split(), "--help"])
    shown = capsys.readouterr().out
    assert "\n--json, keys:\n  " in shown
    assert "Return" not in shown


WITHOUT = """
import sys
sys.modules.update(dict.fromkeys(("msgspec", "numpy", "paho", "serial", "scipy"), None))
from edge_ldp.cli import main
sys.exit(main([*sys.argv[1:], "--help"]))
"""


def test_certify_needs_no_extra() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            WITHOUT.replace('"--help"', '"hybrid", "--epsilon", "1"'),
            "certify",
        ],
        capture_output=True,
        check=False,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "all 11 claims hold" in done.stdout


@pytest.mark.parametrize(
    ("command", "needs"),
    [
        ("agent", "edge-ldp-agent"),
        ("aggregator", "edge-ldp-aggregator"),
        ("simulate homes", "edge-ldp-demo"),
        ("simulate fleet", "edge-ldp-demo"),
        ("forecast", "edge-ldp[evaluate]"),
    ],
)
def test_a_missing_package_gives_a_sentence_not_a_traceback(command: str, needs: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *command.split()],
        capture_output=True,
        check=False,
        text=True,
        timeout=240,
    )
    assert done.returncode == cli.EXIT_USAGE
    assert done.stderr.startswith(f"edge-ldp {command} needs the package ")
    assert f"pip install '{needs}'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_part_that_is_not_installed_is_named_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tmp_path, "[edge_ldp.other]\nagent = nowhere:main\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "gone")])
    assert cli.main(["agent", "run"]) == cli.EXIT_USAGE
    shown = capsys.readouterr().err
    assert shown == (
        "edge-ldp agent comes with edge-ldp-agent, which is not installed: pip install"
        " edge-ldp-agent (from a clone: pip install . ./agent)\n"
    )


def test_the_first_entry_point_on_the_path_serves_whatever_else_its_file_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    plant(
        first, "[console_scripts]\nagent = a:main\n\n[edge_ldp.commands]\nagent = one.main:main\n"
    )
    plant(second, "[edge_ldp.commands]\n# ours\nagent=two.main:main\nreplay = two.replay:main\n")
    monkeypatch.setattr(sys, "path", [str(first), str(second)])
    assert cli.serving("agent") == "one.main"
    assert cli.serving("replay") == "two.replay"
    assert not cli.serving("demo")


def test_a_file_of_somebody_else_that_is_no_text_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken-1.0.dist-info"
    broken.mkdir()
    (broken / "entry_points.txt").write_bytes(b"\xff[\x00")
    plant(tmp_path, "[edge_ldp.commands]\nagent = one.main:main\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert cli.serving("agent") == "one.main"


def plant(folder: Path, entry_points: str) -> None:
    place = folder / "some-1.0.dist-info"
    place.mkdir(parents=True)
    (place / "entry_points.txt").write_text(entry_points)
