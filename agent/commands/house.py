"""`edge-ldp agent check | status | ledger | explain | plans`: for whoever lives with it.

They read the configuration and the state file, also while the agent runs; nothing is spent or sent.
Only `plans forget` writes, and only while the agent is stopped.
"""

import argparse
import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from agent.claims.slots import REGISTER_UNITS
from agent.commands import ledger_view
from agent.commands.explain import KeptReport
from agent.commands.explain import as_text as explained_text
from agent.commands.explain import explain as explained
from agent.commands.gone import earlier_facts, earlier_text, gone_facts
from agent.commands.habits import habits_facts, habits_text
from agent.commands.ledger_view import counted
from agent.commands.live import try_all
from agent.commands.plans import bounds, plans, print_facts
from agent.commands.status_view import (
    as_text,
    facts_of,
    facts_text,
    plans_of,
    recent_of,
    refused_of,
    silent_facts,
    spent_of,
)
from agent.config import AgentConfig, load_config, read_secrets
from agent.config.doubts import doubts_of
from agent.config.secrets import keyring_of
from agent.errors import StateGoneError
from agent.running.loading import startable
from agent.state.journal import Journal
from agent.state.place import doubt_of_place
from edge_ldp.device.errors import WireError
from edge_ldp.device.frame import decode
from edge_ldp.protocol.plan import parse_plan
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from edge_ldp.protocol.signing import plan_bytes
from edge_ldp.service.health import OK
from edge_ldp.service.trial import Finding

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
            text = "exit code 4 unless the agent runs and all is well"
            sub.add_argument("--strict", action="store_true", help=text)
        if command is check:
            text = "also try port, meter, broker, plans and clock; spends no budget"
            sub.add_argument("--live", action="store_true", help=text)
        sub.set_defaults(command=partial(_telling, command))
        if command is plans:
            actions = ("show", "forget", "export")
            sub.add_argument("action", nargs="?", choices=actions, default="show")
            sub.add_argument("--stream", help="whose plan to forget")
            text = "directory for what `export` writes (default: this one)"
            sub.add_argument("--to", type=Path, default=Path(), help=text)


def _telling(command: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    """Give a command; what it says of a state that is gone, it says to machines too."""
    try:
        return command(args)
    except StateGoneError as exc:
        if args.json:
            print_facts(args, gone_facts(exc), "")
        raise


def check(args: argparse.Namespace) -> int:
    """Validate the whole configuration and say what it means; spends nothing.

    What `run` refuses is refused here, with the same words and exit code. With --live everything
    that it names is tried, and exit code 4 says that something failed.
    """
    config = startable(args.config, None, is_service=False).config
    facts = _facts(config) if config.mode == "local" else _curator_facts(config)
    more, sums_text = _sums(config)
    facts |= more
    doubts = [*doubts_of(config), doubt_of_place(_state_of(config))]
    try:
        with closing(Journal(_state_of(config), create=False)) as journal:
            if config.mode == "local":
                facts |= _in_force(journal, config)
    except StateGoneError as exc:  # the agent begins anew
        doubts += [str(exc)] if exc.state != "absent" else []
    text = facts_text({key: fact for key, fact in facts.items() if key != "costs"}) + sums_text
    facts["warnings"] = doubts = [doubt for doubt in doubts if doubt]
    text += "".join(f"warning: {doubt}\n" for doubt in doubts)
    if not args.live:
        print_facts(args, facts, text)
        return EXIT_OK
    verdicts = live(config, args.config)
    facts["live"] = [verdict.fact() for verdict in verdicts]
    print_facts(args, facts, f"{text}\n" + "".join(verdict.text() for verdict in verdicts))
    return EXIT_FAILS if any(verdict.outcome == "fails" for verdict in verdicts) else EXIT_OK


def live(config: AgentConfig, file: Path) -> list[Finding]:
    """Try everything that a configuration of `file` needs; raises ConfigError for its secrets."""
    secrets = read_secrets(config, str(file), is_service=False)
    keyring = keyring_of(config, str(file))
    return asyncio.run(try_all(config, secrets.broker, keyring, config.clock.make()))


def _in_force(journal: Journal, config: AgentConfig) -> dict[str, object]:
    """Return why nothing is reported now, if so: a silence, or plans that were refused."""
    in_force = plans_of(journal, config)
    refused = refused_of(journal).items()
    return silent_facts(journal, config) | {
        f"plan of {name}": why for name, why in refused if not in_force.get(name)
    }


def status(args: argparse.Namespace) -> int:
    """Show what this device made, keeps and spent, from its state file."""
    config = load_config(args.config)
    with closing(Journal(_state_of(config), create=False)) as journal:
        facts = facts_of(journal, config)
        accounts, plans = journal.status(), plans_of(journal, config)
        refused = refused_of(journal)
    streams = [{key: getattr(one, key) for key in _ACCOUNT} for one in accounts]
    text = as_text(facts, accounts, plans, config, refused)
    text += earlier_text(_state_of(config))
    earlier = earlier_facts(_state_of(config))
    print_facts(args, {**facts, **earlier, "streams": streams, "plans": plans}, text)
    return EXIT_FAILS if args.strict and facts["health"] != OK else EXIT_OK


def ledger(args: argparse.Namespace) -> int:
    """Show what this home has spent and may spend; reads only, also while the agent runs."""
    config = load_config(args.config)
    with closing(Journal(_state_of(config), create=False)) as journal:
        facts, recent = spent_of(journal, config), recent_of(journal, config)
        has_curated, summed = journal.released_until() >= 0, _summed(journal)
        more, sums_text = _sums(config, journal)
    text = ledger_view.as_text(facts, recent)
    if has_curated:
        facts["curated"], curated_text = _curated(config)
        text = f"{text}\n{curated_text}"
    if more:
        facts |= {"sums": summed} | more
        text = f"{text}\n{sums_text}" if config.local_streams else sums_text
    facts |= earlier_facts(_state_of(config))
    text += earlier_text(_state_of(config))
    print_facts(args, facts, text)
    return 0


def explain(args: argparse.Namespace) -> int:
    """Say in plain words what left this house today, and what a code tells by itself."""
    config = load_config(args.config)
    with closing(Journal(_state_of(config), create=False)) as journal:
        spent = spent_of(journal, config)
        plans = [parse_plan(plan_bytes(plan.payload)) for plan in journal.plans()]
        kept = list(_kept(journal))
        accounts = [one for one in journal.status() if one.stream < FIRST_SUMS_KEY]
        facts = explained(spent, accounts, plans, kept, config.slot_seconds)
        sums, kept_text = _sums_kept(journal)
        more, sums_text = _sums(config, journal)
    facts["plans"] = {policy.stream: bounds(policy) for policy in config.policies()}
    if config.mode == "local" and config.local_streams:
        facts["rules"] = _rules(config)
    sent = Counter(report.stream for report in kept if report.packed)
    facts |= earlier_facts(_state_of(config))
    facts["habits"] = habits_facts(config)
    text = explained_text(facts, sent, config.sending.receipt_interval_s)
    text += habits_text(facts["habits"])
    if more:
        habits = ("costs", *(f"told by {stream.name}" for stream in config.streams))
        about = {key: fact for key, fact in more.items() if key not in habits}
        facts |= {"sums": sums} | more
        text += f"\n{kept_text}\n{facts_text(about)}\n{sums_text}"
    print_facts(args, facts, text + earlier_text(_state_of(config)))
    return 0


def _kept(journal: Journal) -> Iterator[KeptReport]:
    """Yield every report that is still here, waiting or packed."""
    for report in journal.waiting():
        yield KeptReport(report.stream, report.slot, report.epoch, report.code, packed=False)
    for key in journal.keys():  # noqa: SIM118 (the journal's method, no dictionary)
        payload = journal.payload(key)
        try:
            frame = decode(payload or b"")
        except WireError:  # a curator's frame: `edge-ldp agent ledger` tells of those
            continue
        for slot, code in zip(frame.slots, frame.codes, strict=True):
            yield KeptReport(frame.stream, slot, frame.epoch, code, packed=True)


def _sums(config: AgentConfig, journal: Journal | None = None) -> tuple[dict[str, object], str]:
    """Return what sums mean and cost, and their costs as a table; nothing where none ever were."""
    if not config.sharing and not (journal and journal.sharing()):
        return {}, ""
    from agent.commands.sums_view import check_facts, cost_facts, cost_text  # noqa: PLC0415 (memory: who has sums)

    costs = cost_facts(config, journal)
    return check_facts(config) | {"costs": costs}, cost_text(costs, config)


def _summed(journal: Journal) -> list[dict[str, object]]:
    """Return what sums of this state have cost; nothing is loaded where there were none."""
    if not journal.sharing():
        return []
    from agent.commands.sums_view import ledger_facts  # noqa: PLC0415 (memory: who has sums)

    return ledger_facts(journal)


def _sums_kept(journal: Journal) -> tuple[list[dict[str, object]], str]:
    """Return the sums that wait for a receipt, for machines and for people."""
    if not journal.sharing():
        return [], ""
    from agent.commands.sums_view import kept_facts, kept_text  # noqa: PLC0415 (memory)

    kept = kept_facts(journal)
    return kept, kept_text(kept)


def _curator_facts(config: AgentConfig) -> dict[str, object]:
    from agent.commands.curator_view import check_facts  # noqa: PLC0415 (memory: its mode only)

    return check_facts(config)


def _curated(config: AgentConfig) -> tuple[dict[str, object], str]:
    """Return what curators spent, from the same file, for machines and for people."""
    from agent.commands.curator_view import spending_text, spending_view  # noqa: PLC0415 (memory)
    from agent.curator.journal import CuratorJournal  # noqa: PLC0415 (same)

    with closing(Journal(_state_of(config), create=False)) as journal:
        found = spending_view(CuratorJournal(journal).series())
    return found, spending_text(found)


def _facts(config: AgentConfig) -> dict[str, object]:
    """Return what a configuration means, in words that a household can check."""
    return {
        "device": f"{config.device.fleet}/{config.device.id}",
        "streams": ", ".join(s.name for s in config.streams),
        **_meters(config),
        **(_reports(config) if config.local_streams else {}),
        **_of_each(rounding(stream.unit for stream in config.streams)),
        **_of_each({policy.stream: bounds(policy) for policy in config.policies()}),
        "broker": f"{config.broker.host}:{config.broker.use_port}"
        + (" with TLS" if config.broker.use_tls else " without TLS"),
        "clock": "simulated" if config.clock.simulated else config.clock.trust,
        "plans": f"signed, {counted(len(config.plans.every), 'key')}"
        if config.plans.keys
        else "unsigned",
        "readings": _readings(config),
        **_page(config),
    }


def _reports(config: AgentConfig) -> dict[str, object]:
    """Return what reports cost, and how slots and time are counted for them."""
    window, per_report = config.window, config.ratio.epsilon
    a_day = window.reports_in(1) * DAY_SECONDS / config.slot_seconds
    return {
        "epsilon_per_report": round(per_report, 6),
        "reports_per_window": f"{window.reports} in any {counted(window.slots, 'slot')}",
        "epsilon_per_window": round(per_report * window.reports, 6),
        "epsilon_per_day": round(per_report * a_day, 3),
        **_rules(config),
    }


def _readings(config: AgentConfig) -> str:
    """Return where raw readings go: nowhere, unless the owner asks for it."""
    ways = []
    if config.tap is not None:
        ways.append(f"by the local tap, to {config.tap.host}")
    if config.share is not None:
        readers = ", ".join(("this machine", *config.share.readers))
        ways.append(f"by the share at {config.share.listen}:{config.share.port}, to {readers}")
    return f"LEAVE THIS DEVICE {' and '.join(ways)}" if ways else "stay in this device"


def _page(config: AgentConfig) -> dict[str, object]:
    """Return who may look at the household's page; nothing where there is none."""
    if (table := config.page) is None:
        return {}
    readers = ", ".join(("this machine", *table.readers))
    return {"page": f"http://{table.listen}:{table.port}, for {readers}: what left, no reading"}


def _rules(config: AgentConfig) -> dict[str, str]:
    """Return how slots and time are counted, and after how much the owner wants silence."""
    window, seconds, life = config.window, config.slot_seconds, config.lifetime
    rules = {
        "slots": f"{seconds} s each, counted from 1970 (UTC); another length begins a new window",
        "schedule": f"repeats after {counted(window.period, 'slot')}, so that all times of day "
        "and week have their turn",
        "time": f"at most {counted(window.reports, 'report')} in "
        f"{counted(window.slots, 'slot')} of elapsed time, too, whatever the clock says",
    }
    if life is not None:
        reports = [] if life.reports is None else [counted(life.reports, "report")]
        spent = [] if life.epsilon is None else [f"ε = {life.epsilon:g}"]
        rules["lifetime"] = f"{' or '.join(reports + spent)}, then silence"
    return rules


def rounding(units: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return, by unit, how far whole numbers put a home's day out at most, before any noise.

    A reading is rounded, and the mean of a slot's, by half a unit each, all day; a register at the
    day's two ends only: what is too much in one slot is too little in the next.
    """
    errors = {}
    for unit in sorted(set(units)):
        factor, per_day = (1, unit) if unit in REGISTER_UNITS else (24, f"{unit}h")
        errors[unit] = {
            "rounding": f"to whole {unit}: a day without gaps is wrong by at most {factor} "
            f"{per_day}, before any noise; a meter that shows steps of S {unit} adds at most "
            f"{factor}·S {per_day}"
        }
    return errors


def _meters(config: AgentConfig) -> dict[str, str]:
    """Return which streams are of which meter, where there are several: one window for all."""
    return {
        f"meter.{one.name}": f"{one.protocol} at {one.shown_port}: "
        + ", ".join(stream.name for stream in config.streams_of(one))
        for one in config.meters
    }


def _of_each(facts: dict[str, dict[str, str]]) -> dict[str, str]:
    """Return the words of one stream, or of each with its name before them."""
    if len(facts) == 1:
        return next(iter(facts.values()))
    return {f"{key}.{name}": words for name, one in facts.items() for key, words in one.items()}


def _state_of(config: AgentConfig) -> Path:
    return Path(config.device.state)
