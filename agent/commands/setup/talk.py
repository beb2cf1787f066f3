"""The person at the terminal who sets an agent up, or nobody: what is said, what is asked.

Where nobody can answer, the default is taken; what has none must be an option. What a person types
is shown by the terminal alone, a password by none.
"""

import argparse
import getpass
import sys
from collections.abc import Callable
from typing import TypeVar

from agent.errors import AgentError, ConfigError

T = TypeVar("T")


class SetupError(AgentError):
    """A setup that cannot go on; nothing was written."""


class Talk:
    """The person at the terminal, or nobody."""

    def __init__(self, *, is_silent: bool) -> None:
        self.asks = not is_silent and sys.stdin is not None and sys.stdin.isatty()

    def say(self, text: str) -> None:
        """Tell what goes on."""
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def ask(self, question: str, option: str, default: str | None = None) -> str:
        """Return the answer, or the default; raises ConfigError where nobody can be asked."""
        if not self.asks:
            if default is None:
                raise ConfigError("setup", option, f"{question}: nobody can be asked here")
            return default
        while True:
            sys.stdout.write(question + (f" [{default}]" if default else "") + ": ")
            sys.stdout.flush()
            line = sys.stdin.readline()
            if not line:
                raise SetupError("setup: the input ended; nothing was written")
            if (answer := line.strip() or default) is not None:  # "": Enter is offered
                return answer

    def taken(  # noqa: PLR0913 (a question, and what is made of its answer)
        self,
        question: str,
        option: str,
        read: Callable[[str], T],
        default: str | None = None,
        *,
        given: object = None,
        doubt: Callable[[T], str] | None = None,
    ) -> T:
        """Return what an answer is read as, or that of an option that was `given`.

        A person is asked again where it cannot be read, and asked back where there is a `doubt`:
        Enter keeps it. Raises SetupError for what nobody can mend.
        """
        typed = given is None
        text = self.ask(question, option, default) if typed else str(given)
        kept = None
        while True:
            try:
                answer = read(text)
            except argparse.ArgumentTypeError as exc:
                if not (self.asks and typed):
                    raise SetupError(f"setup: {option}: {exc}") from exc
                self.say(str(exc))
            else:
                why = doubt(answer) if doubt and self.asks and text != kept else ""
                if not why:
                    return answer
                self.say(why)
                question, default, kept = "Enter keeps it, or type another", text, text
            text, typed = self.ask(question, option, default), True

    def agrees(self, question: str, option: str, default: str = "y") -> bool:
        """Return a yes or a no; the default for Enter, and where nobody can be asked."""
        said = ""
        while said not in ("y", "yes", "n", "no"):
            said = self.ask(f"{question} (y/n)", option, default).lower()
        return said.startswith("y")

    def secret(self, question: str) -> str | None:
        """Return a password that is not shown while it is typed; None where nobody can be asked."""
        return getpass.getpass(f"{question}: ") or None if self.asks else None
