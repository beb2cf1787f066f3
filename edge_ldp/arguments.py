"""Words that a person wrote and nobody knows: which one was probably meant."""

import argparse
import re
import sys
from collections.abc import Iterable
from typing import NoReturn

_CHOICE = re.compile(r"invalid choice: '(?P<word>[^']*)' \(choose from (?P<known>.*)\)")


class Parser(argparse.ArgumentParser):
    """A parser of arguments that names the near one of its choices."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong and exit with 2; where no command is given, say which there are."""
        if message.endswith("required: COMMAND"):
            self.print_help(sys.stderr)
            self.exit(2, f"\n{self.prog}: which command?\n")
        if found := _CHOICE.search(message):
            message += meant(found["word"], found["known"].replace("'", "").split(", "))
        super().error(message)


def meant(word: str, known: Iterable[str]) -> str:
    """Return "; did you mean X?" for a slip of the pen, and "" where nothing is near."""
    from difflib import get_close_matches  # noqa: PLC0415 (memory: only where something is wrong)

    near = get_close_matches(word.lower(), known, n=1)
    return f"; did you mean {near[0]}?" if near else ""
