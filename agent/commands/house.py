"""`edge-ldp agent check | status | ledger | explain | plans`: for whoever lives with it.

They read the configuration and the state file, also while the agent runs; nothing is spent or sent.
Only `plans forget` writes, and only while the agent is stopped.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from agent.config import AgentConfig, load_config, read_secrets
from agent.config.doubts import doubts_of
from agent.errors import ConfigError, StorageError
from agent.running.health_file import STOPPED, read_health
from agent.running.vitals import ASK_S, ask
from agent.state.journal import Journal
from edge_ldp.protocol.ledger import Window
from edge_ldp.protocol.messages import StreamStatus
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.protocol.utc import utc
from edge_ldp.service.clock import Clock
from edge_ldp.service.health import OK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent.claims.silence import Silence
    from agent.commands.explain import Kept
    from agent.commands.live import Verdict

EXIT_OK, EXIT_FAILS = 0, 4
DAY_SECONDS = 86_400
_ACCOUNT = ("stream", "first", "next", "oldest", "created", "expired")  # of each in `streams`


def add_house_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands to the agent's."""
    for name, command in (
        ("check", check),
        ("status", status),
        ("ledger", ledger),
        ("explain", explain),
        ("plans", plans),
    ):
        sub = commands.add_parser(name, help=command.__doc__, description=command.__doc__)
        sub.add_argument("-c", "--config", type=Path, required=True, help="the agent's TOML file")
        sub.add_argument("--json", action="store_true", help="for machines")
        if command is status:
            told = "exit code 4 unless the agent runs and all is well"
            sub.add_argument("--strict", action="store_true", help=told)
        if command is check:
            told = "also try port, meter, broker, plans and clock; spends no budget"
            sub.add_argument("--live", action="store_true", help=told)
        sub.set_defaults(command=command)
        if command is plans:
            sub.add_argument("action", nargs="?", choices=("show", "forget"), default="show")
            sub.add_argument("--stream", help="whose plan to forget")


def check(args: argparse.Namespace) -> int:
    """Validate the whole configuration and say what it means; spends nothing.

    With --live everything that it names is tried, and exit code 4 says that something failed.
    """
    config = load_config(args.config)
    read_secrets(config, str(args.config), is_service=False)
    if config.broker.use_tls:
        from agent.running.reload import try_certificates  # noqa: PLC0415 (memory: not the service's)

        try_certificates(config, str(args.config))
    facts = _facts(config) if config.mode == "local" else _curator_facts(config)
    if config.mode == "local":
        with suppress(StorageError), closing(Journal(_state_of(config), create=False)) as journal:
            facts |= _silent(journal, config)
    text = "".join(f"{key:<24}{value}\n" for key, value in facts.items())
    facts["warnings"] = doubts = doubts_of(config)
    text += "".join(f"warning: {doubt}\n" for doubt in doubts)
    if not args.live:
        _show(args, facts, text)
        return EXIT_OK
    verdicts = live(config, args.config)
    facts["live"] = [verdict.fact() for verdict in verdicts]
    _show(args, facts, f"{text}\n" + "".join(verdict.text() for verdict in verdicts))
    return EXIT_FAILS if any(verdict.outcome == "fails" for verdict in verdicts) else EXIT_OK


def live(config: AgentConfig, file: Path) -> "list[Verdict]":
    """Try everything that a configuration of `file` needs; raises ConfigError for its secrets."""
    import asyncio  # noqa: PLC0415 (memory: the service needs none of it)

    from agent.commands.live import try_all  # noqa: PLC0415 (same)
    from agent.config.keyring import keyring_of  # noqa: PLC0415 (same)

    secrets = read_secrets(config, str(file), is_service=False)
    keyring = keyring_of(config, str(file))
    return asyncio.run(try_all(config, secrets.broker, keyring, clock_of(config)))


def status(args: argparse.Namespace) -> int:
    """Show what this device made, keeps and spent, from its state file."""
    config = load_config(args.config)
    with closing(Journal(_state_of(config), create=False)) as journal:
        vitals, silent = _vitals(journal.path), _silent(journal, config)
        facts = {**vitals, **_reporting(journal, config), **_state(journal), **silent}
        facts |= _life(journal, config)
        accounts, plans = journal.status(), _plans(journal, config)
    streams = [{key: getattr(one, key) for key in _ACCOUNT} for one in accounts]
    text = _status_text(facts, accounts, plans, config.device.fleet)
    _show(args, {**facts, "streams": streams, "plans": plans}, text)
    return EXIT_FAILS if args.strict and facts["health"] != OK else EXIT_OK


def ledger(args: argparse.Namespace) -> int:
    """Show what this home has spent and may spend; reads only, also while the agent runs."""
    from agent.commands.ledger_view import as_text, view  # noqa: PLC0415 (memory: the service needs neither)

    config = load_config(args.config)
    with closing(Journal(_state_of(config), create=False)) as journal:
        stored = journal.ledger()
        silent = silence_of(journal, config)
        has_curated = journal.released_until() >= 0
    facts = view(
        stored,
        config.window,
        config.policies()[0].ratio,
        config.slot_seconds,
        int(clock_of(config).now()),
        silence=silent,
    )
    text = as_text(facts)
    if has_curated:
        facts["curated"], more = _curated(config)
        text = f"{text}\n{more}"
    _show(args, facts, text)
    return 0


def explain(args: argparse.Namespace) -> int:
    """Say in plain words what left this house today, and what a code tells by itself."""
    from agent.commands.explain import as_text  # noqa: PLC0415 (memory: the service needs none of it)
    from agent.commands.explain import explain as explained  # noqa: PLC0415 (same)
    from agent.commands.ledger_view import view  # noqa: PLC0415 (same)
    from agent.commands.plans_view import bounds  # noqa: PLC0415 (same)
    from edge_ldp.protocol.plan import parse_plan  # noqa: PLC0415 (same)
    from edge_ldp.protocol.signing import plan_bytes  # noqa: PLC0415 (same)

    config = load_config(args.config)
    with closing(Journal(_state_of(config), create=False)) as journal:
        spent = view(
            journal.ledger(),
            config.window,
            config.policies()[0].ratio,
            config.slot_seconds,
            int(clock_of(config).now()),
            silence=silence_of(journal, config),
        )
        plans = [parse_plan(plan_bytes(plan.payload)) for plan in journal.plans()]
        kept = list(_kept(journal))
        facts = explained(spent, journal.status(), plans, kept, config.slot_seconds)
    facts["plans"] = {policy.stream: bounds(policy) for policy in config.policies()}
    _show(args, facts, as_text(facts))
    return 0


def plans(args: argparse.Namespace) -> int:
    """Show what plans may ask, and each that came: when, its range, why accepted or refused.

    `forget` drops a stream's plan and its epoch (with the agent stopped); the ledger stays.
    """
    from agent.commands.plans_view import as_text, view  # noqa: PLC0415 (memory: the service needs none of it)

    config = load_config(args.config)
    if args.action == "forget":
        _forget(config, args.stream, str(args.config))
    with closing(Journal(Path(config.device.state), create=False)) as journal:
        facts = view(journal.plan_log(), config.policies())
    _show(args, facts, as_text(facts))
    return 0


def _forget(config: AgentConfig, stream: str | None, file: str) -> None:
    from agent.state.plan_log import FORGOTTEN, Logged  # noqa: PLC0415 (memory)

    names = [one.name for one in config.streams]
    if stream not in names:
        raise ConfigError(file, "--stream", "one of " + ", ".join(names))
    with closing(Journal(Path(config.device.state), create=False)):
        pass  # there is one: none is made
    with closing(Journal(Path(config.device.state))) as journal:
        now_s = int(clock_of(config).now())
        epoch = next((plan.epoch for plan in journal.plans() if plan.name == stream), 0)
        row = Logged(now_s, stream, FORGOTTEN, "by its owner; any epoch is taken next", epoch)
        journal.forget_plan(row)


def clock_of(config: AgentConfig) -> Clock:
    """Return the clock that a configuration asks for."""
    return Clock(config.clock.origin_s, config.clock.started_s, config.clock.rate)


def _show(args: argparse.Namespace, facts: dict[str, object], text: str) -> None:
    sys.stdout.write(json.dumps(facts) + "\n" if args.json else text)


def _kept(journal: Journal) -> "Iterator[Kept]":
    """Yield every report that is still here, waiting or packed."""
    from agent.commands.explain import Kept  # noqa: PLC0415 (memory)
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
    from agent.commands.curator_view import check_facts  # noqa: PLC0415 (memory: its mode only)

    return check_facts(config)


def _curated(config: AgentConfig) -> tuple[dict[str, object], str]:
    """Return what curators spent, from the same file, for machines and for people."""
    from agent.commands.curator_view import account_text, account_view  # noqa: PLC0415 (memory)
    from agent.curator.journal import CuratorJournal  # noqa: PLC0415 (same)

    with closing(Journal(_state_of(config), create=False)) as journal:
        found = account_view(CuratorJournal(journal).series())
    return found, account_text(found)


def _facts(config: AgentConfig) -> dict[str, object]:
    """Return what a configuration means, in words that a household can check."""
    from agent.commands.plans_view import bounds  # noqa: PLC0415 (memory: the service needs none of it)

    window, policy = config.window, config.policies()[0]
    per_report = policy.ratio.epsilon
    return {
        "device": f"{config.device.fleet}/{config.device.id}",
        "streams": ", ".join(s.name for s in config.streams),
        **_meters(config),
        "epsilon_per_report": round(per_report, 6),
        "reports_per_window": f"{window.reports} in any {window.slots} slots",
        "epsilon_per_window": round(per_report * window.reports, 6),
        "epsilon_per_day": round(per_report * _reports_per_day(window, config.slot_seconds), 3),
        **_of_each({policy.stream: bounds(policy) for policy in config.policies()}),
        "broker": f"{config.broker.host}:{config.broker.use_port}"
        + (" with TLS" if config.broker.use_tls else " without TLS"),
        "clock": "simulated" if config.clock.simulated else config.clock.trust,
        "plans": f"signed, {len(config.plans.keys)} keys" if config.plans.keys else "unsigned",
        "readings": "stay in this device"
        if config.tap is None
        else f"LEAVE THIS DEVICE by the local tap, to {config.tap.host}",
    }


def _meters(config: AgentConfig) -> dict[str, str]:
    """Return which streams are of which meter, where there are several: one window for all."""
    return {
        f"meter.{one.name}": f"{one.protocol} at {one.port}: "
        + ", ".join(stream.name for stream in config.streams_of(one))
        for one in config.meters
    }


def _of_each(told: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return the words of one stream, or of each with its name before them."""
    if len(told) == 1:
        return next(iter(told.values()))
    return {f"{key}.{name}": words for name, one in told.items() for key, words in one.items()}


def _state_of(config: AgentConfig) -> Path:
    return Path(config.device.state)


def silence_of(journal: Journal, config: AgentConfig) -> "Silence | None":
    """Return why the device is silent now, from its stored ledger, configuration and clock.

    A changed slot length, and a clock that had been ahead, count from the agent's next start on.
    """
    from agent.claims.elapsed import Moment  # noqa: PLC0415 (memory: the service has them anyway)
    from agent.claims.ledger_opening import at_hand  # noqa: PLC0415 (same)
    from agent.claims.silence import silence  # noqa: PLC0415 (same)

    ledger, elapsed, clock = journal.ledger(), journal.elapsed(), clock_of(config)
    if ledger is None or elapsed is None:
        return None
    moment = Moment(clock.now(), int(clock.since_boot() * 1000))
    return silence(*at_hand(ledger, elapsed, config.slot_seconds, moment), moment)


def _life(journal: Journal, config: AgentConfig) -> dict[str, object]:
    """Return the limit of all reports ever and what is left of it, if the owner set one."""
    from agent.claims.lifetime import days_left  # noqa: PLC0415 (memory)

    if config.lifetime is None:
        return {}
    left = config.lifetime.left(journal.ledger(), config.policies()[0].ratio)
    return {
        "lifetime_reports": config.lifetime.reports,
        "lifetime_epsilon": config.lifetime.epsilon,
        "lifetime_left": left,
        "lifetime_days_left": days_left(left, config.window, config.slot_seconds),
    }


def _silent(journal: Journal, config: AgentConfig) -> dict[str, object]:
    """Return why nothing may be reported now and until when, if so."""
    from agent.claims.silence import WORDS  # noqa: PLC0415 (memory)

    found = silence_of(journal, config)
    if found is None:
        return {}
    return {
        "silent_because": WORDS[found.reason],
        "silent_until": f"{utc(found.until_s):%Y-%m-%d %H:%M:%S} UTC",
    }


def _reports_per_day(window: Window, slot_seconds: int) -> float:
    return window.reports * DAY_SECONDS / slot_seconds / window.slots


def _plans(journal: Journal, config: AgentConfig) -> dict[str, dict[str, object] | None]:
    """Return each stream's stored plan: epoch, theta, unit, issued_s; None before the first."""
    from edge_ldp.protocol.plan import parse_plan  # noqa: PLC0415 (memory: the service needs none of it)
    from edge_ldp.protocol.signing import plan_bytes  # noqa: PLC0415 (same)

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
    rows: list[tuple[str, object]] = [_row(key, value) for key, value in facts.items()]
    for name, plan in plans.items():
        none = f"none yet, so nothing is reported; does an aggregator of fleet {fleet} publish one?"
        told = f"epoch {plan['epoch']}, θ {plan['theta']} {plan['unit']}" if plan else none
        rows.append((f"plan of {name}", told))
    rows += [
        (f"stream {one.stream}", f"{one.created} made, {one.expired} given up") for one in accounts
    ]
    return "".join(f"{key:<24}{value}\n" for key, value in rows)


def _row(key: str, value: object) -> tuple[str, object]:
    """Return a fact as a line has it; ages are told as such."""
    if not key.endswith("_s_ago"):
        return key, value
    name = key.removesuffix("_s_ago")
    told = f"{value} s" if name == "link" else f"{value} s ago"
    return ("link up for" if name == "link" else f"last {name}"), "-" if value is None else told


def _vitals(state: Path) -> dict[str, object]:
    """Return health and ages, from the running agent itself where it answers."""
    health = read_health(state)
    told = None if health == STOPPED else ask(state)
    if told == {}:
        health = f"runs, and does not answer within {ASK_S:g} s; it said last: {health}"
    ages = {f"{name}_s_ago": None for name in ("telegram", "commit", "link", "receipt")}
    if told and isinstance(told.get("ages"), dict):
        ages |= {f"{name}_ago": age for name, age in told["ages"].items()}  # type: ignore[attr-defined]
    return {"health": told["health"] if told else health, **ages}


def _reporting(journal: Journal, config: AgentConfig) -> dict[str, object]:
    """Return whether this home reports now, and why not."""
    from agent.commands.ledger_view import state_text, view  # noqa: PLC0415 (memory)

    ratio, now_s = config.policies()[0].ratio, int(clock_of(config).now())
    silence = silence_of(journal, config)
    facts = view(
        journal.ledger(), config.window, ratio, config.slot_seconds, now_s, silence=silence
    )
    return {"reporting": state_text(facts)}


def _state(journal: Journal) -> dict[str, object]:
    ledger = journal.ledger()
    return {
        "waiting_reports": len(journal.waiting()),
        "batches_kept": len(journal.keys()),
        "reports_ever": ledger.reports if ledger else 0,
        "given_up_for_size": sum(journal.shed_counts().values()),
        "epsilon_spent": round(ledger.epsilon_spent, 6) if ledger else 0.0,
    }
