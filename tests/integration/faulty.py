"""A file layer that fails as told: `faulty_disk.c`, compiled and put before a program."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("faulty_disk.c")


def build(directory: Path) -> Path:
    """Return the compiled layer; skips where there is no compiler, and fails in CI."""
    compiler = shutil.which("cc")
    if compiler is None:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say("no C compiler: this test needs one; remedy: apt-get install gcc libc6-dev")
    library = directory / "faulty_disk.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return library


def environment(library: Path, files: Path, **told: object) -> dict[str, str]:
    """Return the variables that put the layer before a program's `files` (a path's beginning).

    `told` names what goes wrong, as the layer's source says: kill_at=7 is FAULTY_KILL_AT=7.
    """
    named = {f"FAULTY_{name.upper()}": str(value) for name, value in told.items()}
    return {**os.environ, "LD_PRELOAD": str(library), "FAULTY_FILES": str(files), **named}
