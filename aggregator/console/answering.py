"""What a process of the console does that answers: it keeps the store open, for reading only.

A question is put to the command's own function, and what that prints is the answer. The work lies
in processes of its own, since an estimate takes a second and would hold up every other viewer.
"""

from __future__ import annotations

import io
import json
import os
import signal
import threading
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from aggregator.commands.common import EXIT_CONFIG, EXIT_NOTHING, EXIT_STORE, make_clock
from aggregator.config import AggregatorConfig, ConfigError, StoreTable, load_config
from aggregator.console.pages import PAGES, Asked
from aggregator.console.questions import QUESTIONS, QuestionError, parser, words_of
from aggregator.errors import StoreError
from aggregator.store.opening import open_reader
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.sums import main as forecast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import FrameType

    from aggregator.console.questions import ApiQuestion
    from aggregator.store.contract import Reader
    from aggregator.store.rows import ReportSum

EXIT_BUSY = 6
LIMIT_S = 30.0
Given = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Said:
    """What a command printed, and its exit code; what a page is made of, as JSON, likewise."""

    code: int
    out: bytes
    err: str


class _Once:
    """A reader that adds up the devices' records once for each version of the store."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._sums: tuple[str, list[ReportSum]] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def report_sums(self) -> list[ReportSum]:
        """Return all records added up, of devices alike."""
        version = self._reader.version()
        if self._sums is None or self._sums[0] != version:
            self._sums = version, self._reader.report_sums()
        return self._sums[1]


class Desk:
    """One process's configuration and open store."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._config = reading_config(load_config(Path(file)))
        self._reader: Reader | None = None
        self._place: tuple[int, int] | None = None
        self._opened = 0

    def ask(self, name: str, given: Given) -> Said:
        """Answer a question of the API."""
        question = QUESTIONS[name]
        try:
            words = words_of(question, given)
        except QuestionError as exc:
            return Said(EXIT_CONFIG, b"", str(exc))
        if question.made:
            return self.make(question.made, given)
        return self._careful(lambda: self._run(question, words))

    def make(self, name: str, given: Given) -> Said:
        """Return what a page is made of, or what it gives to be kept."""

        def made() -> Said:
            asked = Asked(self._config, self._open(), dict(given), self._now_s())
            found = PAGES[name](asked)
            if found is None:
                return Said(EXIT_NOTHING, b"", f"{asked.stream().name}: no plan was issued yet")
            out = found if isinstance(found, bytes) else f"{json.dumps(found)}\n".encode()
            return Said(0, out, "")

        return self._careful(made)

    def version(self) -> Said:
        """Return what is another after every commit, or why the store cannot be read."""

        def found() -> Said:
            reader = self._open()
            return Said(0, f"{self._opened} {reader.version()}".encode(), "")

        return self._careful(found, nullcontext())

    def close(self) -> None:
        """Let go of the store."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _run(self, question: ApiQuestion, words: list[str]) -> Said:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                if question.program == "forecast":
                    code = forecast.main(["--json", *words])
                else:
                    args = parser().parse_args(
                        [*question.words, "-c", self._file, "--json", *words]
                    )
                    args.opened = (self._config, self._open())
                    code = int(args.command(args))
            except SystemExit:  # argparse has said why
                code = EXIT_CONFIG
        said = err.getvalue().strip().rpartition("\n")[2]
        return Said(code, out.getvalue().encode(), said)

    def _careful(
        self, work: Callable[[], Said], limit: AbstractContextManager[None] | None = None
    ) -> Said:
        """Do it within a limit; a store that failed is opened anew the next time."""
        try:
            with limit or _limited():
                return work()
        except TimeoutError:
            return Said(EXIT_BUSY, b"", f"not done in {LIMIT_S:.0f} s: ask for less")
        except ConfigError as exc:
            return Said(EXIT_CONFIG, b"", f"{exc.key}: {exc.expected}")
        except StoreError as exc:
            self.close()
            return Said(EXIT_STORE, b"", str(exc))
        except EdgeLdpError as exc:  # counts or rows that contradict each other
            return Said(EXIT_STORE, b"", str(exc))

    def _open(self) -> Reader:
        """Return the reader: anew where a restore has put another file in the store's place."""
        path = self._config.store.path
        try:
            state = None if path is None else Path(path).stat()
        except OSError:  # said when it is opened
            state = None
        place = None if state is None else (state.st_dev, state.st_ino)
        if self._reader is None or place != self._place:
            self.close()
            once = _Once(open_reader(self._config, self._file))
            self._reader, self._place = cast("Reader", once), place
            self._opened += 1
        return self._reader

    def _now_s(self) -> int:
        return int(make_clock(self._config).now())


def reading_config(config: AggregatorConfig) -> AggregatorConfig:
    """Return the configuration with the store as [console] names it: by a role that only reads."""
    own = config.console
    if own.url is None:
        return config
    return replace(config, store=StoreTable(url=own.url, password_file=own.password_file))


def begin(file: str) -> None:
    """Begin such a process: load what answers need, and end when the console ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _desk(file)
    parser()


def answer_in_process(file: str, kind: str, name: str, given: Given) -> Said:
    """Answer in such a process; `kind`: ask or make."""
    desk = _desk(file)
    return desk.ask(name, given) if kind == "ask" else desk.make(name, given)


@cache
def _desk(file: str) -> Desk:
    return Desk(file)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(0)


@contextmanager
def _limited() -> Iterator[None]:
    """Raise TimeoutError after LIMIT_S."""
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _too_long(_number: int, _frame: FrameType | None) -> Any:
    raise TimeoutError
