"""The command `edge-ldp simulate load`: much traffic, some bad, and whether all was counted."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.config import ConfigError, load_config, read_password
from aggregator.shell.service import make_broker
from aggregator.shell.store import StoreError
from aggregator.shell.stores import open_reader
from edge_ldp.device import frame
from edge_ldp.device.errors import EdgeLdpError
from firmware_stubs.load.check import check_counts, check_refused
from firmware_stubs.load.offline import run_offline
from firmware_stubs.load.online import run_online, until_counted
from firmware_stubs.load.traffic import Spec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aggregator.config import AggregatorConfig
    from firmware_stubs.load.offline import Ran
    from firmware_stubs.load.traffic import Traffic

EXIT_WRONG = 1
EXIT_USAGE = 2
EXIT_STORE = 4
DESCRIPTION = """\
Frames of a whole fleet from its real mechanisms, some of them late, twice, out of order, or lies;
afterwards every count in the store is compared with what was sent. The same seed makes the same
run (never for real readings: its noise is known to whoever knows the seed).
--offline puts them straight into a new store (and archive) at the configured paths, under plans of
its own; otherwise they go through the configured broker to an aggregator that runs, under the plans
that it published; every device must be new to that store, and nobody else may report.
Exit code: 0 all counts are right, 1 some are not, 2 wrong usage, 4 the store cannot be used.
--json: devices, rounds, reports, seed; messages; expected, counted, wrong, first (wrong cells);
refused {reason: messages}, refused_wrong (offline: reasons that differ from what was sent);
seconds (offline: in the aggregator), reports_per_s.
"""


def main(argv: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    try:
        config = load_config(args.config)
        view = _run(args, config, _spec(args, config))
    except StoreError as exc:
        sys.stderr.write(f"edge-ldp simulate load: {exc}\n")
        return EXIT_STORE
    except (ConfigError, EdgeLdpError, LookupError, ValueError) as exc:
        parser.error(str(exc))
    sys.stdout.write(json.dumps(view) + "\n" if args.json else _text(view))
    return EXIT_WRONG if view["wrong"] or view["refused_wrong"] else 0


def _run(args: argparse.Namespace, config: AggregatorConfig, spec: Spec) -> dict[str, Any]:
    if args.offline:
        traffic, ran = run_offline(config, str(args.config), spec, args.flush, _teller(args, spec))
    else:
        traffic, ran = asyncio.run(_online(args, config, spec))
    reader = open_reader(config, str(args.config))
    try:
        found = check_counts(reader, config, traffic.truth)
        refused = check_refused(reader, traffic.truth)
    finally:
        reader.close()
    if not args.offline:  # a broker may repeat what it was not told is done
        refused["refused_wrong"] = []
    return {
        "devices": spec.devices,
        "rounds": spec.rounds,
        "reports": spec.reports,
        "seed": spec.seed,
        "messages": ran.messages,
        **found,
        **refused,
        "seconds": round(ran.seconds, 3),
        "reports_per_s": round(found["counted"] / max(ran.seconds, 1e-9)),
    }


async def _online(
    args: argparse.Namespace, config: AggregatorConfig, spec: Spec
) -> tuple[Traffic, Ran]:
    broker = make_broker(config, read_password(config.broker, str(args.config)))
    broker = replace(broker, client_id=f"{config.fleet}-load", session_s=0, manual_ack=False)
    found = await run_online(config, spec, broker, args.rate, _teller(args, spec))
    await until_counted(config, str(args.config), found[0], args.wait)
    return found


def _spec(args: argparse.Namespace, config: AggregatorConfig) -> Spec:
    if not 1 <= args.reports <= frame.MAX_REPORTS:
        raise ValueError(f"--reports: expected 1 to {frame.MAX_REPORTS}")
    if args.devices > config.intake.max_devices:
        raise ValueError(f"--devices: intake.max_devices is {config.intake.max_devices}")
    if any(not 0 <= share <= 1 for share in (args.duplicates, args.delayed, args.liars)):
        raise ValueError("--duplicates, --delayed, --liars: expected shares from 0 to 1")
    if min(args.devices, args.rounds, args.flush) < 1 or args.rate <= 0 or args.seed < 0:
        raise ValueError("--devices, --rounds, --flush, --rate: expected more than 0")
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
        liars=args.liars,
    )


class _teller:  # noqa: N801 (a function that remembers when it last spoke)
    def __init__(self, args: argparse.Namespace, spec: Spec) -> None:
        self._quiet = args.json or not sys.stderr.isatty()
        self._rounds = spec.rounds
        self._said_s = 0.0

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if not self._quiet and now - self._said_s > 1:
            self._said_s = now
            sys.stderr.write(f"round {done} of {self._rounds}\n")


def _text(view: dict[str, Any]) -> str:
    refused = ", ".join(f"{reason} {n}" for reason, n in view["refused"].items())
    lines = [
        f"sent: {view['messages']} frames of {view['devices']} devices, seed {view['seed']}",
        f"reports: {view['expected']} expected, {view['counted']} counted",
        f"counts that are wrong: {view['wrong']}",
        f"frames refused: {refused or 'none'}",
        f"time: {view['seconds']} s, {view['reports_per_s']} reports/s",
    ]
    cell = "stream {stream} epoch {epoch} bucket {bucket} code {code}"
    told = f"  {cell}: {{expected}} sent, {{counted}} counted"
    lines += [told.format(**one) for one in view["first"]]
    lines += [f"  refused otherwise than sent: {one}" for one in view["refused_wrong"]]
    return "\n".join([*lines, ""])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edge-ldp simulate load",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-c", "--config", type=Path, required=True, help="the aggregator's TOML")
    add("--offline", action="store_true", help="straight into a new store, without a broker")
    add("--devices", type=int, default=1000, metavar="N", help="simulated devices")
    add("--rounds", type=int, default=20, metavar="N", help="frames of each device and stream")
    add("--reports", type=int, default=50, metavar="N", help="reports in a frame")
    add("--rate", type=float, default=1000.0, metavar="R", help="frames a second at most (broker)")
    add("--duplicates", type=float, default=0.01, metavar="P", help="share of frames sent twice")
    add("--delayed", type=float, default=0.02, metavar="P", help="share that comes rounds later")
    add("--liars", type=float, default=0.02, metavar="P", help="share of devices that lie")
    add("--seed", type=int, default=1, help="the same seed, the same run")
    add("--flush", type=int, default=200, metavar="N", help="frames in a transaction (offline)")
    add("--wait", type=float, default=60.0, metavar="S", help="for the last count (broker)")
    add("--json", action="store_true", help="one JSON object")
    return parser
