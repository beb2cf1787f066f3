"""Commands of the product in processes forked from one that has imported them already.

Each is a process of its own, told and killed as any other: only what importing takes is saved, half
a second. A test of memory, open files, arguments or importing starts a Python instead.
"""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from edge_ldp.cli import main

_FROM_ONE = get_context("forkserver")
_FROM_ONE.set_forkserver_preload(
    ["agent.main", "aggregator.console.main", "aggregator.running.process", "tests.forked"]
)
Values = dict[tuple[str, str], Any]  # of names of modules


class Forked:
    """`edge-ldp …` in a process, which is used as one of `subprocess.Popen` is."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        log: Path | None = None,
        out: Connection | None = None,
        cwd: Path | None = None,
        values: Values | None = None,
    ) -> None:
        if log is not None:
            log.touch()  # whoever waits for words in it need not wait for it
        self._process = _FROM_ONE.Process(
            target=_run, args=(words, log, out, cwd, values or {}, dict(os.environ)), daemon=True
        )
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return how it ended, if it has."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Tell it, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Have it stop."""
        self._process.terminate()

    def kill(self) -> None:
        """End it."""
        self._process.kill()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; return its exit code."""
        self._process.join(timeout)
        if (code := self.poll()) is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(["edge-ldp"], timeout)
        return code


def _run(  # noqa: PLR0913, PLR0917 (what a process is born with)
    words: Sequence[str],
    log: Path | None,
    out: Connection | None,
    cwd: Path | None,
    values: Values,
    environment: Mapping[str, str],
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    if log is not None:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
    if out is not None:
        os.dup2(out.fileno(), 1)
        out.close()
    if cwd is not None:
        os.chdir(cwd)
    for (module, name), value in values.items():
        setattr(import_module(module), name, value)
    sys.exit(main(words))


def pipe() -> tuple[Connection, Connection]:
    """Return where a process's standard output is read, and what is to be given to it."""
    return _FROM_ONE.Pipe(duplex=False)
