"""What the API can be asked: commands that only read, by the options that they themselves take.

A question is put to the very function that a command asks, with the options that this would take,
so the API gives what --json prints, to the bit. What is no question here cannot be asked. The
description of the API, and the schema of every answer, are made from the answers' classes.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NoReturn

from msgspec.json import schema_components

from aggregator.answers.announcement import AnnouncedSums
from aggregator.answers.parts import AnswerPart
from aggregator.commands import devices, figures, plan, read, streams
from aggregator.commands.asking import Commands
from aggregator.console.pages import PAGES
from edge_ldp.arguments import Parser
from edge_ldp.sums import forecast_command as forecast

# of every command, and not the asker's to choose; of the forecast, what reads and writes files;
# what the store itself tells of single devices
OURS = {"help", "config", "json", "csv", "values", "clamp", "pilot_days", "picture", "exact"}
TRUE = ("", "1", "true")
FALSE = ("0", "false")
FORMATS = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
API_VERSION = "1.8"  # the second number rises with what is added; what goes is another /api/v2
REF = "#/components/schemas/{name}"
MOST_VALUES = 50  # of one parameter that may be repeated


class QuestionError(Exception):
    """What was asked makes no command; the text says what is expected."""


@dataclass(frozen=True, slots=True)
class ApiQuestion:
    """`words` of `edge-ldp PROGRAM`.

    `rows`: the fields of an answer, or of a part of it, that the rows of a table stand in. `made`:
    the page that is what the command prints, or the file that it writes; these have no tables.
    """

    words: tuple[str, ...]
    rows: tuple[str, ...] = ()
    program: str = "aggregator"
    made: str = ""

    @property
    def kind(self) -> type[AnswerPart] | None:
        """The class of its answers; None where it is a file's text, or the library's answer."""
        if self.made:
            return PAGES[self.made][1] if self.made in PAGES else None
        found: type[AnswerPart] | None = _parser_of(self).get_default("kind")
        return found


QUESTIONS: dict[str, ApiQuestion] = {
    "status": ApiQuestion(("status",), ("streams",)),
    "completeness": ApiQuestion(("completeness",), ("devices",)),
    "query": ApiQuestion(("query",), ("whole", "groups")),
    "quantiles": ApiQuestion(("query",), ("quantiles",)),
    "ranges": ApiQuestion(("query",), ("ranges",)),
    "sums": ApiQuestion(("query",), ("sums.whole", "sums.periods", "sums.parts")),
    "load-curve": ApiQuestion(("load-curve",), ("hours", "days", "weeks")),
    "released": ApiQuestion(("released",), ("released",)),
    "theta": ApiQuestion(("theta",), ("theta",)),
    "plan": ApiQuestion(("plan", "show"), ("plan",)),
    "devices": ApiQuestion(("devices", "list"), ("devices",)),
    "device": ApiQuestion(("devices", "show"), ("days",)),
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
def forecasting() -> argparse.ArgumentParser:
    """Return the parser of `edge-ldp forecast`."""
    return forecast.parser(_Asked)


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of the commands that only read, as `edge-ldp aggregator` has them."""
    made = _Asked(prog="edge-ldp aggregator")
    commands = Commands(made)
    for part in (read, figures, devices, plan, streams):
        part.add(commands)
    return made


def parsed(question: ApiQuestion, config: list[str], words: list[str]) -> argparse.Namespace:
    """Return what a command would be told by `words`, and by --json; raises QuestionError."""
    if question.program == "forecast":
        return forecasting().parse_args(["--json", *words])
    return parser().parse_args([*question.words, *config, "--json", *words])


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
        if times[name] > (MOST_VALUES if _is_list(known[name]) else 1):
            raise QuestionError(f"{name}: given too often")
        if _is_flag(known[name]):
            if value not in TRUE + FALSE:
                raise QuestionError(f"{name}: expected true or false")
            words += [f"--{name}"] if value in TRUE else []
        else:
            words.append(f"--{name}={value}")
    return words


def parameters(question: ApiQuestion) -> dict[str, argparse.Action]:
    """Return the options of a command by name, those that the asker chooses."""
    return {
        action.option_strings[-1].removeprefix("--"): action
        for action in _parser_of(question)._actions  # noqa: SLF001 (there is no public word)
        if action.option_strings and action.dest not in OURS
    }


def _is_flag(option: argparse.Action) -> bool:
    return option.nargs == 0


def _is_list(option: argparse.Action) -> bool:
    return type(option).__name__ == "_AppendAction"


def openapi() -> dict[str, Any]:
    """Return the description of the API for machines (OpenAPI 3.1)."""
    kinds = {one.kind: None for one in QUESTIONS.values() if one.kind is not None}
    schemas, parts = schema_components([*kinds, AnnouncedSums], ref_template=REF)
    answers: dict[type[AnswerPart] | None, dict[str, Any]] = {None: {"type": "object"}}
    answers.update(zip(kinds, schemas, strict=False))
    paths = {
        f"/api/v1/{name}": {"get": _operation(name, one, answers[one.kind])}
        for name, one in QUESTIONS.items()
    }
    said = "What `edge-ldp … --json` prints, to the bit. Read-only."
    return {
        "openapi": "3.1.0",
        "info": {"title": "edge-ldp console", "version": API_VERSION, "description": said},
        "paths": paths,
        "components": {
            "schemas": {name: _told(part) for name, part in parts.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _told(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a class's schema, its docstring in a line."""
    return {**schema, "description": " ".join(schema.get("description", "").split())}


def _operation(name: str, question: ApiQuestion, answer: dict[str, Any]) -> dict[str, Any]:
    takes = parameters(question)
    types = [FORMATS["json"]]
    if question.rows:
        told = "json; csv, arrow, parquet: the rows alone"
        takes["format"] = argparse.Action([], "format", choices=list(FORMATS), help=told)
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
    schemas = {FORMATS["json"]: answer, FORMATS["csv"]: {"type": "string"}}
    fine = {
        "description": command,
        "headers": {"edge-ldp-exit-code": {"schema": {"type": "integer"}}},
        "content": {one.partition(";")[0]: {"schema": schemas.get(one, {})} for one in types},
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


def _parameter(name: str, option: argparse.Action) -> dict[str, Any]:
    choices = [*TRUE, *FALSE] if _is_flag(option) else [*(option.choices or ())]
    one: dict[str, Any] = {"type": "string", **({"enum": choices} if choices else {})}
    schema = {"type": "array", "items": one, "maxItems": MOST_VALUES} if _is_list(option) else one
    needed = {"required": True} if option.required else {}
    told = {"name": name, "in": "query", "description": option.help}
    return {**told, **needed, "schema": schema}


def _parser_of(question: ApiQuestion) -> argparse.ArgumentParser:
    """Return the parser of a command; argparse has no public word for what is below one."""
    at = forecasting() if question.program == "forecast" else parser()
    for word in question.words:
        below = next(one for one in at._actions if isinstance(one.choices, dict))  # noqa: SLF001
        at = below.choices[word]  # type: ignore[index] # checked just above
    return at
