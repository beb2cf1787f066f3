"""Build the C kernel's runner and run scripts with it; its commands stand in runner/main.c."""

import fcntl
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from tests import needs

SOURCES = Path(__file__).parents[3] / "firmware_stubs" / "c"
PLACES = ("host", "sanitize", "cortex-m")
QEMU = shlex.split(
    "qemu-system-arm -M mps2-an385 -display none -monitor none -serial none"
    " -chardev stdio,id=console -kernel"
)


def make(target: str, build: Path) -> str:
    """Return what `make target` printed; everything it makes goes to `build`."""
    needs.program("make")
    needs.program("arm-none-eabi-gcc" if target in ("cortex-m", "size") else "cc")
    command = ["make", "--silent", "-C", str(SOURCES), target, f"BUILD={build}"]
    with (build / "lock").open("w") as lock:  # of several workers the others find it made
        fcntl.flock(lock, fcntl.LOCK_EX)
        return done(command, timeout=240).stdout


def done(command: Sequence[str], timeout: int = 60) -> "subprocess.CompletedProcess[str]":
    """Return the finished run of a command, which must succeed."""
    ran = subprocess.run(
        command,
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=timeout,
    )
    assert ran.returncode == 0, (command, ran.stdout[-2000:], ran.stderr[-4000:])
    return ran


@dataclass(frozen=True)
class Script:
    """Commands for the runner and the line that each must print."""

    commands: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def add(self, command: str, expected: object) -> None:
        self.commands.append(command)
        self.expected.append(str(expected))

    def entropy(self, given: bytes) -> None:
        """Say what the source gives from here on; after that it fails."""
        self.add(f"entropy {given.hex() or '-'}", len(given))


class Runner:
    def __init__(self, place: str, build: Path, scripts: Path) -> None:
        if place == "cortex-m":
            needs.program("qemu-system-arm")
        make(place, build)
        self.place = place
        self.build = build
        self._folder = scripts
        self._scripts = count()

    def __call__(self, commands: Sequence[str]) -> list[str]:
        """Return the line that each command printed."""
        script = self._folder / f"script-{next(self._scripts)}.txt"
        script.write_text("".join(f"{command}\n" for command in commands))
        lines = done(self._command(script)).stdout.splitlines()
        assert len(lines) == len(commands)
        return lines

    def differences(self, script: Script) -> list[tuple[str, str, str]]:
        """Return (command, printed, expected) of each command that printed something else."""
        printed = self(script.commands)
        rows = zip(script.commands, printed, script.expected, strict=True)
        return [row for row in rows if row[1] != row[2]]

    def _command(self, script: Path) -> list[str]:
        if self.place != "cortex-m":
            return [str(self.build / self.place / "run"), str(script)]
        # by semihosting the board reads the host's file and prints to the host's output
        there = f"enable=on,target=native,chardev=console,arg=run,arg={script}"
        return [*QEMU, str(self.build / self.place / "run.elf"), "-semihosting-config", there]
