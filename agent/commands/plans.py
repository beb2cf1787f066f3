"""`edge-ldp agent plans`: what plans may ask and what came, for the owner to read, forget or prove.

A plan is public, and its message holds nothing of this home. Source: docs/faults.md, PLN-15,
PRV-23.
"""

import argparse
import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from agent.commands.plans_view import as_text, view
from agent.config import AgentConfig, load_config
from agent.errors import ConfigError, StorageError
from agent.state.journal import Journal
from agent.state.plan_journal import StoredPlan
from agent.state.plan_log import FORGOTTEN, Logged


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
    _show(args, facts, as_text(facts))
    return 0


def _export(args: argparse.Namespace, journal: Journal, epsilon: str) -> int:
    rows = list(exported(journal.plans(), epsilon, args.to))
    lines = [f"written: {row['file']}; prove it: {row['prove']}\n" for row in rows]
    _show(args, {"v": 1, "plans": rows}, "".join(lines) or "No plan is in force.\n")
    return 0


def exported(plans: Sequence[StoredPlan], epsilon: str, where: Path) -> Iterator[dict[str, Any]]:
    """Write each plan's message into a new file of `where`; yield what was written, and the proof.

    epsilon: what the owner allows a report. Raises StorageError, also for a file that is there.
    """
    for plan in plans:
        path = where / f"{plan.name}-{plan.epoch}.plan"
        try:
            with path.open("xb") as file:
                file.write(plan.payload)
        except OSError as exc:
            remedy = "name another directory with --to"
            raise StorageError(str(path), exc.strerror or "", remedy) from exc
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


def _show(args: argparse.Namespace, facts: dict[str, object], text: str) -> None:
    sys.stdout.write(json.dumps(facts) + "\n" if args.json else text)
