"""The command `edge-ldp simulate meter`: a meter on a pseudo-terminal, DSMR P1 unless told."""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from edge_ldp.arguments import Parser, taken_as, whole_number
from edge_ldp.device.errors import EdgeLdpError, ParameterError
from edge_ldp.extras import pip_install
from edge_ldp.service.clock import SYSTEM_CLOCK, Clock
from edge_ldp.service.tasks import task_group
from firmware_stubs.meters.faults import fault
from firmware_stubs.meters.han import FOREIGN
from firmware_stubs.meters.lines import json_line, text_line
from firmware_stubs.meters.linky import historique_telegram, linky_telegram
from firmware_stubs.meters.modbus import MODELS, Registers, serve
from firmware_stubs.meters.player import Mangle, Series, Show, play
from firmware_stubs.meters.products import TWINS, Twin
from firmware_stubs.meters.pty_port import MeterEnd, PtyPort
from firmware_stubs.meters.readout import readout_telegram, serve_readout
from firmware_stubs.meters.sml import SML
from firmware_stubs.meters.tcp_port import TcpPort
from firmware_stubs.meters.telegram import full_p1_telegram, p1_telegram
from firmware_stubs.meters.twin import PageTwin, TopicTwin, twin_of

PROTOCOLS: dict[str, Show] = {
    "dsmr": p1_telegram,
    "dsmr-full": full_p1_telegram,
    "dsmr-hex-clock": partial(p1_telegram, has_hex_clock=True),
    **SML,
    "linky": linky_telegram,
    "linky-historique": historique_telegram,
    "iec62056-21": readout_telegram,
    "iec62056-21-net": partial(readout_telegram, is_net=True),
    "lines": text_line,
    "lines-json": json_line,
    **FOREIGN,
}
Answer = Callable[[MeterEnd, Registers, bool], Coroutine[Any, Any, None]]
"""What answers with a meter's values at its end of a line, of Modbus TCP where that is asked."""


def _modbus(model: str) -> Answer:
    return lambda port, registers, is_tcp: serve(
        port, lambda: registers.values, model=model, is_tcp=is_tcp
    )


Plug = PtyPort | TcpPort | PageTwin | TopicTwin
ASKED: dict[str, Answer] = {
    "modbus": _modbus("sdm630"),
    **{f"modbus-{model}": _modbus(model) for model in MODELS},
    "iec62056-21-request": lambda port, shown, _: serve_readout(port, lambda: shown.values[0]),
}
"""Meters that answer when they are asked, those of Modbus at address 1."""

MOST_RATE = 1_000_000  # faster than any pty
EXIT_USAGE = 2
LINGER_S = 1.0  # real seconds for the reader to take the last telegram before the port goes away
DESCRIPTION = """\
A meter behind a pseudo-terminal (--link) or a network adapter (--listen), of DSMR P1 version 5 or
another --protocol: one telegram at the start of each step, dated in the clock's time, with the
step's mean power and exact registers; a meter that is asked (modbus: an SDM630 at address 1)
answers with them. Runs until the series or --count ends, or until SIGINT or SIGTERM; then the port
goes away and the exit code is 0.
"""
EXAMPLES = """\
examples:
  a telegram each second, for trying out a reader:
    edge-ldp simulate meter --link /tmp/meter --data constant:378 --step 1
  a real winter of quarter hours, one each second (15 minutes a second):
    edge-ldp simulate meter --link /tmp/meter --data uci --start 2026-01-05T00:00:00Z --rate 900
  Modbus TCP, for an agent's port = "socket://127.0.0.1:5020" and framing = "tcp":
    edge-ldp simulate meter --listen 5020 --protocol modbus --framing tcp --data constant:378
  a HomeWizard P1, for an agent's port = "http://127.0.0.1:8080/api/v1/telegram":
    edge-ldp simulate meter --product homewizard-v1 --listen 8080 --data constant:378 --step 1
  a Tasmota head, for an agent's port = "mqtt://127.0.0.1/tele/meter/SENSOR":
    edge-ldp simulate meter --product tasmota-sml --broker 1883 --data constant:378 --step 10

--data constant:W | uci[:0|1] | swiss[:HOME] | FILE.npz:NAME   (W; negative is export)
--fault noise | flip | cut | double | stuck | speed   (the line)
        clock:S (off by S seconds) | rollover:WH | reset:EPOCH   (the meter)

SIGUSR1 presses the button of homewizard-v2.
A simulated clock shows --origin at the real time --started and runs --rate times as fast; processes
with the same three numbers agree. They are printed as the [clock] table of an agent.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code; 2 for wrong usage or unusable data."""
    args = _parser().parse_args(argv)
    try:
        power_w = islice(load_series(args.data), args.count)
        start_s, clock = _times(args)
        series = Series(power_w, start_s, args.step, args.meter_id, args.base_wh)
        registers = Registers() if args.protocol in ASKED else None
        if args.framing == "tcp" and not (args.listen and args.protocol.startswith("modbus")):
            raise ParameterError("--framing", "rtu, unless with --listen and --protocol modbus")
        answer = _answering(args, registers) if registers else None
        twin = TWINS[args.product] if args.product else None
        show, mangle = registers or (twin.show if twin else PROTOCOLS[args.protocol]), None
        if args.fault:
            show, mangle = fault(args.fault, show)
        series = replace(series, show=show)
        port = _port(args, twin)
        asyncio.run(_run(_play(port, series, clock, mangle, answer, wait=args.wait)))
    except ModuleNotFoundError as exc:
        return _fail(f"{exc}: {pip_install('edge-ldp-demo')}, or use --data constant:W")
    except (EdgeLdpError, OSError) as exc:
        return _fail(str(exc))
    return 0


def _port(args: argparse.Namespace, twin: Twin | None) -> Plug:
    if twin:
        return twin_of(twin, args.listen, args.broker, args.tls)
    if args.broker:
        raise ParameterError("--broker", "nothing, unless with --product")
    return TcpPort(*args.listen) if args.listen else PtyPort(args.link)


def _answering(
    args: argparse.Namespace, registers: Registers
) -> Callable[[MeterEnd], Coroutine[Any, Any, None]]:
    return lambda port: ASKED[args.protocol](port, registers, args.framing == "tcp")


def _fail(why: str) -> int:
    sys.stderr.write(f"edge-ldp simulate meter: {why}\n")
    return EXIT_USAGE


def load_series(source: str) -> Iterable[int]:
    """Return the powers in W that --data names; raises ParameterError when there are none."""
    name, _, rest = source.rpartition(":") if ":" in source else (source, "", "")
    try:
        return repeat(int(rest)) if name == "constant" else _load(name, rest)
    except (ValueError, LookupError, FileNotFoundError) as exc:
        expected = "constant:W, uci[:0|1], swiss[:HOME] or FILE.npz:NAME of whole watts"
        raise ParameterError("--data", expected) from exc


def _load(name: str, which: str) -> list[int]:
    import numpy as np  # noqa: PLC0415 (a constant needs none)

    from firmware_stubs.data import load_household, load_swiss  # noqa: PLC0415 (same)

    if name == "uci":
        found = load_household(int(which or 0))
    elif name == "swiss":
        found = load_swiss()[int(which or 0)]
    else:
        with np.load(name, allow_pickle=False) as archive:
            found = archive[which]
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise ValueError(which)
    powers_w: list[int] = found.tolist()
    return powers_w


def _times(args: argparse.Namespace) -> tuple[int, Clock]:
    """Return the series' start and the clock: the system's unless anything else is asked for."""
    now, start_s, origin_s = time.time(), args.start, args.origin
    clock = SYSTEM_CLOCK
    if start_s is not None or origin_s is not None or args.rate != 1:
        if origin_s is None:
            origin_s = int(now) // args.step * args.step if start_s is None else start_s
        clock = Clock(origin_s, now if args.started is None else args.started, args.rate)
    if start_s is None:
        start_s = int(clock.now()) // args.step * args.step  # by the clock that it is dated in
    return start_s, clock


async def _run(whole: Coroutine[Any, Any, None]) -> None:
    """Play the series; a signal ends it early and in order."""
    playing = asyncio.ensure_future(whole)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, playing.cancel)
    await asyncio.wait((playing,))
    if not playing.cancelled():
        playing.result()


async def _play(  # noqa: PLR0913 (what the command line says)
    port: Plug,
    series: Series,
    clock: Clock,
    mangle: Mangle | None,
    answer: Callable[[MeterEnd], Coroutine[Any, Any, None]] | None,
    *,
    wait: bool,
) -> None:
    if isinstance(port, PtyPort):
        port.plug()
    else:
        await port.plug()
    if isinstance(port, PageTwin):
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, port.press)
    try:
        sys.stdout.write(_greeting(port, clock))
        sys.stdout.flush()
        async with task_group() as tasks:
            asked = [tasks.create_task(answer(port))] if answer else []
            if wait:
                await port.wait_for_reader()
            await play(port, series, clock, mangle)
            await asyncio.sleep(LINGER_S)
            for answering in asked:
                answering.cancel()
    finally:
        port.unplug()


def _greeting(port: Plug, clock: Clock) -> str:
    where = f"{port.link} ({port.device})" if isinstance(port, PtyPort) else port.name
    lines = [f"meter at {where}"]
    if clock != SYSTEM_CLOCK:
        lines += [
            "[clock]",
            'trust = "assume"',
            f"origin_s = {float(clock.origin_s)!r}",
            f"started_s = {float(clock.started_s)!r}",
            f"rate = {float(clock.rate)!r}",
        ]
    return "\n".join(lines) + "\n"


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="edge-ldp simulate meter",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--link", type=Path, metavar="PATH", help="stable name of the serial port")
    where.add_argument(
        "--listen",
        type=_address,
        metavar="[HOST:]PORT",
        help="a plain network adapter, for one client (this machine's unless HOST is given)",
    )
    text = "a broker that a --product publishes to"
    where.add_argument("--broker", type=_address, metavar="[HOST:]PORT", help=text)
    add("--product", choices=sorted(TWINS), help="a dongle that tells by pages or a broker")
    add("--tls", type=Path, metavar="FILE", help="of homewizard-v2: its certificate and key")
    add("--framing", choices=["rtu", "tcp"], default="rtu", help="of modbus with --listen")
    add("--protocol", default="dsmr", choices=sorted([*PROTOCOLS, *ASKED]), help="default dsmr")
    add("--data", default="uci", metavar="SOURCE", help="powers in W, see below (default uci)")
    add("--start", type=_instant, metavar="ISO", help="first step, UTC (default: the current one)")
    add(
        "--step",
        type=whole_number,
        default=900,
        metavar="S",
        help="seconds of a step (default 900)",
    )
    add("--rate", type=_rate, default=1.0, help="seconds of the clock in a real one (default 1)")
    add("--origin", type=float, metavar="S", help="clock at --started, epoch (default --start)")
    add("--started", type=float, metavar="S", help="real time of --origin, epoch (default now)")
    add("--count", type=whole_number, metavar="N", help="telegrams to send (default: all)")
    add("--meter-id", default="E0099000000000001", metavar="ID", help="equipment identifier")
    add("--base-wh", type=int, default=1_000_000, metavar="N", help="import register at first, Wh")
    add("--fault", metavar="NAME", help="what goes wrong, see below (default: nothing)")
    add("--wait", action="store_true", help="send nothing before somebody has opened the port")
    return parser


def _instant(text: str) -> int:
    """Return an ISO 8601 time, UTC unless it says otherwise, as seconds since 1970."""
    found = datetime.fromisoformat(text)
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not 0 < (number := int(port)) < 1 << 16:
        raise ValueError(text)
    return host or "127.0.0.1", number


_rate = taken_as(
    f"a number above 0 and below {MOST_RATE}", float, lambda rate: 0 < rate < MOST_RATE
)
