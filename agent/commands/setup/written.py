"""What `edge-ldp agent setup` writes and says: a commented configuration, and ε in plain words.

Pure: from answers to text. Every text of an answer is written as TOML's own string, so nothing that
an invitation or a person wrote can become another key.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import exp
from textwrap import wrap

from agent.claims.gauges import HOUR_S, round_half_up
from agent.commands.ledger_view import counted, span
from agent.config import AgentConfig
from agent.config.doubts import a_day_and_a_month
from agent.config.sections import SumsTable
from edge_ldp.protocol.invitation import InvitedStream

USUAL_JITTER_S = 300
SHOWN_EPSILONS = (1, 0.5, 2)
_WIDTH = 90


@dataclass(frozen=True, slots=True)
class GivenSums:
    """The mode of a stream with sums, and its table."""

    mode: str
    table: SumsTable


@dataclass(frozen=True, slots=True)
class Answers:
    """What a setup knows at last; files are paths, `meter` the lines of [meter] as found."""

    fleet: str
    device: str
    group: str
    state: str
    host: str
    port: int
    tls: bool
    allows_plaintext: bool
    username: str | None
    password_file: str | None
    ca_file: str | None
    meter: tuple[str, ...]
    streams: tuple[InvitedStream, ...]
    from_register: tuple[str, ...]  # names of those
    plan_keys: tuple[str, ...]
    epsilon: Decimal
    reports: int
    slots: int
    clock: str
    sums: Mapping[str, GivenSums]  # of streams, by name
    page: int | None  # its port, where the household wants one


def configuration(answers: Answers) -> str:
    """Return the agent's file."""
    return "\n".join(
        [
            "# Written by `edge-ldp agent setup`. Try it: edge-ldp agent check --live -c THIS_FILE",
            "# config/agent.toml has every other key; docs/meters.md those of [meter].",
            "",
            "[device]",
            f"fleet = {_text(answers.fleet)}  # as the aggregator's",
            f"id = {_text(answers.device)}  # also the user name at the broker",
            f"state = {_text(answers.state)}  # ledger and outbox: random codes only",
            *(
                [f"group = {_text(answers.group)}  # tap and page show its last month"]
                * bool(answers.group)
            ),
            "",
            *_broker(answers),
            "",
            *answers.meter,
            '# meter_id = "…"  # telegrams of any other meter are not used',
            "",
            "[policy]  # what you allow; no message can change it",
            f"epsilon = {answers.epsilon}  # of one report",
            "",
            "[policy.window]  # at most so many reports in any so many slots, all streams together",
            *(["# (sums take their share of these reports' ε)"] if answers.sums else []),
            f"reports = {answers.reports}",
            f"slots = {answers.slots}  # a new agent is silent for that many slots first",
            "",
            "[clock]",
            f"trust = {_text(answers.clock)}  # kernel: no report until it is synchronised",
            "",
            *_page(answers.page),
            *_sending(answers.streams[0].slot_seconds),
            *_plans(answers.plan_keys),
            *(
                line
                for stream in answers.streams
                for line in (
                    *_stream(stream, from_register=stream.name in answers.from_register),
                    *_sums(answers.sums.get(stream.name)),
                    "",
                )
            ),
        ]
    )


def introduced(slot_seconds: int, reports: int, slots: int) -> str:
    """Return what ε will mean, for a household that is to say how large it may be."""
    times = ", ".join(f"{exp(epsilon):.2f} with ε {epsilon}" for epsilon in SHOWN_EPSILONS)
    text = (
        f"{_one_code(slot_seconds)} this many times likelier than another: {times}. "
        f"{_at_most(reports, slots * slot_seconds)}."
    )
    return "\n".join(wrap(text, _WIDTH))


def explained(config: AgentConfig, *, goes_on: bool = False) -> str:
    """Return what ε and the window of a configuration mean, for a household.

    goes_on: with the state that there is, so that no silence begins.
    """
    told = [_of_reports(config)] if config.local_reports else []
    if config.sharing:
        from agent.commands.sums_view import told_of_sums  # noqa: PLC0415 (memory: who has sums)

        told += told_of_sums(config)
    if group := config.device.group:
        told.append(
            f"The operator puts this home into group {group}. What its homes used last month, on "
            "average, is told to all the fleet's homes; tap and page show it here."
        )
    past = span(config.policy.window.slots * config.slot_seconds)
    told.append(
        "What was sent so far counts: no new silence begins."
        if goes_on
        else f"The first slot that counts comes after a silence of {past}: only then is it certain "
        "that no earlier state of this device reported in that time."
    )
    return "\n".join("\n".join(wrap(text, _WIDTH)) + "\n" for text in told)


def _of_reports(config: AgentConfig) -> str:
    window, ratio, seconds = config.window, config.ratio, config.slot_seconds
    allowed = _at_most(window.reports, window.slots * seconds)
    adds_up = a_day_and_a_month(config.policy.epsilon, window.reports, window.slots, seconds)
    times, most = ratio.num / ratio.den, float(config.policy.epsilon) * window.reports
    return (
        f"{_one_code(seconds)} at most {times:.2f} times likelier than another "
        f"(ε {config.policy.epsilon}). {allowed}: together ε {most:g} at most, {adds_up}."
    )


def _one_code(slot_seconds: int) -> str:
    return (
        "Readings never leave this device, and none is written. From each slot of "
        f"{span(slot_seconds)} at most one random code is sent for each stream. Seeing it makes "
        "one guess about what you used then"
    )


def _at_most(reports: int, seconds: int) -> str:
    verb = "leaves" if reports == 1 else "leave"
    return f"At most {counted(reports, 'code')} {verb} this home in any {span(seconds)}"


def _broker(answers: Answers) -> list[str]:
    lines = [
        "[broker]",
        f"host = {_text(answers.host)}",
        f"port = {answers.port}",
        f"tls = {'true' if answers.tls else 'false'}",
    ]
    if not answers.tls and answers.allows_plaintext:
        lines.append("allow_plaintext = true  # anyone on the way may read that codes are sent")
    for key in ("username", "password_file", "ca_file"):
        value = getattr(answers, key)
        lines += [] if value is None else [f"{key} = {_text(value)}"]
    return lines


def _page(port: int | None) -> list[str]:
    if port is None:
        return []
    return [f"[page]  # what left this house: http://127.0.0.1:{port}", f"port = {port}", ""]


def _sending(slot_seconds: int) -> list[str]:
    """Return the random moment of sending, where the usual one is longer than a slot is."""
    jitter_s = slot_seconds // 3
    if jitter_s >= USUAL_JITTER_S:
        return []
    return ["[sending]", f"jitter_s = {jitter_s}  # the moment of sending is random, in a slot\n"]


def _plans(keys: tuple[str, ...]) -> list[str]:
    if not keys:
        return []
    named = ", ".join(_text(key) for key in keys[:-1] or keys)
    following = [f"next_key = {_text(keys[-1])}  # ends the others"] if len(keys) > 1 else []
    return [
        "[plans]  # only plans that one of these keys signed are taken",
        f"keys = [{named}]",
        *following,
        "",
    ]


def from_register_text(stream: InvitedStream) -> str:
    """Return what it means that a power is made of the register that it drives."""
    step = round_half_up(HOUR_S, stream.slot_seconds)
    text = (
        f"The meter tells no {stream.quantity}: stream {stream.name} is the mean power that its "
        f"register rose by in a slot, in steps of {step} W where the register counts single Wh."
    )
    return "\n".join(wrap(text, _WIDTH))


def _stream(stream: InvitedStream, *, from_register: bool) -> list[str]:
    return [
        "[[streams]]",
        f"name = {_text(stream.name)}  # as the aggregator's",
        f"quantity = {_text(stream.quantity)}",
        f"unit = {_text(stream.unit)}",
        f"low = {stream.low}",
        f"ceiling = {stream.ceiling}  # the largest possible value; larger ones count as it",
        f"slot_seconds = {stream.slot_seconds}",
        *(["from_register = true  # the meter tells no power"] if from_register else []),
    ]


def _sums(given: GivenSums | None) -> list[str]:
    """Return what makes sums of a stream; what is not written is as usual."""
    if given is None:
        return []
    table = given.table
    usual = {"cells": 1, "block_hours": 1, "offset_s": 0, "ceiling": None}
    other = {key: getattr(table, key) for key in usual if getattr(table, key) != usual[key]}
    return [
        f"mode = {_text(given.mode)}  # also: local, single values as random codes",
        "[streams.sums]  # what a period adds up to leaves once, with noise",
        f"share = {table.share}  # of the window's ε; reports have the rest, in whole ones",
        f"days = {table.days}  # of a period",
        f"least_b = {table.least_b}  # noise of a smaller scale is never used",
        *(f"{key} = {value}" for key, value in other.items()),
    ]


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
