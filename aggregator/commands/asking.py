"""How a command is added, and asked: what it tells, for people, machines and spreadsheets.

A question is a function of what is asked; it prints nothing, so that the console asks the same one.
So is an order, which changes the store. Any other command is a function of its arguments.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import partial
from inspect import getdoc
from operator import methodcaller
from pathlib import Path
from textwrap import fill, indent
from typing import Any, Self, TypeAlias, cast, get_args, get_type_hints

from aggregator.answers.parts import AnswerPart, answer_json
from aggregator.commands import common
from aggregator.config import AggregatorConfig, ConfigError, StreamTable, load_config
from aggregator.store.contract import Reader, Session
from aggregator.store.opening import open_reader, open_session
from aggregator.store.rows import MOVED, THERE
from edge_ldp.arguments import meant


@dataclass(frozen=True, slots=True)
class Asked:
    """What a command is asked: its arguments, which are about a configuration and its store.

    Where a name among them is of nothing, ConfigError is raised.
    """

    args: argparse.Namespace
    config: AggregatorConfig
    reader: Reader

    @property
    def stream(self) -> StreamTable:
        """The stream of --stream, the first one without."""
        return common.find_stream(self.args, self.config)

    @property
    def zone(self) -> tzinfo:
        """The zone of --zone, else the configuration's for --stream."""
        return common.find_zone(self.args, self.config)

    @property
    def now_s(self) -> int:
        """The time by the clock that the service goes by, seconds UTC."""
        return int(common.make_clock(self.config).now())

    def find_group(self) -> int | None:
        """Return the number of --group, None without."""
        name = self.args.group
        if name is None:
            return None
        groups = self.reader.groups()
        if name not in groups:
            named = ", ".join(sorted(repr(one) for one in groups))
            expected = f"expected one of {named}{meant(name, groups)}"
            if not any(groups):
                expected = "expected no --group: there are no groups (`devices group` makes them)"
            raise ConfigError("arguments", "--group", expected)
        return groups[name]

    @property
    def moved_to(self) -> str | None:
        """The database that a SQLite store goes on in, if it was moved."""
        return None if self.config.store.path is None else self.reader.facts().get(MOVED)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command tells: its answer, and how that is shown.

    `answer` None: there is none, for `reason`. `text`: for people; `table`: for spreadsheets.
    `warnings`: what the answer is not. `code`: the exit code, and `reason`, if it is not 0.
    """

    answer: AnswerPart | None = None
    text: Callable[[], str] = str
    table: Callable[[], str] | None = None
    warnings: Sequence[str] = ()
    code: int = 0
    reason: str = ""

    def but(self, code: int, reason: str) -> Self:
        """Return the same with an exit code that is not 0, and why."""
        return replace(self, code=code, reason=reason)

    def show(self, args: argparse.Namespace, who: str) -> int:
        """Print it; return the exit code."""
        common.warn(self.warnings)
        if self.answer is not None and args.json:
            sys.stdout.write(answer_json(self.answer))
        elif self.table is not None and args.csv:
            sys.stdout.write(self.table())
        else:
            sys.stdout.write(self.text())
        if self.reason:
            common.warn([self.reason], who)
        return self.code


Question: TypeAlias = Callable[[Asked], Shown]
Order: TypeAlias = Callable[[Asked, Session], Shown]
Option: TypeAlias = Callable[[argparse.ArgumentParser], object]
option: Callable[..., Option] = partial(methodcaller, "add_argument")
"""Makes an option, or an argument, of what argparse's `add_argument` takes."""

CONFIG = option("-c", "--config", type=Path, required=True, help="the aggregator's TOML")
STREAM = option("--stream", help="its name; the first one unless given")
ZONE = option(
    "--zone", help="whose time is meant and shown, as Europe/Berlin; [query] zone unless given"
)
GROUP = option("--group", help='of one group of devices; "" for those in none')
SINCE = option("--since", type=common.time, help="from here on: ISO 8601 or seconds")
RANGE = (SINCE, option("--until", type=common.time, help="up to here: ISO 8601 or seconds"))


class Commands:
    """The commands of a parser: each is named as its function, with its docstring as help.

    It has --config and its options; with `kind`, the class of its answers, --json, and if wanted
    --csv, too.
    """

    def __init__(self, parser: argparse.ArgumentParser, *, required: bool = True) -> None:
        self._parsers = parser.add_subparsers(required=required, metavar="COMMAND")

    def below(self, name: str, told: str) -> "Commands":
        """Add a word that further commands are below."""
        return Commands(self._parsers.add_parser(name, help=told, description=told))

    def question(
        self,
        question: Question,
        kind: type[AnswerPart] | None,
        *options: Option,
        has_csv: bool = False,
    ) -> None:
        """Add a command that tells what a question is told."""
        sub = self.add(question, kind, *options, has_csv=has_csv)
        sub.set_defaults(command=partial(ask, question), question=question)

    def order(
        self, order: Order, kind: type[AnswerPart], *options: Option
    ) -> argparse.ArgumentParser:
        """Add a command that changes the store."""
        sub = self.add(order, kind, *options)
        sub.set_defaults(command=partial(_give, order))
        return sub

    def add(
        self,
        command: Callable[..., Shown],
        kind: type[AnswerPart] | None = None,
        *options: Option,
        has_csv: bool = False,
        has_config: bool = True,
    ) -> argparse.ArgumentParser:
        """Add a command of its arguments alone."""
        sub: argparse.ArgumentParser = self._parsers.add_parser(
            command.__name__.removesuffix("_").replace("_", "-"),
            help=command.__doc__,
            description=command.__doc__,
            epilog=None if kind is None else keys_of(kind),
            formatter_class=KeysFormatter,
        )
        if has_config:
            CONFIG(sub)
        if kind is not None:  # a group without arguments has no usage: argparse raises
            forms = sub.add_mutually_exclusive_group()
            forms.add_argument("--json", action="store_true", help="for machines")
            if has_csv:
                forms.add_argument("--csv", action="store_true", help="for spreadsheets")
        for one in options:
            one(sub)
        sub.set_defaults(command=command, kind=kind)
        return sub


def run(args: argparse.Namespace, who: str = common.AGGREGATOR) -> int:
    """Run the command that is asked for, print what it tells or why not; return its exit code."""
    try:
        shown: Shown = args.command(args)
        return shown.show(args, who)
    except tuple(common.EXIT_OF) as exc:
        common.warn([exc], who)
        return next(code for kind, code in common.EXIT_OF.items() if isinstance(exc, kind))


@contextmanager
def reading(args: argparse.Namespace) -> Iterator[Asked]:
    """Give what is asked of a configuration and a reader of its store."""
    config = load_config(args.config)
    common.settle_times(args, config)
    reader = open_reader(config, str(args.config))
    try:
        asked = Asked(args, config, reader)
        if there := asked.moved_to:
            where = config.store.path
            common.warn([f"{where} was moved to {there}: this is what it held then; {THERE}"])
        yield asked
    finally:
        reader.close()


def ask(question: Question, args: argparse.Namespace) -> Shown:
    """Put a question to the store, which is opened for reading."""
    with reading(args) as asked:
        return question(asked)


def _give(order: Order, args: argparse.Namespace) -> Shown:
    """Give an order beside the service; with its first change it writes who asked for it."""
    config = load_config(args.config)
    session = open_session(config, str(args.config))
    session.orders = [common.order(args, config)]
    try:
        return order(Asked(args, config, session), session)
    finally:
        session.close()


class KeysFormatter(argparse.RawDescriptionHelpFormatter):
    """Makes what help tells of an answer's keys when somebody asks for help."""

    def add_text(self, text: str | Callable[[], str] | None) -> None:
        """Add a paragraph."""
        super().add_text(text() if callable(text) else text)


def keys_of(kind: type[AnswerPart]) -> str:
    """Return an epilog for KeysFormatter: it tells an answer's keys, once that is asked for."""
    return cast("str", partial(keys_text, kind))


def keys_text(kind: type[AnswerPart]) -> str:
    """Return what --help tells of the keys of an answer, and of the parts below it."""
    seen: set[type] = set()
    told = [_keys_of(kind, seen)]
    told += [f"{path}: {text}" for path, one in _parts(kind) if (text := _keys_of(one, seen))]
    shown = (fill(one, 88, break_long_words=False, break_on_hyphens=False) for one in told)
    return f"--json, keys:\n{indent(chr(10).join(shown), '  ')}"


def _keys_of(kind: type[AnswerPart], seen: set[type]) -> str:
    """Return the docstring of a class without its first sentence, after those it extends."""
    told = []
    for one in reversed(kind.__mro__):
        if one not in seen and issubclass(one, AnswerPart) and "__doc__" in vars(one):
            told.append((getdoc(one) or "").partition("\n\n")[2])
            seen.add(one)
    return re.sub(r"\s+", " ", " ".join(told)).strip()


def _parts(kind: type[AnswerPart]) -> Iterator[tuple[str, type[AnswerPart]]]:
    """Yield the parts below: where each stands, and its class."""
    for name, hint in get_type_hints(kind).items():
        for one in _classes(hint):
            yield f"{name.rstrip('_')}{'[]' if 'list[' in str(hint) else ''}", one
            yield from _parts(one)


def _classes(hint: Any) -> Iterator[type[AnswerPart]]:
    if isinstance(hint, type) and issubclass(hint, AnswerPart):
        yield hint
    for one in get_args(hint):
        yield from _classes(one)
