"""The processes of the console that answer: they keep the store open, for reading only.

A question is put to the command's own function, and what it tells is the answer. They are apart
from the process that others reach, which is asked by anybody and may open nothing: so it can ask,
too, but nothing else. And an estimate takes a second, which holds up no other viewer so.
"""

import argparse
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from socket import socket
from types import FrameType
from typing import Any, Protocol, cast

from aggregator.answers.parts import answer_json
from aggregator.commands.asking import Asked
from aggregator.commands.common import (
    EXIT_CONFIG,
    EXIT_NOTHING,
    EXIT_STORE,
    make_clock,
    settle_times,
)
from aggregator.config import AggregatorConfig, ConfigError, StoreTable, load_config
from aggregator.console.confinement import end_with_parent
from aggregator.console.pages import FILES, PAGES, PageRequest
from aggregator.console.questions import (
    QUESTIONS,
    ApiQuestion,
    QuestionError,
    parsed,
    parser,
    words_of,
)
from aggregator.enrolment.tokens import Tokens
from aggregator.errors import NothingError, StoreError
from aggregator.store.contract import Reader
from aggregator.store.opening import open_reader
from aggregator.store.rows import ReportSum
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.sums import forecast_command as forecast

EXIT_BUSY = 6
LIMIT_S = 30.0
PACKET = 1 << 16  # bytes
HELLO = b"\0"  # a new process is at work on a channel
LOOK_S = 0.2  # whether a process died, or the one that asks
Given = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command printed, and its exit code; what a page is made of, as JSON, likewise."""

    code: int
    out: bytes
    err: str


class Attendant(Protocol):
    """What answers in a process of its own."""

    def answer(self, kind: str, name: str, given: Given) -> Reply:
        """Answer whatever may be asked, and nothing else."""


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
        kept = self._config.console.tokens_file
        self._tokens = None if kept is None else Tokens(Path(kept))

    def answer(self, kind: str, name: str, given: Given) -> Reply:
        """Answer whatever may be asked, and nothing else."""
        if kind == "ask" and name in QUESTIONS:
            return self.ask(name, given)
        if kind == "make" and name in PAGES:
            return self.make(name, given)
        return self.owner(name) if kind == "token" else self.version()

    def owner(self, token: str) -> Reply:
        """Return whose token it is, and the role, as JSON; nothing for nobody's."""
        assert self._tokens is not None  # noqa: S101 (else none is asked for)
        try:
            found = self._tokens.owner_of(token)
            return Reply(0, b"" if found is None else json.dumps(found).encode(), "")
        except ConfigError as exc:
            return Reply(EXIT_CONFIG, b"", str(exc))

    def ask(self, name: str, given: Given) -> Reply:
        """Answer a question of the API."""
        question = QUESTIONS[name]
        try:
            words = words_of(question, given)
            if question.made:
                return self.make(question.made, given)
            args = parsed(question, ["-c", self._file], words)
        except QuestionError as exc:
            return Reply(EXIT_CONFIG, b"", str(exc))
        return self._careful(lambda: self._run(question, args))

    def make(self, name: str, given: Given) -> Reply:
        """Return what a page is made of, or what it gives to be kept."""

        def made() -> Reply:
            request = PageRequest(self._config, self._open(), dict(given), self._now_s())
            if name in PAGES:
                return Reply(0, answer_json(PAGES[name][0](request)).encode(), "")
            return Reply(0, FILES[name](request), "")

        return self._careful(made)

    def version(self) -> Reply:
        """Return what is another after every commit, or why the store cannot be read."""

        def found() -> Reply:
            reader = self._open()
            return Reply(0, f"{self._opened} {reader.version()}".encode(), "")

        return self._careful(found, nullcontext())

    def close(self) -> None:
        """Let go of the store."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _run(self, question: ApiQuestion, args: argparse.Namespace) -> Reply:
        if question.program == "forecast":
            try:
                return Reply(0, f"{json.dumps(forecast.forecast_view(args))}\n".encode(), "")
            except EdgeLdpError as exc:
                return Reply(EXIT_CONFIG, b"", str(exc))
        settle_times(args, self._config)
        told = args.question(Asked(args, self._config, self._open()))
        text = "" if told.answer is None else answer_json(told.answer)
        return Reply(told.code, text.encode(), told.reason)

    def _careful(
        self, work: Callable[[], Reply], limit: AbstractContextManager[None] | None = None
    ) -> Reply:
        """Do it within a limit; a store that failed is opened anew the next time."""
        try:
            with limit or limited():
                return work()
        except TimeoutError:
            return Reply(EXIT_BUSY, b"", f"not done in {LIMIT_S:.0f} s: ask for less")
        except ConfigError as exc:
            return Reply(EXIT_CONFIG, b"", f"{exc.key}: {exc.expected}")
        except NothingError as exc:
            return Reply(EXIT_NOTHING, b"", str(exc))
        except StoreError as exc:
            self.close()
            return Reply(EXIT_STORE, b"", str(exc))
        except EdgeLdpError as exc:  # counts or rows that contradict each other
            return Reply(EXIT_STORE, b"", str(exc))

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


def keep(makers: Mapping[socket, Callable[[], Attendant]], asks: int) -> int:
    """Keep a process at work on each channel while the one that asks lives; return the exit code.

    They end with it, not by a signal; one that dies is replaced.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    parser()
    at, free = {}, list(makers)
    while os.getppid() == asks:
        for channel in free:
            pid = os.fork()
            if not pid:
                end_with_parent()
                for other in makers:
                    if other is not channel:
                        other.close()
                return attend(makers[channel](), channel)
            at[pid] = channel
        time.sleep(LOOK_S)
        pid, _ = os.waitpid(-1, os.WNOHANG)
        free = [at.pop(pid)] if pid else []
    return 0


def attend(desk: Attendant, channel: socket) -> int:
    """Answer what is asked on a channel until nobody listens; return the exit code.

    A question: number, kind, name, given, as JSON. An answer: the number, exit code, error, and in
    how many packets its text follows.
    """
    with suppress(BrokenPipeError, ConnectionResetError):
        channel.sendall(HELLO)
        while asked := channel.recv(PACKET):
            number, kind, name, given = json.loads(asked)
            reply = desk.answer(kind, name, tuple((key, value) for key, value in given))
            parts = [reply.out[at : at + PACKET] for at in range(0, len(reply.out), PACKET)]
            channel.sendall(json.dumps([number, reply.code, reply.err, len(parts)]).encode())
            for part in parts:
                channel.sendall(part)
    return 0


@contextmanager
def limited(limit_s: float = LIMIT_S) -> Iterator[None]:
    """Raise TimeoutError after a while."""
    before = signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _too_long(_number: int, _frame: FrameType | None) -> Any:
    raise TimeoutError
