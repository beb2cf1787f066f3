"""The command hands over to the part that serves, and says what is missing in one sentence."""

import subprocess
import sys
from importlib.metadata import version

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
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert f"edge-ldp {command}" in done.stdout


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
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "all 11 claims hold" in done.stdout


@pytest.mark.parametrize(
    ("command", "extra"),
    [
        ("agent", "agent"),
        ("aggregator", "aggregator"),
        ("simulate homes", "aggregator"),
        ("simulate fleet", "demo"),
    ],
)
def test_a_missing_extra_gives_a_sentence_not_a_traceback(command: str, extra: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *command.split()],
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    assert done.returncode == cli.EXIT_USAGE
    assert done.stderr.startswith(f"edge-ldp {command} needs the package ")
    assert f"pip install 'edge-ldp[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr
