"""`edge-ldp agent run | check | status | ledger`: wiring and nothing else.

Exit codes: 0 fine; 2 wrong usage or configuration; 3 no valid telegram; 4 a port, file, link or
source of randomness that cannot be used; 130 interrupted. `commands` has the rest.
"""

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from agent.commands import add_commands
from agent.config import AgentConfig, load_config, read_secrets
from agent.errors import AgentError, ConfigError
from agent.shell.device import Device
from agent.shell.feed import Feed
from agent.shell.journal import Journal
from agent.shell.memory import give_back
from agent.shell.reload import Loaded, Reloader, load
from agent.shell.undumpable import forbid_dumps
from agent.shell.uplink import Uplink
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.ledger import Window
from edge_ldp.shell.clock import Clock

if TYPE_CHECKING:
    from agent.shell.tap import Tap

EXIT_CONFIG = 2
EXIT_UNUSABLE = 4
DAY_SECONDS = 86_400
log = logging.getLogger("edge-ldp.agent")


def main(argv: Sequence[str]) -> int:
    """Run one agent command; return its exit code."""
    args = _parser().parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        return int(args.command(args))
    except ConfigError as exc:
        return _fail(exc, EXIT_CONFIG)
    except (AgentError, EdgeLdpError) as exc:
        return _fail(exc, EXIT_UNUSABLE)


def run(args: argparse.Namespace) -> int:
    """Read the meter, randomise and report until SIGTERM or SIGINT; SIGHUP reads the file again."""
    forbid_dumps()
    loaded = load(args.config, os.environ.get("CREDENTIALS_DIRECTORY"))
    config = loaded.config
    clock = _clock(config)
    journal = _open_journal(config)
    try:
        if journal.set_aside:
            log.warning("damaged state set aside as %s", journal.set_aside)
        asyncio.run(_serve(loaded, journal, clock))
    except BaseExceptionGroup as group:  # a task failed: say what, once
        raise _first_agent_error(group) from group
    finally:
        journal.close()
    return 0


def check(args: argparse.Namespace) -> int:
    """Validate the whole configuration and say what it means; nothing is spent or sent."""
    config = load_config(args.config)
    read_secrets(config, str(args.config), is_service=False)
    facts = _facts(config) if config.mode == "local" else _curator_facts(config)
    if args.json:
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        sys.stdout.write("".join(f"{key:<24}{value}\n" for key, value in facts.items()))
    return 0


def status(args: argparse.Namespace) -> int:
    """Show what this device made, keeps and spent, from its state file."""
    config = load_config(args.config)
    with closing(Journal(Path(config.device.state), create=False)) as journal:
        facts = _state(journal)
    if args.json:
        sys.stdout.write(json.dumps(facts) + "\n")
    else:
        sys.stdout.write("".join(f"{key:<24}{value}\n" for key, value in facts.items()))
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
        int(_clock(config).now()),
    )
    text = as_text(facts)
    if has_curated:
        facts["curated"], more = _curated(config)
        text = f"{text}\n{more}"
    sys.stdout.write(json.dumps(facts) + "\n" if args.json else text)
    return 0


async def _serve(loaded: Loaded, journal: Journal, clock: Clock) -> None:
    config = loaded.config
    device = _device(loaded, journal, clock)
    uplink = Uplink(config, device, clock, loaded.secrets.broker)
    tap = _tap(loaded, uplink)
    feed = Feed(config, device, uplink, clock, tap.offer if tap else None)
    give_back()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with asyncio.TaskGroup() as tasks:
        reading = [
            tasks.create_task(feed.run(), name="feed"),
            tasks.create_task(feed.keep_time(), name="keep-time"),
        ]
        linking = tasks.create_task(uplink.run(), name="uplink")
        tapping = [tasks.create_task(tap.run(), name="tap")] if tap else []
        reloader = Reloader(loaded, device, uplink, lambda: [task.cancel() for task in tapping])
        loop.add_signal_handler(signal.SIGHUP, reloader.reload)
        await stop.wait()
        for task in (*reading, *tapping):
            task.cancel()
        await uplink.farewell()
        linking.cancel()


def _open_journal(config: AgentConfig) -> Journal:
    """Return the state file; what a curator began on it ends when the local mode takes it over."""
    path = Path(config.device.state)
    if config.mode == "local":
        journal = Journal(path)
        if journal.released_until() < 0:
            return journal
        journal.close()
    from agent.shell.curator_journal import CuratorJournal  # noqa: PLC0415 (memory: its mode only)

    curated = CuratorJournal(path)
    if config.mode == "local" and curated.retire():
        log.warning("the curator's series of this file ended: its budget stays in the ledger")
    return curated


def _tap(loaded: Loaded, uplink: Uplink) -> "Tap | None":
    if loaded.config.tap is None:
        return None
    from agent.shell.tap import Tap  # noqa: PLC0415 (memory, and nothing of it where none asked)

    return Tap(loaded.config, loaded.secrets.tap, lambda: uplink.peer)


def _device(loaded: Loaded, journal: Journal, clock: Clock) -> Device:
    config = loaded.config
    if config.mode == "local":
        return Device(config, journal, clock, keyring=loaded.keyring)
    from agent.shell.curator_device import CuratorDevice  # noqa: PLC0415 (memory: its mode only)
    from agent.shell.curator_journal import CuratorJournal  # noqa: PLC0415 (same)

    assert isinstance(journal, CuratorJournal)  # noqa: S101 (as `_open_journal` made it)
    return CuratorDevice(config, journal, clock)


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


def _state(journal: Journal) -> dict[str, object]:
    ledger = journal.ledger()
    return {
        "streams": [
            {
                "stream": s.stream,
                "first": s.first,
                "next": s.next,
                "oldest": s.oldest,
                "created": s.created,
                "expired": s.expired,
            }
            for s in journal.status()
        ],
        "waiting_reports": len(journal.waiting()),
        "batches_kept": len(journal.keys()),
        "reports_ever": ledger.reports if ledger else 0,
        "given_up_for_size": sum(journal.shed_counts().values()),
        "epsilon_spent": round(ledger.epsilon_spent, 6) if ledger else 0.0,
    }


def _clock(config: AgentConfig) -> Clock:
    return Clock(config.clock.origin_s, config.clock.started_s, config.clock.rate)


def _first_agent_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    for exc in group.exceptions:
        found = _first_agent_error(exc) if isinstance(exc, BaseExceptionGroup) else exc
        if isinstance(found, (AgentError, EdgeLdpError)):
            return found
    return group


def _fail(exc: Exception, code: int) -> int:
    sys.stderr.write(f"edge-ldp agent: {exc}\n")
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="edge-ldp agent", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, command in (("run", run), ("check", check), ("status", status), ("ledger", ledger)):
        sub = commands.add_parser(name, help=command.__doc__, description=command.__doc__)
        sub.add_argument("-c", "--config", type=Path, required=True, help="the agent's TOML file")
        sub.add_argument("--json", action="store_true", help="for machines")
        sub.set_defaults(command=command)
    add_commands(commands)
    return parser
