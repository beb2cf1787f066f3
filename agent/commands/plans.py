"""`edge-ldp agent plans`: what plans may ask and what came, for the owner to read, forget or prove.

From the owner's policy and the journal's log; nothing of it depends on a reading. A plan is public,
and its message holds nothing of this home. Source: docs/faults.md, PLN-15, PRV-23.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from math import isqrt
from pathlib import Path
from typing import Any

from agent.commands.ledger_view import counted
from agent.config import AgentConfig, load_config
from agent.errors import ConfigError, storing
from agent.home_time import home_time
from agent.state.journal import Journal
from agent.state.plan_journal import StoredPlan
from agent.state.plan_log import ACCEPTED, FORGOTTEN, Logged
from edge_ldp.protocol.plan import Plan, Policy
from edge_ldp.protocol.plan_bounds import Refusal

_TOLD = ("at_s", "stream", "code", "words", "epoch", "times")
_WORDS = {ACCEPTED: "in force", FORGOTTEN: "forgotten", "soon": "waits"}


def plans(args: argparse.Namespace) -> int:
    """Show what plans may ask, and each that came: when, its range, why accepted or refused.

    `forget` drops a stream's plan and its epoch (with the agent stopped); the ledger stays.
    `export` writes the messages of those in force, as `edge-ldp certify --plan` takes them.
    """
    config = load_config(args.config)
    if args.action == "forget":
        _forget(config, args.stream, str(args.config))
    with closing(Journal(Path(config.device.state), create=False)) as journal:
        if args.action == "export":
            return _export(args, journal, str(config.policy.epsilon))
        facts = view(journal.plan_log(), config.policies())
    print_facts(args, facts, as_text(facts))
    return 0


def _export(args: argparse.Namespace, journal: Journal, epsilon: str) -> int:
    rows = list(exported(journal.plans(), epsilon, args.to))
    lines = [f"written: {row['file']}; prove it: {row['prove']}\n" for row in rows]
    print_facts(args, {"v": 1, "plans": rows}, "".join(lines) or "No plan is in force.\n")
    return 0


def exported(plans: Sequence[StoredPlan], epsilon: str, where: Path) -> Iterator[dict[str, Any]]:
    """Write each plan's message into a new file of `where`; yield what was written, and the proof.

    epsilon: what the owner allows a report. Raises StorageError, also for a file that is there.
    """
    for plan in plans:
        path = where / f"{plan.name}-{plan.epoch}.plan"
        with storing(path, "name another directory with --to"), path.open("xb") as file:
            file.write(plan.payload)
        command = ["edge-ldp", "certify", "--plan", str(path), "--epsilon", epsilon]
        yield {
            "stream": plan.name,
            "epoch": plan.epoch,
            "file": str(path),
            "prove": shlex.join(command),
        }


def _forget(config: AgentConfig, stream: str | None, file: str) -> None:
    names = [one.name for one in config.local_streams]
    if stream not in names:
        raise ConfigError(file, "--stream", "one of " + ", ".join(names))
    with closing(Journal(Path(config.device.state), create=False)):
        pass  # there is one: none is made
    with closing(Journal(Path(config.device.state))) as journal:
        now_s = int(config.clock.make().now())
        epoch = next((plan.epoch for plan in journal.plans() if plan.name == stream), 0)
        row = Logged(now_s, stream, FORGOTTEN, "by its owner; any epoch is taken next", epoch)
        journal.forget_plan(row)


def print_facts(args: argparse.Namespace, facts: dict[str, object], text: str) -> None:
    """Print what a command tells, for machines or for people."""
    sys.stdout.write(json.dumps(facts) + "\n" if args.json else text)


def bounds(policy: Policy) -> dict[str, str]:
    """Return what the owner lets plans of a stream ask, in words with numbers."""
    shape, unit = policy.shape, policy.unit
    span = policy.ceiling - policy.low
    least = policy.low - (-span >> shape.theta_halvings)
    error = isqrt(int(shape.least_square(span, policy.ratio)))
    whole = f"surveys of {policy.low:,} to {policy.ceiling:,} {unit}"
    parts = (
        f", halved {counted(shape.survey_halvings, 'time')} at most"
        if shape.survey_halvings
        else ""
    )
    return {
        "plans_may_ask": f"θ from {least:,} to {policy.ceiling:,} {unit}; {whole}{parts}, in "
        f"{shape.survey_buckets:,} buckets and {float(shape.survey_share):.0%} of reports at most",
        "a_sum_report_errs_by": f"{error:,} {unit} at the least, as a measurement of its value",
        "plans_change": f"after {counted(shape.days, 'day')} and "
        f"{counted(shape.reports, 'report')}, θ after {counted(shape.range_days, 'day')}",
    }


def refused_text(refusal: Refusal, plan: Plan, policy: Policy) -> str:
    """Return why a plan is refused; of ε in plain words, too."""
    text = f"refused: {refusal.code}, {refusal.words}"
    if refusal.code != "ratio":
        return text
    asked = max(plan.stream_mechanism.epsilon, plan.survey_mechanism.epsilon)
    return f"{text} (the plan asks ε {asked:.3g}, this home allows {policy.ratio.epsilon:.3g})"


def view(rows: Sequence[Logged], policies: Iterable[Policy]) -> dict[str, Any]:
    """Return bounds and log, ready for JSON, oldest first; times in seconds since 1970."""
    return {
        "v": 1,
        "bounds": {policy.stream: bounds(policy) for policy in policies},
        "plans": [{key: getattr(row, key) for key in _TOLD} for row in rows],
    }


def as_text(facts: dict[str, Any]) -> str:
    """Return `view`'s facts as lines for people."""
    lines = [
        f"{name}: {key.replace('_', ' ')}: {words}"
        for name, bounds in facts["bounds"].items()
        for key, words in bounds.items()
    ]
    lines += ["", *(_line(row) for row in facts["plans"])]
    if not facts["plans"]:
        lines.append("No plan has come yet.")
    return "\n".join(lines) + "\n"


def _line(row: dict[str, Any]) -> str:
    became = _WORDS.get(row["code"], f"refused, {row['code']}")
    epoch = f", epoch {row['epoch']}" if row["epoch"] else ""
    often = f" ({row['times']} times)" if row["times"] > 1 else ""
    when = home_time(row["at_s"], "%Y-%m-%d %H:%M")
    return f"{when}  {row['stream']}{epoch}  {became}: {row['words']}{often}"
