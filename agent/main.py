"""`edge-ldp agent run | check | status | ledger | read | ports`: wiring and nothing else.

Exit codes: 0 fine; 2 wrong usage or configuration; 3 no valid telegram (read); 4 a port, file,
link or source of randomness that cannot be used.
"""

import argparse
import asyncio
import json
import logging
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from agent.config import AgentConfig, load_config, parse_meter, read_password
from agent.errors import AgentError, ConfigError
from agent.meters.registry import PLUG_IN, PROTOCOLS
from agent.shell.device import Device
from agent.shell.feed import Feed
from agent.shell.journal import Journal
from agent.shell.uplink import Uplink
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.ledger import Window
from edge_ldp.shell.clock import Clock

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
    """Read the meter, randomise and report until SIGTERM or SIGINT; SIGHUP is ignored."""
    config = load_config(args.config)
    password = read_password(config.broker, str(args.config))
    clock = _clock(config)
    journal = Journal(Path(config.device.state))
    try:
        if journal.set_aside:
            log.warning("damaged state set aside as %s", journal.set_aside)
        asyncio.run(_serve(config, journal, clock, password))
    except BaseExceptionGroup as group:  # a task failed: say what, once
        raise _first_agent_error(group) from group
    finally:
        journal.close()
    return 0


def check(args: argparse.Namespace) -> int:
    """Validate the whole configuration and say what it means; nothing is spent or sent."""
    config = load_config(args.config)
    read_password(config.broker, str(args.config))
    facts = _facts(config)
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
    facts = view(
        stored,
        config.window,
        config.policies()[0].ratio,
        config.slot_seconds,
        int(_clock(config).now()),
    )
    sys.stdout.write(json.dumps(facts) + "\n" if args.json else as_text(facts))
    return 0


def ports(args: argparse.Namespace) -> int:
    """List the serial ports of this machine."""
    from agent.commissioning import list_ports  # noqa: PLC0415 (memory: the service needs neither)

    found = list_ports()
    if args.json:
        sys.stdout.write(json.dumps(found) + "\n")
    else:
        for port in found:
            sys.stdout.write("  ".join(port.values()) + "\n")
        if not found:
            sys.stdout.write("no serial ports found\n")
    return 0


def read(args: argparse.Namespace) -> int:
    """Show a meter's readings on the terminal, for commissioning."""
    from agent.commissioning import read_meter  # noqa: PLC0415 (memory: the service needs neither)

    given = {"port": args.port, "protocol": args.protocol, "baud": args.baud, "crc": args.crc}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items() if value is not None]
    table = parse_meter("\n".join([*lines, *args.set]), "--set")
    return asyncio.run(read_meter(table, once=args.once, as_json=args.json, timeout_s=args.timeout))


async def _serve(config: AgentConfig, journal: Journal, clock: Clock, password: str | None) -> None:
    device = Device(config, journal, clock)
    uplink = Uplink(config, device, clock, password)
    feed = Feed(config, device, uplink, clock)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    async with asyncio.TaskGroup() as tasks:
        reading = [
            tasks.create_task(feed.run(), name="feed"),
            tasks.create_task(feed.keep_time(), name="keep-time"),
        ]
        linking = tasks.create_task(uplink.run(), name="uplink")
        await stop.wait()
        for task in reading:
            task.cancel()
        await uplink.farewell()
        linking.cancel()


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
    sub = commands.add_parser("ports", help=ports.__doc__, description=ports.__doc__)
    sub.add_argument("--json", action="store_true", help="for machines")
    sub.set_defaults(command=ports)
    sub = commands.add_parser("read", help=read.__doc__, description=read.__doc__)
    sub.add_argument("--port", required=True, help="serial device or pseudo-terminal")
    names = ", ".join(PROTOCOLS)
    sub.add_argument("--protocol", default="dsmr", help=f"{names} or {PLUG_IN}NAME (default dsmr)")
    sub.add_argument("--baud", type=int, help="default: as the protocol has it")
    sub.add_argument(
        "--crc", choices=["required", "absent-allowed"], help="dsmr (default required)"
    )
    sub.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="LINE",
        help="any other key of [meter], as its line of TOML: --set 'data_bits = 7'",
    )
    sub.add_argument("--once", action="store_true", help="stop after the first telegram")
    sub.add_argument("--timeout", type=float, default=30.0, help="seconds without a telegram")
    sub.add_argument("--json", action="store_true", help="one JSON object a telegram")
    sub.set_defaults(command=read)
    return parser
