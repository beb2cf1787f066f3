"""How a command is added, and asked: what it tells, for people, machines and spreadsheets.

A question is a function of the configuration and a reader of the store; it prints nothing, so that
the console asks the same one.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import getdoc
from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args, get_type_hints

from aggregator.answers.parts import AnswerPart, answer_json
from aggregator.commands.common import fail, reading, warn

if TYPE_CHECKING:
    from aggregator.config import AggregatorConfig
    from aggregator.store.contract import Reader
    from edge_ldp.arguments import Parser

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"  # noqa: SLF001 (it has no other name)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a command tells: its answer, and how that is shown.

    `answer` None: there is none, for `reason`. `text`: for people; `table`: for spreadsheets.
    `warnings`: what the answer is not. `code`: the exit code, and `reason`, if it is not 0.
    """

    answer: AnswerPart | None
    text: Callable[[], str] = str
    table: Callable[[], str] | None = None
    warnings: Sequence[str] = ()
    code: int = 0
    reason: str = ""

    def but(self, code: int, reason: str) -> Shown:
        """Return the same with an exit code that is not 0, and why."""
        return replace(self, code=code, reason=reason)

    def show(self, args: argparse.Namespace) -> int:
        """Print it; return the exit code."""
        warn(self.warnings)
        if self.answer is not None and args.json:
            sys.stdout.write(answer_json(self.answer))
        elif self.table is not None and args.csv:
            sys.stdout.write(self.table())
        else:
            sys.stdout.write(self.text())
        return fail(self.reason, self.code) if self.code else 0


Question: TypeAlias = "Callable[[argparse.Namespace, AggregatorConfig, Reader], Shown]"


def add_question(
    commands: Commands, question: Question, kind: type[AnswerPart], *, has_csv: bool = False
) -> argparse.ArgumentParser:
    """Add a command that prints what a question is told; `kind`: of its answers."""
    sub = add_command(commands, question, kind, has_csv=has_csv)
    sub.set_defaults(command=partial(_ask, question), question=question)
    return sub


def add_command(
    commands: Commands,
    command: Callable[..., object],
    kind: type[AnswerPart] | None = None,
    *,
    has_csv: bool = False,
    has_config: bool = True,
) -> argparse.ArgumentParser:
    """Add a command named as its function, with its docstring as help and --config.

    `kind`: what --json prints; a command without has no --json. `has_csv`: it has --csv, too.
    """
    sub: argparse.ArgumentParser = commands.add_parser(
        command.__name__.removesuffix("_").replace("_", "-"),
        help=command.__doc__,
        description=command.__doc__,
        epilog=None if kind is None else keys_of(kind),
        formatter_class=KeysFormatter,
    )
    if has_config:
        sub.add_argument("-c", "--config", type=Path, required=True, help="the aggregator's TOML")
    if kind is not None:  # a group without arguments has no usage: argparse raises
        forms = sub.add_mutually_exclusive_group()
        forms.add_argument("--json", action="store_true", help="for machines")
        if has_csv:
            forms.add_argument("--csv", action="store_true", help="for spreadsheets")
    sub.set_defaults(command=command, kind=kind)
    return sub


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


def _ask(question: Question, args: argparse.Namespace) -> int:
    with reading(args) as (config, reader):
        told = question(args, config, reader)
    return told.show(args)
