"""What the aggregator's commands share: options, exit codes, and how they print."""

import argparse
import os
import pwd
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime, tzinfo
from pathlib import Path
from typing import TypeVar

from aggregator.answers.local_time import LATEST_S
from aggregator.config import AggregatorConfig, ClockTable, ConfigError, StreamTable
from aggregator.errors import MemberError, NothingError, RivalError, StoreError
from aggregator.store.rows import AuditRow
from edge_ldp.arguments import meant, taken_as
from edge_ldp.errors import CountsError, RowError
from edge_ldp.service.clock import Clock
from edge_ldp.service.zones import zone_expected, zone_of

T = TypeVar("T")
_NOBODY = (1 << 32) - 1  # logged in: a service, or a container
LONGEST = 1000  # characters of a command in the log of changes
LOGIN = Path("/proc/self/loginuid")  # as whom somebody logged in, whoever they became since
EARLIEST_S = 10**9  # what is asked for in seconds: less is a slip, a slot or 20261201
AGGREGATOR = "edge-ldp aggregator"  # who says what is wrong
EXIT_VIOLATED = 1
EXIT_TROUBLE = 1
EXIT_CONFIG = 2
EXIT_IDLE = 3
EXIT_STORE = 4
EXIT_NOTHING = 5
EXIT_RIVAL = 6
EXITS = """\
Exit codes: 0 fine; 1 reports are not accounted for (completeness), or a worker is in
trouble (status --expect-running); 2 wrong usage or configuration; 3 no service runs on the store
(status --expect-running); 4 a store that cannot be used, or something else fails (check --live);
5 nothing to answer with yet (the reason is given); 6 another aggregator serves the fleet (run).
"""
EXIT_OF: Mapping[type[Exception], int] = {
    ConfigError: EXIT_CONFIG,
    MemberError: EXIT_CONFIG,
    NothingError: EXIT_NOTHING,
    RivalError: EXIT_RIVAL,
    StoreError: EXIT_STORE,
    CountsError: EXIT_STORE,
    RowError: EXIT_STORE,
}


def order(args: argparse.Namespace, config: AggregatorConfig) -> AuditRow:
    """Return who runs this command, for the log of changes; no option of ours takes a secret."""
    words = "".join(one if one.isprintable() else "?" for one in shlex.join(args.argv))
    if len(words) > LONGEST:
        words = f"{words[:LONGEST]}… ({len(words)} characters)"
    users = [os.getuid()]
    with suppress(OSError, ValueError):
        login = int(LOGIN.read_text())
        users = [login, *users] if login not in (_NOBODY, *users) else users
    who = f"{' as '.join(map(_user, users))}@{os.uname().nodename}"
    return AuditRow(int(make_clock(config).now()), who, words)


def find_stream(
    args: argparse.Namespace, config: AggregatorConfig, where: str = "--stream"
) -> StreamTable:
    """Return the stream of --stream, the first one without; raises ConfigError naming `where`."""
    name = args.stream or config.streams[0].name
    found = next((stream for stream in config.streams if stream.name == name), None)
    if found is None:
        streams = [stream.name for stream in config.streams]
        expected = f"expected one of {', '.join(streams)}{meant(name, streams)}"
        raise ConfigError("arguments", where, expected)
    return found


def make_clock(config: AggregatorConfig) -> Clock:
    """Return the clock that the service goes by."""
    table = config.clock
    return Clock(origin_s=table.origin_s, started_s=table.started_s, rate=table.rate)


def clock_note(config: AggregatorConfig) -> str:
    """Return the line that goes before times of a clock that is not the machine's, else ""."""
    is_real = config.clock == ClockTable()
    return "" if is_real else "all times here are by the rehearsal's clock ([clock])\n"


def warn(said: Iterable[object], who: str = AGGREGATOR) -> None:
    """Say on standard error what an answer is not, or why there is none."""
    for one in said:
        sys.stderr.write(f"{who}: {one}\n")


@contextmanager
def one_thread() -> Iterator[Callable[[Callable[[], T]], Callable[[], T]]]:
    """Give what puts work on a thread beside this one, in order, and returns what waits for it.

    NumPy's long steps let other threads go on. Who is interrupted, or gives up, does not wait.
    """
    pool = ThreadPoolExecutor(1, thread_name_prefix="beside")
    try:
        yield lambda work: pool.submit(work).result
    finally:
        pool.shutdown(wait=False)  # it ends with its work


def read_text(file: Path, where: str | None = None, key: str = "file", what: str = "") -> str:
    """Return a file's text; raises ConfigError, of the key of a configuration if one names it."""
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or "not UTF-8"
        expected = f"expected a readable file{what} ({reason})"
        raise ConfigError(where or str(file), key, expected) from exc


def refuse_own(args: argparse.Namespace, config: AggregatorConfig, target: Path) -> None:
    """Raise ConfigError where a file to be written is one that this installation lives by."""
    broker = config.broker
    own = [str(args.config), config.store.password_file, config.broker.password_file]
    own += [broker.ca_file, broker.cert_file, broker.key_file, broker.crl_file]
    own += [config.plans.signing_key_file]
    if config.store.url is None:
        own += [f"{config.store.path}{end}" for end in ("", "-wal", "-shm", "-journal", ".lock")]
    for name in own:
        if name is not None and target.resolve() == Path(name).resolve():
            raise ConfigError(str(target), "file", f"expected another file: it is {name} itself")


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _time(text: str) -> int | datetime:
    return int(text) if text.isdecimal() else datetime.fromisoformat(text)


time = taken_as(
    "an ISO 8601 time, as 2026-12-01 or 2026-12-01T06:00 (of the zone shown unless it says"
    " otherwise), or seconds UTC, at least 1000000000",
    _time,
    lambda at: isinstance(at, datetime) or at == 0 or EARLIEST_S <= at <= LATEST_S,
)


def settle_times(args: argparse.Namespace, config: AggregatorConfig) -> None:
    """Make seconds of --since and --until, read in the zone that is shown; raises ConfigError."""
    for name in ("since", "until"):
        at = getattr(args, name, None)
        if isinstance(at, datetime):
            at = at if at.tzinfo else at.replace(tzinfo=find_zone(args, config))
            setattr(args, name, max(0, int(at.timestamp())))
    since, until = getattr(args, "since", None), getattr(args, "until", None)
    if since is not None and until is not None and since >= until:
        raise ConfigError("arguments", "--until", "expected a time after --since")


def find_zone(args: argparse.Namespace, config: AggregatorConfig) -> tzinfo:
    """Return the zone of --zone, else the configuration's for --stream; raises ConfigError."""
    name, given = getattr(args, "stream", None), getattr(args, "zone", None)
    if given is None:  # the configuration's was looked at when it was read
        return config.zone(next((one for one in config.streams if one.name == name), None))
    try:
        return zone_of(given)
    except ValueError as exc:
        raise ConfigError("arguments", "--zone", f"expected {zone_expected(given)}") from exc


def names(values: Sequence[str], most: int = 10) -> str:
    """Return names for people, of many only the first."""
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(values[:most]) + more
