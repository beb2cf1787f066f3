"""A Pi's Python on this machine: an emulator, and the files of a Debian for that processor."""

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.needs import missing, program
from tests.processes import run_told

ROOT = Path(__file__).parents[2]
MACHINES = {  # the oldest system of 32 bits that we serve, whose time_t has 32; the newest of 64
    "armhf": ("bookworm", "qemu-arm", "cortex-a7"),  # a Pi 2's cores, and
    "arm64": ("trixie", "qemu-aarch64", "cortex-a72"),  # a Pi 4's: newer ones sign each return
}


@dataclass(frozen=True, slots=True)
class Machine:
    """The start of a command that runs another processor's Python, and what it is to find."""

    arch: str
    python: tuple[str, ...]
    environment: dict[str, str]

    def run(self, *arguments: str, seconds: float = 300) -> str:
        """Return what a Python command prints; it must succeed."""
        done = run_told([*self.python, *arguments], timeout=seconds, env=self.environment)
        assert done.returncode == 0, done.stderr
        return done.stdout


def machine(arch: str) -> Machine:
    """Return the machine of that processor; ends the test where none can be had."""
    suite, emulator, cores = MACHINES[arch]
    emulator = shutil.which(f"{emulator}-static") or program(emulator)
    done = run_told(
        ["sh", str(ROOT / "tools" / "foreign_python.sh"), suite, arch],
        timeout=600,
        env=os.environ | {"PYTHON": sys.executable},
    )
    if done.returncode != 0:
        missing(f"Python for {arch} ({done.stderr[-300:].strip()})", "a Debian mirror within reach")
    root = Path(done.stdout.strip())
    python = (emulator, "-cpu", cores, "-L", str(root), str(root / "usr" / "bin" / "python3"))
    search = os.pathsep.join((str(ROOT), str(root / "site")))
    found = {"PYTHONPATH": search, "PYTHONPYCACHEPREFIX": str(root / "compiled")}
    return Machine(arch, python, os.environ | found)
