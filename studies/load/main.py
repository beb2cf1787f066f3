"""The command `edge-ldp simulate fleet`: much traffic, some bad, and whether all was counted."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from aggregator.config import ConfigError, load_config, read_password
from aggregator.errors import StoreError
from aggregator.running.service import make_broker
from aggregator.store.opening import open_reader
from edge_ldp.arguments import Parser
from edge_ldp.device import frame
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.service.broker import LinkLostError, remedy_of
from studies.load.check import check_accounts, check_counts, check_refused
from studies.load.fates import Spec
from studies.load.online import run_online

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.progress import Task

    from aggregator.config import AggregatorConfig
    from edge_ldp.service.mqtt import Broker
    from studies.load.online import LoadRun
    from studies.load.traffic import Traffic

    Straight = Callable[
        [AggregatorConfig, str, Spec, Callable[[int], None]], tuple[Traffic, LoadRun]
    ]

EXIT_WRONG = 1
EXIT_USAGE = 2
SHARES = ("duplicates", "delayed", "lost", "liars", "reinstalls")
POLL_S = 0.5
EXIT_STORE = 4
DESCRIPTION = """\
Frames of a whole fleet from its real mechanisms, some of them late, twice, out of order, or lies;
afterwards every count in the store is compared with what was sent. The same seed makes the same
run (never for real readings: its noise is known to whoever knows the seed).
They go through the configured broker to an aggregator that runs, under the plans that it published;
every device must be new to that store, and nobody else may report.
Exit code: 0 all counts are right, 1 some are not, 2 wrong usage, 4 the store cannot be used.
--json: devices, rounds, reports, seed; messages; expected, counted, wrong, first (wrong cells);
refused {reason: messages}, refused_wrong ([]: a broker may repeat what it was not told is done);
accounts: reports created, counted, rejected, expired, pending over devices and streams; gone: made
and lost with a device's state; accounts_wrong: devices/streams that do not add up;
seconds, reports_per_s.
"""


def main(argv: Sequence[str], straight: Straight | None = None) -> int:
    """Run the command and return its exit code; `straight` takes the place of the broker."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        config = load_config(args.config)
        try:
            spec = _spec(args, config)
        except ValueError as exc:
            parser.error(str(exc))
        view = _run(args, config, spec, straight)
    except StoreError as exc:
        sys.stderr.write(f"edge-ldp simulate fleet: {exc}\n")
        return EXIT_STORE
    except LinkLostError as exc:
        remedy = remedy_of(exc.reason, broker_of(load_config(args.config), str(args.config)))
        sys.stderr.write(f"edge-ldp simulate fleet: {exc}{remedy and ': ' + remedy}\n")
        return EXIT_USAGE
    except (EdgeLdpError, LookupError, ValueError) as exc:  # no wrong usage: it is not shown
        sys.stderr.write(f"edge-ldp simulate fleet: {exc}\n")
        return EXIT_USAGE
    sys.stdout.write(json.dumps(view) + "\n" if args.json else _text(view))
    right = not (view["wrong"] or view["refused_wrong"] or view["accounts_wrong"])
    return 0 if right else EXIT_WRONG


def _run(
    args: argparse.Namespace, config: AggregatorConfig, spec: Spec, straight: Straight | None
) -> dict[str, Any]:
    with _progress(quiet=args.json) as bar:
        frames = spec.devices * spec.rounds * len(config.streams)
        task = bar.add_task("frames", total=frames)

        def progress(sent: int) -> None:
            bar.update(task, completed=sent)

        if straight is not None:
            traffic, ran = straight(config, str(args.config), spec, progress)
        else:
            traffic, ran = asyncio.run(_online(args, config, spec, progress))
    found = _check(config, str(args.config), traffic, args.wait if straight is None else 0.0)
    if straight is None:  # a broker may repeat what it was not told is done
        found["refused_wrong"] = []
    return {
        "devices": spec.devices,
        "rounds": spec.rounds,
        "reports": spec.reports,
        "seed": spec.seed,
        "messages": ran.messages,
        **found,
        "seconds": round(ran.seconds, 3),
        "reports_per_s": round(found["counted"] / max(ran.seconds, 1e-9)),
    }


def _check(config: AggregatorConfig, file: str, traffic: Traffic, wait_s: float) -> dict[str, Any]:
    """Compare the store with the truth; until they agree, but no longer than `wait_s`."""
    deadline = time.monotonic() + wait_s
    while True:
        reader = open_reader(config, file)
        try:
            found = {
                **check_counts(reader, config, traffic.truth),
                **check_refused(reader, traffic.truth),
                **check_accounts(reader, traffic),
            }
        finally:
            reader.close()
        right = not (found["wrong"] or found["accounts_wrong"])
        if right or time.monotonic() >= deadline:
            return found
        time.sleep(POLL_S)


async def _online(
    args: argparse.Namespace, config: AggregatorConfig, spec: Spec, progress: Callable[[int], None]
) -> tuple[Traffic, LoadRun]:
    broker = broker_of(config, str(args.config))
    return await run_online(
        config,
        spec,
        broker,
        rate=args.rate,
        start_s=args.start,
        wait_s=args.wait,
        progress=progress,
    )


def broker_of(config: AggregatorConfig, file: str) -> Broker:
    """Return how the fleet connects: by the rehearsal's login, which may speak for all devices."""
    table, login = config.rehearsal, config.broker
    if table is not None:
        login = replace(login, username=table.username, password_file=table.password_file)
    elif login.username is not None:  # as `simulate homes` says
        remedy = "no simulated device may speak in a fleet of real ones; setup DIR --rehearsal"
        raise ConfigError(file, "rehearsal", f"expected a table with a login: {remedy}")
    broker = make_broker(replace(config, broker=login), read_password(login, file))
    return replace(broker, client_id=f"{config.fleet}-load", session_s=0, manual_ack=False)


def _spec(args: argparse.Namespace, config: AggregatorConfig) -> Spec:
    if not 1 <= args.reports <= frame.MAX_REPORTS:
        raise ValueError(f"--reports: expected 1 to {frame.MAX_REPORTS}")
    if args.devices > config.intake.max_devices:
        raise ValueError(f"--devices: intake.max_devices is {config.intake.max_devices}")
    if any(not 0 <= getattr(args, name) <= 1 for name in SHARES) or args.lost == 1:
        raise ValueError(
            f"{', '.join('--' + name for name in SHARES)}: expected shares from 0 to 1"
        )
    if min(args.devices, args.rounds) < 1 or args.rate <= 0 or args.seed < 0:
        raise ValueError("--devices, --rounds, --rate: expected more than 0")
    slot_s = max(stream.slot_seconds for stream in config.streams)
    if 10 * args.reports * slot_s > config.intake.resend_window_s:
        most = config.intake.resend_window_s // (10 * slot_s)
        raise ValueError(f"--reports: at most {most}, or delayed frames come after the window")
    return Spec(
        devices=args.devices,
        rounds=args.rounds,
        reports=args.reports,
        seed=args.seed,
        window_s=config.intake.resend_window_s,
        duplicates=args.duplicates,
        delayed=args.delayed,
        lost=args.lost,
        liars=args.liars,
        reinstalls=args.reinstalls,
    )


def _progress(*, quiet: bool) -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate())
    off = quiet or not console.is_terminal
    return Progress(*columns, TimeRemainingColumn(), console=console, disable=off)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{task.speed or 0:.0f}/s")


def _text(view: dict[str, Any]) -> str:
    refused = ", ".join(f"{reason} {n}" for reason, n in view["refused"].items())
    lines = [
        f"sent: {view['messages']} frames of {view['devices']} devices, seed {view['seed']}",
        f"reports: {view['expected']} expected, {view['counted']} counted",
        f"counts that are wrong: {view['wrong']}",
        "accounts: {created} created = {counted} counted + {rejected} rejected + {expired} expired"
        " + {pending} pending".format(**view["accounts"]),
        f"frames refused: {refused or 'none'}",
        f"time: {view['seconds']} s, {view['reports_per_s']} reports/s",
    ]
    cell = "stream {stream} epoch {epoch} bucket {bucket} code {code}"
    line = f"  {cell}: {{expected}} sent, {{counted}} counted"
    lines += [line.format(**one) for one in view["first"]]
    lines += [f"  refused otherwise than sent: {one}" for one in view["refused_wrong"]]
    lines += [f"  does not add up: {one}" for one in view["accounts_wrong"]]
    return "\n".join([*lines, ""])


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="edge-ldp simulate fleet",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-c", "--config", type=Path, required=True, help="the aggregator's TOML")
    add("--devices", type=int, default=1000, metavar="N", help="simulated devices")
    add("--rounds", type=int, default=20, metavar="N", help="frames of each device and stream")
    add("--reports", type=int, default=50, metavar="N", help="reports in a frame")
    add("--rate", type=float, default=1000.0, metavar="R", help="frames a second at most")
    add("--duplicates", type=float, default=0.01, metavar="P", help="share of frames sent twice")
    add("--delayed", type=float, default=0.02, metavar="P", help="share that comes rounds later")
    add("--lost", type=float, default=0.01, metavar="P", help="share of sendings that are lost")
    add("--reinstalls", type=float, default=0.01, metavar="P", help="share that loses its state")
    add("--liars", type=float, default=0.02, metavar="P", help="share of devices that lie")
    add("--start", type=int, metavar="S", help="first slot, seconds UTC (default: now)")
    add("--seed", type=int, default=1, help="the same seed, the same run")
    add("--wait", type=float, default=60.0, metavar="S", help="for receipts, at last")
    add("--json", action="store_true", help="one JSON object")
    return parser
