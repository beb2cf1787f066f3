"""README's commands as a newcomer gives them: a clean Debian, a fresh clone, nothing prepared."""

import os
import subprocess
from pathlib import Path

import pytest

from tests import needs

IN_ROOT = Path(__file__).parents[2] / "tools" / "in_root.sh"
DEBIAN = ["bookworm", "trixie"]


def play(*arguments: str) -> "subprocess.CompletedProcess[str]":
    if os.geteuid() != 0:
        pytest.skip("only root may make and enter a root")
    needs.program("debootstrap")
    return subprocess.run(
        ["sh", str(IN_ROOT), *arguments],
        env={**os.environ, "CI": "true"},  # a tool that was not installed fails
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("suite", DEBIAN)
def test_both_commands_of_readme_pass_on_a_clean_debian(suite: str) -> None:
    done = play(suite)
    assert done.returncode == 0, done.stdout[-8000:]
    assert "in_root: make demo: passed" in done.stdout
    assert "in_root: make test: passed" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_command_that_fails_is_told_and_the_next_is_played_all_the_same() -> None:
    done = play(DEBIAN[0], "", "exit 3", "test -e README.md")
    assert done.returncode == 3
    assert "in_root: exit 3: FAILED (3)" in done.stdout
    assert "in_root: test -e README.md: passed" in done.stdout
