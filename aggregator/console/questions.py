"""What the API can be asked: commands that only read, by the options that they themselves take.

A question is answered by the very command that an operator would type, with --json, so that the
API gives what the command line gives, to the bit. What is no question here cannot be asked.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from aggregator.commands import devices, load_curve, plan, read, streams
from edge_ldp.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

OURS = {"help", "config", "json", "csv"}  # of every command, and not the asker's to choose
TRUE = ("", "1", "true")
FALSE = ("0", "false")
FORMATS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
}
MOST_VALUES = 50  # of one parameter that may be repeated


class QuestionError(Exception):
    """What was asked makes no command; the text says what is expected."""


@dataclass(frozen=True, slots=True)
class Question:
    """`words` of `edge-ldp PROGRAM`; `rows`: where in its JSON the rows of a table stand."""

    words: tuple[str, ...]
    rows: tuple[str, ...]
    program: str = "aggregator"


QUESTIONS: dict[str, Question] = {
    "status": Question(("status",), ("streams",)),
    "completeness": Question(("completeness",), ("devices",)),
    "query": Question(("query",), ("groups",)),
    "load-curve": Question(("load-curve",), ("hours", "days")),
    "released": Question(("released",), ("released",)),
    "theta": Question(("theta",), ("theta",)),
    "plan": Question(("plan", "show"), ("plan",)),
    "devices": Question(("devices", "list"), ("devices",)),
    "groups": Question(("devices", "groups"), ("groups",)),
    "streams": Question(("streams", "list"), ("streams",)),
    "audit": Question(("audit",), ("audit",)),
    "forecast": Question((), ("forecasts",), "forecast"),
}
FORECAST = {  # options of `edge-ldp forecast` that read and write no file
    "homes": "several with commas: a table",
    "days": "that are looked at",
    "slots-a-day": "values of a home in a day",
    "epsilon": "of a report",
    "window": "K/W: K reports in any W slots, or every",
    "streams": "of a home that share the window",
    "low": "smallest value considered possible",
    "ceiling": "largest value",
    "unit": "of the values",
    "mean": "that is guessed",
    "horizon": "that θ is best for: whole, week, day, hour-of-day",
    "group": "homes of a group asked about too",
}


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of the commands that only read, as `edge-ldp aggregator` has them."""
    made = argparse.ArgumentParser(prog="edge-ldp aggregator")
    commands = made.add_subparsers(required=True)
    for part in (read, load_curve, devices, plan, streams):
        part.add(commands)
    return made


def words_of(question: Question, given: Iterable[tuple[str, str]]) -> list[str]:
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


def parameters(question: Question) -> dict[str, dict[str, Any]]:
    """Return the options of a command by name: help, choices, many (repeated), flag."""
    if question.program == "forecast":
        plain = {"choices": None, "many": False, "flag": False}
        return {name: {**plain, "help": told} for name, told in FORECAST.items()}
    found = {}
    for action in _actions(question.words):
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


def _operation(name: str, question: Question) -> dict[str, Any]:
    form = {"help": "json; csv, arrow: the rows alone", "many": False, "flag": False}
    takes = {**parameters(question), "format": {**form, "choices": list(FORMATS)}}
    command = " ".join(["edge-ldp", question.program, *question.words, "--json"])
    told = {
        "400": "a parameter is not understood: the reason is given",
        "401": "a token is asked for",
        "404": "nothing to answer with",
        "429": "too many requests",
        "503": "the store cannot be read now: the reason is given",
    }
    problem = {"application/json": {"schema": {"type": "object", "required": ["error"]}}}
    fine = {
        "description": f"as `{command}` prints it",
        "headers": {"edge-ldp-exit-code": {"schema": {"type": "integer"}}},
        "content": {
            "application/json": {"schema": {"type": "object"}},
            "text/csv": {"schema": {"type": "string"}},
            FORMATS["arrow"]: {"schema": {"type": "string", "format": "binary"}},
        },
    }
    return {
        "operationId": name,
        "summary": command,
        "parameters": [_parameter(*pair) for pair in sorted(takes.items())],
        "responses": {
            "200": fine,
            **{code: {"description": why, "content": problem} for code, why in told.items()},
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


def _actions(words: Sequence[str]) -> list[argparse.Action]:
    """Return what the parser of a command takes; argparse has no public word for it."""
    at = parser()
    for word in words:
        below = next(one for one in at._actions if isinstance(one.choices, dict))  # noqa: SLF001
        at = below.choices[word]  # type: ignore[index] # checked just above
    return at._actions  # noqa: SLF001
