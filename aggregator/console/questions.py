"""What the API can be asked: commands that only read, by the options that they themselves take.

A question is answered by the very command that an operator would type, with --json, so that the
API gives what the command line gives, to the bit. What is no question here cannot be asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from aggregator.commands import devices, figures, plan, read, streams
from edge_ldp.arguments import Parser
from edge_ldp.sums import main as forecast
from edge_ldp.version import __version__

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

# of every command, and not the asker's to choose; of the forecast, what reads and writes files;
# what the store itself tells of single devices
OURS = {"help", "config", "json", "csv", "values", "clamp", "picture", "exact"}
TRUE = ("", "1", "true")
FALSE = ("0", "false")
FORMATS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
SCHEMAS = {FORMATS["json"]: {"type": "object"}, FORMATS["csv"]: {"type": "string"}}
MOST_VALUES = 50  # of one parameter that may be repeated


class QuestionError(Exception):
    """What was asked makes no command; the text says what is expected."""


@dataclass(frozen=True, slots=True)
class ApiQuestion:
    """`words` of `edge-ldp PROGRAM`; `rows`: where in its JSON the rows of a table stand.

    `made`: the page that is what the command prints, or writes; it has no tables.
    """

    words: tuple[str, ...]
    rows: tuple[str, ...] = ()
    program: str = "aggregator"
    made: str = ""


QUESTIONS: dict[str, ApiQuestion] = {
    "status": ApiQuestion(("status",), ("streams",)),
    "completeness": ApiQuestion(("completeness",), ("devices",)),
    "query": ApiQuestion(("query",), ("whole", "groups")),
    "quantiles": ApiQuestion(("query",), ("quantiles",)),
    "ranges": ApiQuestion(("query",), ("ranges",)),
    "load-curve": ApiQuestion(("load-curve",), ("hours", "days", "weeks")),
    "released": ApiQuestion(("released",), ("released",)),
    "theta": ApiQuestion(("theta",), ("theta",)),
    "plan": ApiQuestion(("plan", "show"), ("plan",)),
    "devices": ApiQuestion(("devices", "list"), ("devices",)),
    "groups": ApiQuestion(("devices", "groups"), ("groups",)),
    "streams": ApiQuestion(("streams", "list"), ("streams",)),
    "audit": ApiQuestion(("audit",), ("audit",)),
    "announced": ApiQuestion(("announced",)),
    "check": ApiQuestion(("check",), made="check"),  # no process of the console opens a key
    "plan/propose": ApiQuestion(("plan", "propose")),
    "forecast": ApiQuestion((), ("forecasts",), "forecast"),
    "dossier": ApiQuestion((), program="dossier", made="privacy"),
    "plan/message": ApiQuestion(("plan", "show"), made="message"),
    "plan/certificate": ApiQuestion(("plan", "show"), made="certificate"),
}
SAID = {
    "plan/message": "the plan in force as published, for edge-ldp certify --plan",
    "plan/certificate": "its certificate, for edge-ldp certify --check",
}


class _Asked(Parser):
    """A parser that says what is wrong to whoever asks, not to a terminal."""

    def print_usage(self, _file: object = None) -> None:
        """Print nothing."""

    def exit(self, _status: int = 0, message: str | None = None) -> NoReturn:
        raise QuestionError((message or "").strip())


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of the commands that only read, as `edge-ldp aggregator` has them."""
    made = _Asked(prog="edge-ldp aggregator")
    commands = made.add_subparsers(required=True)
    for part in (read, figures, devices, plan, streams):
        part.add(commands)
    return made


def words_of(question: ApiQuestion, given: Iterable[tuple[str, str]]) -> list[str]:
    """Return a command's options for what was asked; raises QuestionError.

    Every option is one word with its value in it, so that no value becomes an option.
    """
    known = parameters(question)
    words, times = [], dict.fromkeys(known, 0)
    for name, value in given:
        if name not in known:
            raise QuestionError(f"{name}: expected one of {', '.join(sorted(known)) or 'nothing'}")
        times[name] += 1
        if times[name] > (MOST_VALUES if known[name]["many"] else 1):
            raise QuestionError(f"{name}: given too often")
        if known[name]["flag"]:
            if value not in TRUE + FALSE:
                raise QuestionError(f"{name}: expected true or false")
            words += [f"--{name}"] if value in TRUE else []
        else:
            words.append(f"--{name}={value}")
    return words


def parameters(question: ApiQuestion) -> dict[str, dict[str, Any]]:
    """Return the options of a command by name: help, choices, many (repeated), flag."""
    found = {}
    for action in _actions(question):
        if action.dest in OURS or not action.option_strings:
            continue
        found[action.option_strings[-1].removeprefix("--")] = {
            "help": action.help,
            "choices": None if action.choices is None else list(action.choices),
            "many": type(action).__name__ == "_AppendAction",
            "flag": action.nargs == 0,
        }
    return found


def openapi() -> dict[str, Any]:
    """Return the description of the API for machines (OpenAPI 3.1)."""
    paths = {f"/api/v1/{name}": {"get": _operation(name, one)} for name, one in QUESTIONS.items()}
    said = "What `edge-ldp … --json` prints, to the bit. Read-only."
    return {
        "openapi": "3.1.0",
        "info": {"title": "edge-ldp console", "version": __version__, "description": said},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{}, {"token": []}],
    }


def _operation(name: str, question: ApiQuestion) -> dict[str, Any]:
    form = {"help": "json; csv, arrow: the rows alone", "many": False, "flag": False}
    takes = parameters(question)
    types = [FORMATS["json"]]
    if question.rows:
        takes["format"] = {**form, "choices": list(FORMATS)}
        types = [*FORMATS.values()]
    command = SAID.get(name) or " ".join(["edge-ldp", question.program, *question.words, "--json"])
    problems = {
        "400": "a parameter is not understood: the reason is given",
        "401": "a token is asked for",
        "404": "nothing to answer with",
        "429": "too many requests",
        "503": "the store cannot be read now: the reason is given",
    }
    problem = {"application/json": {"schema": {"type": "object", "required": ["error"]}}}
    fine = {
        "description": command,
        "headers": {"edge-ldp-exit-code": {"schema": {"type": "integer"}}},
        "content": {one.partition(";")[0]: {"schema": SCHEMAS.get(one, {})} for one in types},
    }
    return {
        "operationId": name,
        "summary": command,
        "parameters": [_parameter(*pair) for pair in sorted(takes.items())],
        "responses": {
            "200": fine,
            **{code: {"description": why, "content": problem} for code, why in problems.items()},
        },
    }


def _parameter(name: str, option: Mapping[str, Any]) -> dict[str, Any]:
    one: dict[str, Any] = {"type": "string"}
    if option["choices"]:
        one = {"type": "string", "enum": option["choices"]}
    if option["flag"]:
        one = {"type": "string", "enum": [*TRUE, *FALSE]}
    schema = {"type": "array", "items": one, "maxItems": MOST_VALUES} if option["many"] else one
    return {"name": name, "in": "query", "description": option["help"], "schema": schema}


def _actions(question: ApiQuestion) -> list[argparse.Action]:
    """Return what the parser of a command takes; argparse has no public word for it."""
    at = forecast.parser() if question.program == "forecast" else parser()
    for word in question.words:
        below = next(one for one in at._actions if isinstance(one.choices, dict))  # noqa: SLF001
        at = below.choices[word]  # type: ignore[index] # checked just above
    return at._actions  # noqa: SLF001
