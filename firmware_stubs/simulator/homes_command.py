"""The command `edge-ldp simulate homes`: homes with real load series, randomised and reported."""

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from aggregator.config import AggregatorConfig, ConfigError, load_config, read_password
from aggregator.running.service import make_broker
from edge_ldp.arguments import Parser, whole_number
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.protocol.plan import Policy
from edge_ldp.ratio import floor_ratio
from edge_ldp.service.clock import Clock
from edge_ldp.service.mqtt import Broker
from firmware_stubs.data import load_swiss
from firmware_stubs.simulator.fleet import (
    Confirmed,
    Event,
    PlanAccepted,
    PlanRefused,
    SimulatedFleet,
)
from firmware_stubs.simulator.session import (
    DAY_S,
    DayMade,
    LinkChanged,
    NoPlan,
    NoReceipts,
    Simulation,
)
from firmware_stubs.simulator.sums import sum_terms_of

Told = Event | LinkChanged | DayMade | NoPlan | NoReceipts

EXIT_UNFINISHED = 1
EXIT_USAGE = 2
WHOLE, REHEARSED = (400, 49), (50, 28)  # homes, days
LEAST_RATE = 100
LATEST_S = 4_102_444_800  # 2100: a clock that ran away
LAYOUT = "DAYS[/CELLS[/OFFSET_S[/BLOCK_HOURS]]]"
DESCRIPTION = """\
A fleet of simulated homes on one MQTT connection. At the end of each simulated day every home's
readings of that day are randomised under the plan in force and sent as one frame; a frame is kept
and sent again until the aggregator's receipt covers it. Days wait for the first plan; those that
ended before it was issued are passed over.
--of FILE takes everything from an aggregator's configuration: fleet, stream, broker, the login of
[rehearsal], the clock; the first day begins with the next one of that clock.
Exit code: 0 when every report was confirmed, 1 when interrupted before, 2 for wrong usage.
--json prints one JSON object a line: {"event": "plan" | "refused" | "day" | "link" | "waiting",
...} and at last {"event": "end", "days", "passed_over", "reports" {home: created}, "true_mean" (of
all that was reported, in the stream's unit: what `query` should find; only simulated homes tell
it), "sums" (releases of each home, with --sums), "created", "confirmed", "pending", "expired",
"resent" (frames), "epochs", "refusals" {reason: times}}.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    options = parser()
    args = options.parse_args(argv)
    try:
        if args.of is not None:
            take_over(args, load_config(args.of))
        args.homes, args.days = args.homes or WHOLE[0], args.days or WHOLE[1]
        values = homes_loads(args.data, args.homes, args.days * DAY_S // args.slot_seconds)
        fleet, start_s = simulated_fleet(args, len(values))
        broker = (
            named_broker(args)
            if args.of is None
            else configured_broker(load_config(args.of), args.of)
        )
    except ConfigError as exc:  # a file's fault is no wrong usage
        sys.stderr.write(f"edge-ldp simulate homes: {exc}\n")
        return EXIT_USAGE
    except (EdgeLdpError, LookupError, OSError, ValueError) as exc:
        options.error(str(exc))
    session = Simulation(
        fleet,
        values,
        broker,
        Clock(args.origin, args.started, args.rate),
        _listener(fleet, as_json=args.json),
    )
    finished = False
    try:
        finished = asyncio.run(_until_signalled(session, start_s, args.receipt_interval))
    except* EdgeLdpError as refused:
        sys.stderr.write(f"edge-ldp simulate homes: {refused.exceptions[0]}\n")
    _say({"event": "end", **fleet.summary()}, as_json=args.json)
    if finished and args.of is not None and not args.json:
        sys.stdout.write(f"next: edge-ldp aggregator query -c {args.of}\n")
    return 0 if finished else EXIT_UNFINISHED


async def _until_signalled(session: Simulation, start_s: int, receipt_interval_s: float) -> bool:
    """Run the session; False when SIGINT or SIGTERM ended it early."""
    running = asyncio.ensure_future(session.run(start_s, receipt_interval_s))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        return False
    return True


def take_over(args: argparse.Namespace, config: AggregatorConfig) -> None:
    """Put what an aggregator's configuration says in the place of options; raises ConfigError."""
    stream = config.streams[0]
    if stream.unit != "W":
        raise ConfigError(str(args.of), "streams[0].unit", "expected W: simulated homes have loads")
    clock = config.clock
    if clock.rate < LEAST_RATE:
        real_s = DAY_S / clock.rate
        remedy = "`edge-ldp aggregator setup DIR --rehearsal` makes one with a fast clock"
        expected = f"expected {LEAST_RATE} or more: a simulated day would take {real_s:,.0f} s; "
        raise ConfigError(str(args.of), "clock.rate", expected + remedy)
    args.fleet, args.stream, args.unit = config.fleet, stream.name, stream.unit
    args.low, args.ceiling, args.epsilon = stream.low, stream.ceiling, str(stream.epsilon)
    args.slot_seconds = stream.slot_seconds
    if args.sums is None and (wanted := stream.home_sums) is not None:
        args.sums = wanted.days, wanted.cells, wanted.offset_s, wanted.block_hours
        args.sums_epsilon = str(wanted.share * Decimal(args.sums_epsilon))
    args.receipt_interval = float(config.intake.receipt_interval_s)
    args.origin, args.started, args.rate = clock.origin_s, clock.started_s, clock.rate
    now_s = Clock(clock.origin_s, clock.started_s, clock.rate).now()
    if now_s > LATEST_S:
        remedy = "make another one: its clock ran ever since"
        expected = f"expected a rehearsal that was set up lately; {remedy}"
        raise ConfigError(str(args.of), "clock.started_s", expected)
    args.start = datetime.fromtimestamp((now_s // DAY_S + 1) * DAY_S, UTC)
    args.homes, args.days = args.homes or REHEARSED[0], args.days or REHEARSED[1]


def configured_broker(config: AggregatorConfig, file: Path) -> Broker:
    """Return the broker of a configuration, with the login that simulated homes share."""
    table, name, password = config.rehearsal, None, None
    if table is not None:
        login = replace(config.broker, password_file=table.password_file)
        name, password = table.username, read_password(login, str(file))
    elif config.broker.username is not None:
        remedy = "no simulated home may speak in a fleet of real ones; setup DIR --rehearsal"
        raise ConfigError(str(file), "rehearsal", f"expected a table with a login: {remedy}")
    broker = make_broker(config, password)
    return replace(
        broker,
        client_id=f"{config.fleet}-simulated-fleet",
        username=name,
        session_s=0,
        manual_ack=False,
    )


def named_broker(args: argparse.Namespace) -> Broker:
    """Return the broker that the options name."""
    host, port = args.broker
    name, file = args.username, args.password_file
    return Broker(
        host,
        port,
        f"{args.fleet}-simulated-fleet",
        protocol=args.protocol,
        username=name,
        password=None if file is None else file.read_text().rstrip("\n"),
    )


def simulated_fleet(args: argparse.Namespace, homes: int) -> tuple[SimulatedFleet, int]:
    """Return so many homes as the options ask for, and when their time begins."""
    policy = Policy(
        fleet=args.fleet,
        stream=args.stream,
        unit=args.unit,
        slot_seconds=args.slot_seconds,
        low=args.low,
        ceiling=args.ceiling,
        ratio=floor_ratio(args.epsilon),
    )
    start_s = args.origin if args.start is None else int(args.start.timestamp())
    if start_s % args.slot_seconds or DAY_S % args.slot_seconds:
        raise ValueError("--start must be a multiple of --slot-seconds, and so must a day")
    names = [f"home-{number:03d}" for number in range(1, homes + 1)]
    first_slot = int(start_s) // args.slot_seconds
    terms = None
    if args.sums is not None:
        terms = sum_terms_of(policy, args.sums, args.sums_epsilon)
    fleet = SimulatedFleet(policy, names, first_slot, args.receipt_interval, os.urandom, sums=terms)
    return fleet, int(start_s)


def homes_loads(source: str, homes: int, slots: int) -> NDArray[np.int64]:
    """Return integers (homes, slots): "swiss" or FILE.npz:NAME with at least as many of each."""
    if source == "swiss":
        found = load_swiss()
    else:
        file, _, name = source.rpartition(":")
        with np.load(Path(file), allow_pickle=False) as archive:
            found = archive[name]
    if found.ndim != 2 or found.dtype.kind not in "iu":  # noqa: PLR2004 (homes, slots)
        raise ValueError(f"--data {source}: expected integers in two dimensions (homes, slots)")
    if len(found) < homes or found.shape[1] < slots:
        raise ValueError(f"--data {source}: has {len(found)} homes of {found.shape[1]} slots")
    return np.asarray(found[:homes, :slots], np.int64)


def describe(event: Told, fleet: SimulatedFleet) -> dict[str, object] | None:
    """Return an event's documented fields, or None for what is not worth a line."""
    match event:
        case PlanAccepted(epoch, theta):
            return {"event": "plan", "epoch": epoch, "theta": theta, "day": fleet.days}
        case PlanRefused(reason):
            return {"event": "refused", "reason": reason}
        case LinkChanged(reason, remedy):
            more = {"remedy": remedy} if remedy else {}
            return {"event": "link", "state": reason, **more}
        case NoPlan() | NoReceipts():
            return {"event": "waiting", **_awaited(event, fleet)}
        case DayMade(day):
            box = fleet.outbox
            counts = {"created": box.created, "confirmed": box.confirmed, "resent": box.resent}
            return {"event": "day", "day": day, **counts}
        case Confirmed():
            return None


def _awaited(event: NoPlan | NoReceipts, fleet: SimulatedFleet) -> dict[str, object]:
    if isinstance(event, NoPlan):
        return {"for": f"a plan of {fleet.policy.stream}: do the broker and the aggregator run?"}
    pending = fleet.outbox.pending
    told = f"receipts of {pending} reports: does the aggregator run, may they report (`status`)?"
    return {"for": told, "pending": pending}


def _listener(fleet: SimulatedFleet, *, as_json: bool) -> Callable[[Told], None]:
    def tell(event: Told) -> None:
        fields = describe(event, fleet)
        if fields:
            _say(fields, as_json=as_json)

    return tell


def _say(fields: dict[str, object], *, as_json: bool) -> None:
    if as_json:
        line = json.dumps(fields)
    else:
        shown = {name: value for name, value in fields.items() if name not in ("event", "reports")}
        words = (f"{name} {value}" for name, value in shown.items())
        line = f"{fields['event']}: {', '.join(words)}"
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _endpoint(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise argparse.ArgumentTypeError("expected HOST:PORT")
    return host, int(port)


def _layout(text: str) -> tuple[int, int, int, int]:
    given, usual = text.split("/"), ("", "1", "0", "1")
    if len(given) > len(usual) or not all(one.isdecimal() for one in given):
        raise argparse.ArgumentTypeError(f"expected {LAYOUT}, whole numbers")
    days, cells, offset_s, block_hours = (*given, *usual[len(given) :])
    return whole_number(days), whole_number(cells), int(offset_s), whole_number(block_hours)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = Parser(
        prog="edge-ldp simulate homes",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--broker", type=_endpoint, default=("127.0.0.1", 1883), metavar="HOST:PORT")
    add(
        "--username",
        metavar="NAME",
        help="at the broker; it must be allowed to speak for all homes",
    )
    add("--password-file", type=Path, metavar="FILE", help="of --username")
    add("--protocol", choices=("auto", "5", "3.1.1"), default="auto", help="MQTT version")
    add("--fleet", default="demo", help="fleet's name in the topics")
    add("--stream", default="power", help="stream's name")
    add("--unit", default="W", help="unit of the stream and of the data")
    add("--of", type=Path, metavar="FILE", help="an aggregator's TOML that says all the rest")
    homes, days = "the first N of the data (400; 50 with --of)", "of the data (49; 28 with --of)"
    add("--homes", type=whole_number, metavar="N", help=homes)
    add("--days", type=whole_number, metavar="N", help=days)
    add("--data", default="swiss", metavar="swiss|FILE.npz:NAME", help="integers (homes, slots)")
    add("--epsilon", default="1", metavar="E", help="what every owner allows for one report")
    add("--sums", type=_layout, metavar=LAYOUT, help="homes release sums besides")
    add("--sums-epsilon", default="8", metavar="E", help="of sums, in any 97 slots (8)")
    add("--low", type=int, default=0, metavar="W", help="least value the owners allow")
    add("--ceiling", type=int, default=43_470, metavar="W", help="largest value they allow")
    add("--slot-seconds", type=int, default=900, metavar="S", help="length of a slot")
    add("--receipt-interval", type=float, default=DAY_S, metavar="S", help="the aggregator's")
    add("--start", type=datetime.fromisoformat, metavar="ISO", help="first slot (the origin)")
    add("--origin", type=float, default=0.0, metavar="S", help="clock's time when it started")
    add("--started", type=float, default=0.0, metavar="S", help="real time when it started")
    add("--rate", type=float, default=1.0, help="the clock's seconds in a real one")
    add("--json", action="store_true", help="events and summary as JSON lines")
    return parser
