"""`edge-ldp agent ports | read | probe | record | replay`: for whoever installs a meter.

Nothing here keeps, logs or sends a reading, but `record`, whose purpose it is. Exit codes: 0 fine;
2 wrong usage or file; 3 no valid telegram; 4 a port or file that cannot be used; 130 interrupted.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.config import parse_meter
from agent.meters.registry import PLUG_IN, PROTOCOLS

if TYPE_CHECKING:
    from agent.meters.config import MeterTable

EXIT_OK = 0
EXIT_USAGE = 2
EXIT_NO_TELEGRAM = 3
EXIT_INTERRUPTED = 130
PORT_HELP = "device, pseudo-terminal, socket://HOST:PORT or rfc2217://HOST:PORT"
STORES = "--i-understand-this-stores-readings"


def add_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the commands to the agent's."""
    _command(commands, "ports", ports)
    sub = _command(commands, "read", read)
    _add_meter(sub)
    sub.add_argument("--once", action="store_true", help="stop after the first telegram")
    sub.add_argument("--timeout", type=float, default=30.0, help="seconds without a telegram")
    sub = _command(commands, "probe", probe)
    sub.add_argument("--port", required=True, help=PORT_HELP)
    sub.add_argument("--seconds", type=_positive, default=12.0, help="to listen at each speed")
    sub = _command(commands, "record", record)
    _add_meter(sub)
    sub.add_argument("--seconds", type=_positive, help="stop after (default: when interrupted)")
    sub.add_argument(STORES, action="store_true", dest="understood", help="without it: refused")
    sub.add_argument("file", type=Path, help="a new file; only you will be able to read it")
    sub = _command(commands, "replay", replay)
    sub.add_argument("--summary", action="store_true", help="counts only, no readings")
    sub.add_argument("file", type=Path, help="what `record` wrote")


def ports(args: argparse.Namespace) -> int:
    """List the serial ports of this machine."""
    from agent.commissioning import list_ports  # noqa: PLC0415 (memory: the service needs neither)

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
    from agent.commissioning import read_meter  # noqa: PLC0415 (same)

    timeout_s = args.timeout
    reading = read_meter(_meter(args), once=args.once, as_json=args.json, timeout_s=timeout_s)
    return _run(reading, lambda: EXIT_INTERRUPTED)


def probe(args: argparse.Namespace) -> int:
    """Find out speed and protocol of a meter; shows what it found in words, never a reading."""
    from agent.commissioning import stable_path  # noqa: PLC0415 (same)
    from agent.probing import as_facts, toml_lines  # noqa: PLC0415 (same)
    from agent.shell.probe import probe as find  # noqa: PLC0415 (same)

    _meter_of(args.port)

    async def probing() -> int:
        outcome, tried = await find(args.port, _complain, seconds=args.seconds)
        port = stable_path(args.port)
        if args.json:
            _print(json.dumps(as_facts(port, outcome, tried)))
        for one in tried:
            _complain(one.text())
        if outcome is None:
            _complain(f"{args.port}: no meter that is known speaks here; see docs/meters.md")
            return EXIT_NO_TELEGRAM
        if not args.json:
            _print("\n".join([outcome.text(), *toml_lines(port, outcome)]))
        return EXIT_OK

    return _run(probing(), lambda: EXIT_INTERRUPTED)


def record(args: argparse.Namespace) -> int:
    """Write a meter's bytes to a file: raw readings, to be deleted when they have served."""
    from agent.recording import WARNING  # noqa: PLC0415 (same)
    from agent.shell.recorder import record as taping  # noqa: PLC0415 (same)

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
    from agent.commissioning import telegram_json, telegram_text  # noqa: PLC0415 (same)
    from agent.meters.reading import Telegram  # noqa: PLC0415 (same)
    from agent.recording import replayed  # noqa: PLC0415 (same)
    from agent.shell.meters import make_meter  # noqa: PLC0415 (same)
    from agent.shell.recorder import read_recording  # noqa: PLC0415 (same)

    table, passed = read_recording(args.file)
    render = telegram_json if args.json else telegram_text
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
    telegrams = counts["telegrams"]
    discarded = {name: counts[name] for name in sorted(counts) if name != "telegrams"}
    if args.json:
        _complain(json.dumps({"telegrams": telegrams, "discarded_bytes": discarded}))
    else:
        rest = ", ".join(f"{reason} {size}" for reason, size in discarded.items()) or "none"
        _complain(f"{args.file}: {telegrams} telegrams; bytes discarded: {rest}")
    return EXIT_OK if telegrams else EXIT_NO_TELEGRAM


def _run(work: Coroutine[Any, Any, int], interrupted: Callable[[], int]) -> int:
    """Run one command; Ctrl-C ends it in order, without a traceback."""
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        return interrupted()


def _meter(args: argparse.Namespace) -> "MeterTable":
    given = {"port": args.port, "protocol": args.protocol, "baud": args.baud, "crc": args.crc}
    lines = [f"{key} = {json.dumps(value)}" for key, value in given.items() if value is not None]
    return parse_meter("\n".join([*lines, *args.set]), "--set")


def _meter_of(port: str) -> "MeterTable":
    return parse_meter(f"port = {json.dumps(port)}", "--port")


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    command: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    sub = commands.add_parser(name, help=command.__doc__, description=command.__doc__)
    sub.add_argument("--json", action="store_true", help="for machines")
    sub.set_defaults(command=command)
    return sub


def _add_meter(sub: argparse.ArgumentParser) -> None:
    names = ", ".join(PROTOCOLS)
    sub.add_argument("--port", required=True, help=PORT_HELP)
    sub.add_argument("--protocol", default="dsmr", help=f"{names} or {PLUG_IN}NAME (default dsmr)")
    sub.add_argument("--baud", type=int, help="default: as the protocol has it")
    rules = ["required", "absent-allowed"]
    sub.add_argument("--crc", choices=rules, help="dsmr (default required)")
    sub.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="LINE",
        help="any other key of [meter], as its line of TOML: --set 'data_bits = 7'",
    )


def _positive(text: str) -> float:
    if not 0 < (number := float(text)) <= 86_400 * 7:
        raise ValueError(text)
    return number


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stderr.write(text + "\n")
