"""The processes of the demo: started together, watched, and ended together by their handles."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

TERM_S = 30.0  # the farewell of an agent takes 3 at most, and a busy machine its time
TAIL_BYTES = 2000
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ChildDiedError(Exception):
    """A process ended that should not have: its name, exit code and the end of its log."""

    def __init__(self, name: str, code: int, tail: str) -> None:
        super().__init__(f"{name} ended early with exit code {code}; its last words:\n{tail}")
        self.name = name
        self.code = code
        self.tail = tail


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process is and has used: "running", or "done" when it ended as it should."""

    name: str
    pid: int
    state: str
    cpu_s: float
    rss_mib: float


@dataclass(slots=True)
class Child:
    """One process; `stdout` and `stderr` are files in its directory."""

    name: str
    process: subprocess.Popen[bytes]
    stdout: Path
    stderr: Path
    may_end: bool
    usage: Usage


class Crew:
    """All processes; a context manager that ends what still runs, last started first.

    `term_s`: real seconds that a process has to end in order.
    """

    def __init__(self, term_s: float = TERM_S) -> None:
        self._term_s = term_s
        self._children: dict[str, Child] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(*reversed(self._children))

    def start(
        self, name: str, command: Sequence[str], directory: Path, *, may_end: bool = False
    ) -> Child:
        """Start a process in its own directory and session (Ctrl-C reaches only the demo)."""
        directory.mkdir(exist_ok=True, mode=0o700)
        stdout, stderr = directory / f"{name}.out", directory / f"{name}.err"
        with stdout.open("wb") as out, stderr.open("wb") as err:
            process = subprocess.Popen(  # noqa: S603 (our own commands)
                command,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        usage = Usage(name, process.pid, "running", 0.0, 0.0)
        child = Child(name, process, stdout, stderr, may_end, usage)
        self._children[name] = child
        return child

    def check(self) -> None:
        """Raise ChildDiedError for the first process that ended and should not have."""
        for child in self._children.values():
            code = child.process.poll()
            if code is not None and not (child.may_end and code == 0):
                raise ChildDiedError(child.name, code, tail(child))

    def ended(self, *names: str) -> bool:
        """Say whether these processes have all ended."""
        return all(self._children[name].process.poll() is not None for name in names)

    def stop(self, *names: str) -> None:
        """End processes by SIGTERM, all at once, and by SIGKILL those that do not in time."""
        running = [self._children[name] for name in names if not self.ended(name)]
        for child in running:
            self._look(child)
            child.may_end = True
            child.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + self._term_s
        for child in running:
            try:
                child.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()

    def usages(self) -> list[Usage]:
        """Return what every process has used; of one that ended, what was last seen."""
        for child in self._children.values():
            self._look(child)
        return [child.usage for child in self._children.values()]

    @staticmethod
    def _look(child: Child) -> None:
        old = child.usage
        if child.process.poll() is not None:
            child.usage = Usage(old.name, old.pid, "done", old.cpu_s, old.rss_mib)
            return
        cpu_s, rss_mib = _measure(child.process.pid) or (old.cpu_s, old.rss_mib)
        child.usage = Usage(old.name, old.pid, "running", cpu_s, rss_mib)


def tail(child: Child) -> str:
    """Return the end of what a process wrote, errors last."""
    texts = (path.read_bytes()[-TAIL_BYTES:] for path in (child.stdout, child.stderr))
    return b"".join(texts).decode(errors="replace").strip() or "(nothing)"


def _measure(pid: int) -> tuple[float, float] | None:
    """Return (CPU seconds, resident MiB) of a process from /proc, or None where there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 (no pathlib in a 4 Hz loop)
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    ticks = int(fields[11]) + int(fields[12])
    return ticks / _TICKS_PER_S, int(fields[21]) * _PAGE_BYTES / (1 << 20)
