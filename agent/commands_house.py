"""`edge-ldp agent check | status | ledger | explain`: for whoever lives with it.

They read the configuration and the state file, also while the agent runs; nothing is spent or sent.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from agent.config import AgentConfig, load_config, read_secrets
from agent.shell.health_file import read_health
from agent.shell.journal import Journal
from edge_ldp.ledger import Window
from edge_ldp.messages import StreamStatus
from edge_ldp.shell.clock import Clock
from edge_ldp.strict_json import MessageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.explain import Kept

DAY_SECONDS = 86_400
_ACCOUNT = ("stream", "first", "next", "oldest", "created", "expired")  # of each in `streams`


def add_house_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands to the agent's."""
    for name, command in (
        ("check", check),
        ("status", status),
        ("ledger", ledger),
        ("explain", explain),
    ):
        sub = commands.add_parser(name, help=command.__doc__, description=command.__doc__)
        sub.add_argument("-c", "--config", type=Path, required=True, help="the agent's TOML file")
        sub.add_argument("--json", action="store_true", help="for machines")
        sub.set_defaults(command=command)


def check(args: argparse.Namespace) -> int:
    """Validate the whole configuration and say what it means; nothing is spent or sent."""
    config = load_config(args.config)
    read_secrets(config, str(args.config), is_service=False)
    if config.broker.use_tls:
        from agent.shell.reload import try_certificates  # noqa: PLC0415 (memory: not the service's)

        try_certificates(config, str(args.config))
    facts = _facts(config) if config.mode == "local" else _curator_facts(config)
    _show(args, facts, "".join(f"{key:<24}{value}\n" for key, value in facts.items()))
    return 0


def status(args: argparse.Namespace) -> int:
    """Show what this device made, keeps and spent, from its state file."""
    config = load_config(args.config)
    with closing(Journal(Path(config.device.state), create=False)) as journal:
        facts = {"health": read_health(journal.path), **_state(journal)}
        accounts, plans = journal.status(), _plans(journal, config)
    streams = [{key: getattr(one, key) for key in _ACCOUNT} for one in accounts]
    text = _status_text(facts, accounts, plans, config.device.fleet)
    _show(args, {**facts, "streams": streams, "plans": plans}, text)
    return 0


def ledger(args: argparse.Namespace) -> int:
    """Show what this home has spent and may spend; reads only, also while the agent runs."""
    from agent.ledger_view import as_text, view  # noqa: PLC0415 (memory: the service needs neither)

    config = load_config(args.config)
    with closing(Journal(Path(config.device.state), create=False)) as journal:
        stored = journal.ledger()
        has_curated = journal.released_until() >= 0
    facts = view(
        stored,
        config.window,
        config.policies()[0].ratio,
        config.slot_seconds,
        int(clock_of(config).now()),
    )
    text = as_text(facts)
    if has_curated:
        facts["curated"], more = _curated(config)
        text = f"{text}\n{more}"
    _show(args, facts, text)
    return 0


def explain(args: argparse.Namespace) -> int:
    """Say in plain words what left this house today, and what a code tells by itself."""
    from agent.explain import as_text  # noqa: PLC0415 (memory: the service needs none of it)
    from agent.explain import explain as explained  # noqa: PLC0415 (same)
    from agent.ledger_view import view  # noqa: PLC0415 (same)
    from edge_ldp.plan import parse_plan  # noqa: PLC0415 (same)
    from edge_ldp.signing import plan_bytes  # noqa: PLC0415 (same)

    config = load_config(args.config)
    with closing(Journal(Path(config.device.state), create=False)) as journal:
        spent = view(
            journal.ledger(),
            config.window,
            config.policies()[0].ratio,
            config.slot_seconds,
            int(clock_of(config).now()),
        )
        plans = [parse_plan(plan_bytes(plan.payload)) for plan in journal.plans()]
        kept = list(_kept(journal))
        facts = explained(spent, journal.status(), plans, kept, config.slot_seconds)
    _show(args, facts, as_text(facts))
    return 0


def clock_of(config: AgentConfig) -> Clock:
    """Return the clock that a configuration asks for."""
    return Clock(config.clock.origin_s, config.clock.started_s, config.clock.rate)


def _show(args: argparse.Namespace, facts: dict[str, object], text: str) -> None:
    sys.stdout.write(json.dumps(facts) + "\n" if args.json else text)


def _kept(journal: Journal) -> "Iterator[Kept]":
    """Yield every report that is still here, waiting or packed."""
    from agent.explain import Kept  # noqa: PLC0415 (memory)
    from edge_ldp.device.errors import WireError  # noqa: PLC0415 (same)
    from edge_ldp.device.frame import decode  # noqa: PLC0415 (same)

    for report in journal.waiting():
        yield Kept(report.stream, report.slot, report.epoch, report.code, packed=False)
    for key in journal.keys():  # noqa: SIM118 (the journal's method, no dictionary)
        payload = journal.payload(key)
        try:
            frame = decode(payload or b"")
        except WireError:  # a curator's frame: `edge-ldp agent ledger` tells of those
            continue
        for slot, code in zip(frame.slots, frame.codes, strict=True):
            yield Kept(frame.stream, slot, frame.epoch, code, packed=True)


def _curator_facts(config: AgentConfig) -> dict[str, object]:
    from agent.curator_view import check_facts  # noqa: PLC0415 (memory: its mode only)

    return check_facts(config)


def _curated(config: AgentConfig) -> tuple[dict[str, object], str]:
    """Return what curators spent, from the same file, for machines and for people."""
    from agent.curator_view import account_text, account_view  # noqa: PLC0415 (memory)
    from agent.shell.curator_journal import CuratorJournal  # noqa: PLC0415 (same)

    with closing(CuratorJournal(Path(config.device.state), create=False)) as journal:
        found = account_view(journal.series())
    return found, account_text(found)


def _facts(config: AgentConfig) -> dict[str, object]:
    """Return what a configuration means, in words that a household can check."""
    window, policy = config.window, config.policies()[0]
    per_report = policy.ratio.epsilon
    return {
        "device": f"{config.device.fleet}/{config.device.id}",
        "streams": ", ".join(s.name for s in config.streams),
        "epsilon_per_report": round(per_report, 6),
        "reports_per_window": f"{window.reports} in any {window.slots} slots",
        "epsilon_per_window": round(per_report * window.reports, 6),
        "epsilon_per_day": round(per_report * _reports_per_day(window, config.slot_seconds), 3),
        "broker": f"{config.broker.host}:{config.broker.use_port}"
        + (" with TLS" if config.broker.use_tls else " without TLS"),
        "clock": "simulated" if config.clock.simulated else config.clock.trust,
        "plans": f"signed, {len(config.plans.keys)} keys" if config.plans.keys else "unsigned",
        "readings": "stay in this device"
        if config.tap is None
        else f"LEAVE THIS DEVICE by the local tap, to {config.tap.host}",
    }


def _reports_per_day(window: Window, slot_seconds: int) -> float:
    return window.reports * DAY_SECONDS / slot_seconds / window.slots


def _plans(journal: Journal, config: AgentConfig) -> dict[str, dict[str, object] | None]:
    """Return each stream's stored plan: epoch, theta, unit, issued_s; None before the first."""
    from edge_ldp.plan import parse_plan  # noqa: PLC0415 (memory: the service needs none of it)
    from edge_ldp.signing import plan_bytes  # noqa: PLC0415 (same)

    if config.mode != "local":
        return {}
    found: dict[str, dict[str, object] | None] = dict.fromkeys(s.name for s in config.streams)
    for stored in journal.plans():
        with suppress(MessageError):  # damaged: the agent takes it for none, too
            plan = parse_plan(plan_bytes(stored.payload))
            shown = {key: getattr(plan, key) for key in ("epoch", "theta", "unit", "issued_s")}
            found |= {stored.name: shown} if stored.name in found else {}
    return found


def _status_text(
    facts: dict[str, object],
    accounts: Iterable[StreamStatus],
    plans: dict[str, dict[str, object] | None],
    fleet: str,
) -> str:
    rows = list(facts.items())
    for name, plan in plans.items():
        none = f"none yet, so nothing is reported; does an aggregator of fleet {fleet} publish one?"
        told = f"epoch {plan['epoch']}, θ {plan['theta']} {plan['unit']}" if plan else none
        rows.append((f"plan of {name}", told))
    rows += [
        (f"stream {one.stream}", f"{one.created} made, {one.expired} given up") for one in accounts
    ]
    return "".join(f"{key:<24}{value}\n" for key, value in rows)


def _state(journal: Journal) -> dict[str, object]:
    ledger = journal.ledger()
    return {
        "waiting_reports": len(journal.waiting()),
        "batches_kept": len(journal.keys()),
        "reports_ever": ledger.reports if ledger else 0,
        "given_up_for_size": sum(journal.shed_counts().values()),
        "epsilon_spent": round(ledger.epsilon_spent, 6) if ledger else 0.0,
    }
