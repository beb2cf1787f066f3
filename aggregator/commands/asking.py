"""How a command is added, and asked: what it tells, for people, machines and spreadsheets.

A question is a function of the configuration and a reader of the store; it prints nothing, so that
the console asks the same one.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import cleandoc, getdoc
from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Any, TypeAlias, get_args, get_type_hints

from aggregator.answers.parts import AnswerPart, answer_json
from aggregator.commands.common import fail, reading, warn

if TYPE_CHECKING:
    from aggregator.config import AggregatorConfig
    from aggregator.store.contract import Reader
    from edge_ldp.arguments import Parser

    Commands: TypeAlias = argparse._SubParsersAction[Parser]  # noqa: SLF001 (it has no other name)


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
    sub.set_defaults(command=partial(_ask, question), question=question, kind=kind)
    return sub


def add_command(
    commands: Commands,
    command: Callable[..., object],
    keys: type[AnswerPart] | str | None = None,
    *,
    has_csv: bool = False,
) -> argparse.ArgumentParser:
    """Add a command named as its function, with its docstring as help and --config.

    `keys`: what --json prints; a command without has no --json. `has_csv`: it has --csv, too.
    """
    told = None
    if keys is not None:
        told = old_keys_text(keys) if isinstance(keys, str) else keys_text(keys)
    sub: argparse.ArgumentParser = commands.add_parser(
        command.__name__.removesuffix("_").replace("_", "-"),
        help=command.__doc__,
        description=command.__doc__,
        epilog=told,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    sub.add_argument("-c", "--config", type=Path, required=True, help="the aggregator's TOML")
    if keys is not None:  # a group without arguments has no usage: argparse raises
        forms = sub.add_mutually_exclusive_group()
        forms.add_argument("--json", action="store_true", help="for machines")
        if has_csv:
            forms.add_argument("--csv", action="store_true", help="for spreadsheets")
    sub.set_defaults(command=command)
    return sub


def old_keys_text(keys: str) -> str:
    """Return what --json prints as --help tells it, from the docstring of what makes it."""
    text = re.sub(r"\AReturn (the JSON of [^.]*\.\s*|the )?", "", cleandoc(keys))
    return f"--json, keys:\n{indent(text, '  ')}"


def show(
    args: argparse.Namespace,
    view: dict[str, Any],
    text: Callable[[], str],
    table: Callable[[dict[str, Any]], str] | None = None,
) -> None:
    """Print a view for machines, for spreadsheets (`table` makes its CSV) or for people."""
    if table is not None and args.csv:
        sys.stdout.write(table(view))
    else:
        sys.stdout.write(json.dumps(view) + "\n" if args.json else text())


def keys_text(kind: type[AnswerPart]) -> str:
    """Return what --help tells of the keys of an answer, and of the parts below it."""
    told = [_keys_of(kind)]
    told += [f"{path}: {text}" for path, one in _parts(kind, {kind}) if (text := _keys_of(one))]
    shown = (fill(one, 88, break_long_words=False, break_on_hyphens=False) for one in told)
    return f"--json, keys:\n{indent(chr(10).join(shown), '  ')}"


def _keys_of(kind: type[AnswerPart]) -> str:
    """Return the docstring of a class without its first sentence."""
    text = getdoc(kind) if "__doc__" in vars(kind) else None
    return re.sub(r"\s+", " ", (text or "").partition("\n\n")[2]).strip()


def _parts(kind: type[AnswerPart], seen: set[type]) -> Iterator[tuple[str, type[AnswerPart]]]:
    """Yield the parts below, each once: where it stands, and its class."""
    for name, hint in get_type_hints(kind).items():
        for one in _classes(hint):
            if one not in seen:
                seen.add(one)
                yield f"{name}[]" if "list[" in str(hint) else name, one
                yield from _parts(one, seen)


def _classes(hint: Any) -> Iterator[type[AnswerPart]]:
    if isinstance(hint, type) and issubclass(hint, AnswerPart):
        yield hint
    for one in get_args(hint):
        yield from _classes(one)


def _ask(question: Question, args: argparse.Namespace) -> int:
    with reading(args) as (config, reader):
        told = question(args, config, reader)
    return told.show(args)
