"""A file layer that fails as told: `faulty_disk.c`, compiled and put before a program."""

import os
import subprocess
from pathlib import Path

from tests import needs

SOURCE = Path(__file__).with_name("faulty_disk.c")


def build(directory: Path) -> Path:
    """Return the compiled layer."""
    library = directory / "faulty_disk.so"
    command = [needs.program("cc"), "-O1", "-shared", "-fPIC", "-o", str(library)]
    subprocess.run([*command, str(SOURCE), "-ldl"], check=True, timeout=240)
    return library


def environment(library: Path, files: Path, **told: object) -> dict[str, str]:
    """Return the variables that put the layer before a program's `files` (a path's beginning).

    `told` names what goes wrong, as the layer's source says: kill_at=7 is FAULTY_KILL_AT=7.
    """
    named = {f"FAULTY_{name.upper()}": str(value) for name, value in told.items()}
    return {**os.environ, "LD_PRELOAD": str(library), "FAULTY_FILES": str(files), **named}
