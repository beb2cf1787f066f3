"""`edge-ldp agent setup | ports | read | probe | record | replay`: for whoever installs a meter.

Nothing here keeps, logs or sends a reading, but `record`, whose purpose it is. Exit codes: 0 fine;
2 wrong usage or file; 3 no valid telegram; 4 a port or file that cannot be used; 130 interrupted.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from agent.config import load_config, parse_meter
from agent.errors import ConfigError
from agent.meters.port_names import host_of
from agent.meters.protocols import PLUG_IN, PROTOCOLS
from agent.meters.section import MeterTable
from edge_ldp.arguments import epsilon_given, port_number, share_given, taken_as, whole_number

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_NO_TELEGRAM = 3
EXIT_INTERRUPTED = 130
PORT_HELP = (
    "device, pseudo-terminal, socket://HOST:PORT, rfc2217://HOST:PORT, http(s)://HOST/PATH, "
    "mqtt(s)://HOST/TOPIC; to find a product, its address or your broker's: http://HOST, mqtt://HOST"
)
_SETUP_HELP = {
    "broker": "its name, or NAME:PORT, instead of an invitation's",
    "state": "the state file (default: beside the configuration)",
}
MAX_SECONDS = 604_800
STORES = "--i-understand-this-stores-readings"


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands to the agent's."""
    _add_setup(commands)
    _command(commands, "ports", ports)
    sub = _command(commands, "read", read)
    which = sub.add_mutually_exclusive_group(required=True)
    which.add_argument("-c", "--config", type=Path, help="the agent's TOML file, with its meters")
    which.add_argument("--port", help=PORT_HELP)
    _add_line(sub)
    sub.add_argument("--meter", help="with --config: the name of one of its [[meters]]")
    sub.add_argument("--once", action="store_true", help="stop after the first telegram")
    sub.add_argument("--timeout", type=_seconds, default=30.0, help="seconds without a telegram")
    sub = _command(commands, "probe", probe)
    sub.add_argument("--port", required=True, help=PORT_HELP)
    sub.add_argument("--seconds", type=_seconds, default=12.0, help="to listen at each speed")
    text = "what lets us in, as --set 'access.token_file = \"FILE\"'"
    sub.add_argument("--set", action="append", default=[], metavar="LINE", help=text)
    sub = _command(commands, "record", record)
    sub.add_argument("--port", required=True, help=PORT_HELP)
    _add_line(sub)
    sub.add_argument("--seconds", type=_seconds, help="stop after (default: when interrupted)")
    sub.add_argument(STORES, action="store_true", dest="understood", help="without it: refused")
    sub.add_argument("file", type=Path, help="a new file; only you will be able to read it")
    sub = _command(commands, "replay", replay)
    sub.add_argument("--summary", action="store_true", help="counts only, no readings")
    zone = "whose time people are shown, as Europe/Berlin (default: this machine's)"
    sub.add_argument("--zone", help=zone)
    sub.add_argument("file", type=Path, help="what `record` wrote")


def _add_setup(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    sub = commands.add_parser("setup", help=setup.__doc__, description=setup.__doc__)
    sub.add_argument("-c", "--config", type=Path, default=Path("agent.toml"), help="file to write")
    sub.add_argument(
        "--invitation", help="what the fleet's operator gave you: a file, its text, or - (stdin)"
    )
    text = "delete the invitation's file once all of it was tried and works"
    sub.add_argument("--forget-invitation", action="store_true", help=text)
    text = "take the place of a device that took the invitation before"
    sub.add_argument("--take-over", action="store_true", help=text)
    text = "a trial's file: setup moves all of it, with what it reported, to -c (and --state)"
    sub.add_argument("--from", dest="trial", type=Path, metavar="FILE", help=text)
    sub.add_argument("--port", help=PORT_HELP)
    sub.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="LINE",
        help="a line of [meter], such as 'protocol = \"sml\"': then nothing is probed",
    )
    sub.add_argument("--seconds", type=_seconds, default=12.0, help="to listen at each speed")
    for name in ("fleet", "device", "broker", "username", "password-file", "ca-file", "state"):
        sub.add_argument(f"--{name}", help=_SETUP_HELP.get(name, "instead of an invitation's"))
    sub.add_argument("--no-tls", action="store_true", help="the broker does not use TLS")
    sub.add_argument(
        "--ceiling", type=whole_number, help="largest value possible, in the meter's unit"
    )
    sub.add_argument(
        "--fuse", type=whole_number, help="your connection's largest power in W (default 43470)"
    )
    sub.add_argument(
        "--least-slot", type=whole_number, default=300, help="shortest slot to take (default 300 s)"
    )
    text = "take an invitation whose broker does not use TLS"
    sub.add_argument("--allow-plaintext", action="store_true", help=text)
    sub.add_argument("--epsilon", type=epsilon_given, help="of one report (default 1)")
    sub.add_argument(
        "--reports", type=whole_number, default=8, help="in any --slots slots (default 8)"
    )
    sub.add_argument("--slots", type=whole_number, default=97, help="(default 97)")
    sub.add_argument("--give", choices=("reports", "sums", "both"), help="what leaves of a stream")
    sub.add_argument(
        "--days", type=whole_number, help="that a sum is of, instead of an invitation's"
    )
    sub.add_argument("--share", type=share_given, help="of the window's ε, for sums")
    text = "least noise of sums, or STREAM=it of one's (default: as reports tell)"
    sub.add_argument("--least-b", type=_least, action="append", metavar="N", help=text)
    sub.add_argument(
        "--clock", choices=["kernel", "assume"], default="kernel", help="[clock] trust"
    )
    text = "a page of what left this house, on this machine (port 8042 unless given)"
    sub.add_argument("--page", type=port_number, nargs="?", const=8042, metavar="PORT", help=text)
    text = "what an earlier setup wrote is kept as *.before"
    sub.add_argument("--replace", action="store_true", help=text)
    sub.add_argument("--yes", action="store_true", help="ask nothing, take what is found")
    unshown = "an invitation's text needs quotes around it"
    sub.set_defaults(command=setup, unshown=unshown, usual=sub.get_default)


def setup(args: argparse.Namespace) -> int:
    """Find the meter, take the invitation, write a configuration and try everything."""
    from agent.commands.setup.setup import setup as set_up  # noqa: PLC0415 (memory: not the service's)

    return set_up(args)


def ports(args: argparse.Namespace) -> int:
    """List the serial ports of this machine."""
    from agent.commands.commissioning import list_ports  # noqa: PLC0415 (memory: the service needs neither)

    found = list_ports()
    if args.json:
        _print(json.dumps(found))
        return EXIT_OK
    for port in found:
        _print("  ".join(port.values()))
    if not found:
        _print("no serial ports found")
    return EXIT_OK


def read(args: argparse.Namespace) -> int:
    """Show a meter's readings on the terminal, for commissioning."""
    from agent.commands.commissioning import read_meter  # noqa: PLC0415 (same)

    timeout_s, table = args.timeout, _meter_to_read(args)
    _complain(f"{table.port}: listening for {table.protocol}; `edge-ldp agent probe` tries others")
    reading = read_meter(table, once=args.once, as_json=args.json, timeout_s=timeout_s)
    return _run(reading, lambda: EXIT_INTERRUPTED)


def probe(args: argparse.Namespace) -> int:
    """Find out speed and protocol of a meter; shows what it found in words, never a reading."""
    from agent.commands.commissioning import stable_path  # noqa: PLC0415 (same)
    from agent.ports.findings import as_facts, toml_lines  # noqa: PLC0415 (same)
    from agent.ports.probe import probe as find  # noqa: PLC0415 (same)

    host = host_of(args.port)
    access = _meter_of(f"{host}/any" if host else args.port, args.set).access

    async def probing() -> int:
        where = args.port
        if host:
            from agent.ports.at_address import at_address  # noqa: PLC0415 (same)

            there = await at_address(host, access, _complain, args.seconds)
            if there is None or there.wants_token:
                _complain(_unheard(host, there.product.name if there else None))
                return EXIT_NO_TELEGRAM
            where = there.port
        outcome, tried = await find(where, _complain, seconds=args.seconds, access=access)
        port = stable_path(where)
        if args.json:
            _print(json.dumps(as_facts(port, outcome, tried)))
        for one in tried:
            _complain(one.text())
        if outcome is None:
            _complain(_unheard(args.port, None))
            return EXIT_NO_TELEGRAM
        if not args.json:
            _print("\n".join([outcome.text(), *toml_lines(port, outcome), *args.set]))
        return EXIT_OK

    return _run(probing(), lambda: EXIT_INTERRUPTED)


def _unheard(where: str, product: str | None) -> str:
    if product is None:
        return f"{where}: no known meter answers here; see docs/meters.md"
    return f"{where}: {product}, which wants a token: `edge-ldp agent setup --port {where}` asks it"


def record(args: argparse.Namespace) -> int:
    """Write a meter's bytes to a file: raw readings, to be deleted when they have served."""
    from agent.ports.recorder import record as taping  # noqa: PLC0415 (same)
    from agent.ports.recording import WARNING  # noqa: PLC0415 (same)

    table = _meter(args)
    if not args.understood:
        _complain(f"record: the file would hold {WARNING}; if you want that, add {STORES}")
        return EXIT_USAGE
    counts = Counter[str]()

    async def recording() -> int:
        await taping(table, args.file, args.seconds, counts)
        return _summarise(args, counts)

    # an interrupt is how a recording ends
    return _run(recording(), lambda: _summarise(args, counts))


def replay(args: argparse.Namespace) -> int:
    """Show what the parser makes of a recording."""
    from agent.commands.commissioning import telegram_json, telegram_text  # noqa: PLC0415 (same)
    from agent.meters.reading import Telegram  # noqa: PLC0415 (same)
    from agent.ports.meters import make_meter  # noqa: PLC0415 (same)
    from agent.ports.recorder import read_recording  # noqa: PLC0415 (same)
    from agent.ports.recording import replayed  # noqa: PLC0415 (same)
    from edge_ldp.service.zones import zone_expected, zone_of  # noqa: PLC0415 (same)

    try:
        zone = None if args.zone is None else zone_of(args.zone)
    except ValueError as exc:
        raise ConfigError("arguments", "--zone", zone_expected(args.zone)) from exc
    table, passed = read_recording(args.file)
    render = telegram_json if args.json else partial(telegram_text, zone=zone)
    counts = Counter[str]()
    for event in replayed(make_meter(table), passed):
        if isinstance(event, Telegram):
            counts["telegrams"] += 1
            if not args.summary:
                _print(render(event))
        else:
            counts[event.reason] += event.size
    return _summarise(args, counts)


def _summarise(args: argparse.Namespace, counts: Counter[str]) -> int:
    """Say on the standard error what there was; return the exit code."""
    from agent.commands.ledger_view import counted  # noqa: PLC0415 (memory: not the service's)

    telegrams = counts["telegrams"]
    discarded = {name: counts[name] for name in sorted(counts) if name != "telegrams"}
    if args.json:
        _complain(json.dumps({"telegrams": telegrams, "discarded_bytes": discarded}))
    else:
        rest = ", ".join(f"{reason} {size}" for reason, size in discarded.items()) or "none"
        _complain(f"{args.file}: {counted(telegrams, 'telegram')}; bytes discarded: {rest}")
    return EXIT_OK if telegrams else EXIT_NO_TELEGRAM


def _run(work: Coroutine[Any, Any, int], interrupted: Callable[[], int]) -> int:
    """Run one command; Ctrl-C ends it in order, without a traceback."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        return interrupted()


def _meter_to_read(args: argparse.Namespace) -> MeterTable:
    """Return the meter of --port and its options, or the one that a configuration names."""
    if args.config is None:
        return _meter(args)
    meters = load_config(args.config).all_meters
    named = [one for one in meters if args.meter in (None, one.name)]
    if len(named) != 1:
        names = ", ".join(one.name for one in meters if one.name) or "nothing: it has one meter"
        raise ConfigError(str(args.config), "--meter", names)
    return named[0]


def _meter(args: argparse.Namespace) -> MeterTable:
    given = {"port": args.port, "protocol": args.protocol, "baud": args.baud, "crc": args.crc}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items() if value is not None]
    return parse_meter("\n".join([*lines, *args.set]), "--set")


def _meter_of(port: str, access: Sequence[str]) -> MeterTable:
    return parse_meter("\n".join([f"port = {json.dumps(port)}", *access]), "--port")


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    command: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    sub = commands.add_parser(name, help=command.__doc__, description=command.__doc__)
    sub.add_argument("--json", action="store_true", help="for machines")
    sub.set_defaults(command=command)
    return sub


def _add_line(sub: argparse.ArgumentParser) -> None:
    names = ", ".join(PROTOCOLS)
    sub.add_argument("--protocol", default="dsmr", help=f"{names} or {PLUG_IN}NAME (default dsmr)")
    sub.add_argument("--baud", type=whole_number, help="default: as the protocol has it")
    rules = ["required", "absent-allowed"]
    sub.add_argument("--crc", choices=rules, help="dsmr (default required)")
    sub.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="LINE",
        help="any other key of [meter], as its line of TOML: --set 'data_bits = 7'",
    )


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stderr.write(text + "\n")


def _least_of(text: str) -> tuple[str, int]:
    """Return of which stream's noise, "" of all, a text says how much there is at least."""
    name, _, least = text.rpartition("=")
    return name, whole_number(least)


_least = taken_as("a whole number above 0, or STREAM=it", _least_of)
_seconds = taken_as(
    f"seconds, above 0 and at most {MAX_SECONDS}", float, lambda s: 0 < s <= MAX_SECONDS
)
