"""What a person wrote: which word was probably meant, and which numbers are taken."""

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from decimal import Decimal
from itertools import pairwise
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
MAX_PORT = 65_535
_COLUMNS = 78  # of a help text that no terminal shows: argparse's own number
_LACKS = re.compile(r"argument (?P<option>--[a-z-]+): expected one argument")
_CHOICE = re.compile(r"invalid choice: '(?P<word>[^']*)' \(choose from (?P<known>.*)\)")


class Parser(argparse.ArgumentParser):
    """A parser of arguments that names the near one of its choices and options.

    Options are whole words: what is shortened today may be another option tomorrow. A default named
    `unshown` says why arguments that it does not know are not repeated: they may hold a secret.
    """

    def __init__(self, **named: Any) -> None:
        super().__init__(**{"formatter_class": _formatter} | named, allow_abbrev=False)
        self._given: Sequence[str] = ()

    def parse_known_args(  # type: ignore[override] # of the namespaces that there may be, ours
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Return what is asked for, and nothing that is left: a verb says so with its own usage."""
        self._given = sys.argv[1:] if args is None else args
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            why = getattr(found, "unshown", "")
            text = f"{len(unknown)}, not shown: {why}" if why else " ".join(unknown)
            self.error(f"unrecognized arguments: {text}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and exit with 2; where no command is given, say which there are."""
        if message.endswith("required: COMMAND"):
            self.print_help(sys.stderr)
            self.exit(2, f"\n{self.prog}: which command?\n")
        near = ""
        if found := _CHOICE.search(message):
            near = meant(found["word"], found["known"].replace("'", "").split(", "))
        if found := _LACKS.fullmatch(message):
            near = self._meant_value(found["option"])
        super().error(message + (near or self._meant_option()))

    def _meant_value(self, option: str) -> str:
        """Return how a value below 0, which was taken for an option, is written."""
        for word, after in pairwise(self._given):
            if word == option and re.match(r"-[.\d]", after):
                return f"; did you mean {option}={after}?"
        return ""

    def _meant_option(self) -> str:
        """Return "; did you mean --X?" for the first option that is given and is none."""
        known = [one for one in self._option_string_actions if one.startswith("--")]
        for word in self._given:
            name = word.partition("=")[0]
            if name == "--":
                break
            if name.startswith("--") and name not in known:
                begun = [one for one in known if one.startswith(name)]
                return f"; did you mean {begun[0]}?" if len(begun) == 1 else meant(name, known)
        return ""


def _formatter(prog: str) -> argparse.HelpFormatter:
    """As argparse's own, which without a width loads shutil: 0.5 MiB that a service would keep."""
    return argparse.HelpFormatter(prog, width=None if os.isatty(1) else _COLUMNS)


def meant(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean X?" for a slip of the pen, and "" where nothing is near."""
    from difflib import get_close_matches  # noqa: PLC0415 (memory: only where something is wrong)

    near = get_close_matches(word.lower(), known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def taken_as(
    form: str, read: Callable[[str], T], fits: Callable[[T], bool] = lambda _: True
) -> Callable[[str], T]:
    """Return the reader of an argument that says what is expected where `read` refuses it.

    Or where what was read does not fit.
    """

    def taken(text: str) -> T:
        with suppress(ValueError, ArithmeticError):
            found = read(text)
            if fits(found):
                return found
        raise argparse.ArgumentTypeError(f"expected {form}, not {text!r}")

    return taken


def _epsilon(text: str) -> Decimal:
    from edge_ldp.ratio import exact_epsilon  # noqa: PLC0415 (time: only where ε is given)

    exact_epsilon(text)
    return Decimal(text)


share_given = taken_as(
    "a part of the window's ε, such as 0.75", Decimal, lambda share: 0 < share <= 1
)
whole_number = taken_as("a whole number above 0", int, lambda number: number >= 1)
port_number = taken_as(f"a port, 1 to {MAX_PORT}", int, lambda port: 1 <= port <= MAX_PORT)
port_or_any = taken_as(f"a port, 1 to {MAX_PORT}, or 0", int, lambda port: 0 <= port <= MAX_PORT)
epsilon_given = taken_as("a number above 2**-16 and at most 32, such as 1 or 0.5", _epsilon)
