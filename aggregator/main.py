"""`edge-ldp aggregator run | check | status | query | released | theta`: wiring and nothing else.

Exit codes: 0 fine; 2 wrong usage or configuration; 4 a store that cannot be used; 5 nothing to
answer with yet (the reason is given).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aggregator.check_view import check_text, check_view
from aggregator.config import AggregatorConfig, ConfigError, load_config, read_password
from aggregator.errors import CountsError
from aggregator.query import GROUPINGS, HOUR_S, answer
from aggregator.shell.lookup import (
    LAST_BUCKET,
    read_facts,
    read_plans,
    read_records,
    read_status,
)
from aggregator.shell.plan_seal import read_seal
from aggregator.shell.released_command import (
    JSON_KEYS,
    add_options,
    answer_released,
    beside_text,
    print_text,
)
from aggregator.shell.released_lookup import read_streams
from aggregator.shell.service import Service
from aggregator.shell.store import StoreError
from aggregator.shell.stores import open_reader, open_store
from aggregator.trust_view import trust_lines
from aggregator.views import answer_text, answer_view, status_text, theta_text, theta_view
from edge_ldp.shell.clock import Clock
from edge_ldp.shell.service_manager import ServiceManager, keep_telling

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aggregator.config import StreamTable
    from aggregator.shell.store import Reader

CANCEL_AGAIN_S = 0.5
EXIT_CONFIG = 2
EXIT_STORE = 4
EXIT_NOTHING = 5


def main(argv: Sequence[str]) -> int:
    """Run one aggregator command; return its exit code."""
    args = _parser().parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        return int(args.command(args))
    except ConfigError as exc:
        return _fail(exc, EXIT_CONFIG)
    except (StoreError, CountsError) as exc:
        return _fail(exc, EXIT_STORE)


def run(args: argparse.Namespace) -> int:
    """Collect reports, give receipts and plans, until told to stop (SIGTERM, SIGINT)."""
    config = load_config(args.config)
    password = read_password(config.broker, str(args.config))
    seal = read_seal(config, str(args.config))
    store = open_store(config, str(args.config))
    try:
        store.pin(_pinned(config))
    except StoreError:
        store.close()
        raise
    asyncio.run(_serve(Service(config, password, _clock(config), store, seal)))
    return 0


def check(args: argparse.Namespace) -> int:
    """Validate the whole configuration and say what it means; nothing is sent."""
    config = load_config(args.config)
    read_password(config.broker, str(args.config))
    read_seal(config, str(args.config))
    view = check_view(config)
    _print(args, view, lambda: check_text(view))
    return 0


def status(args: argparse.Namespace) -> int:
    """Show devices, completeness, what was not counted, and the plans in force."""
    config, reader = _open(args)
    view = read_status(reader, config)
    reader.close()
    _print(args, view, lambda: status_text(view) + "\n".join([*trust_lines(view), ""]))
    return 0


def query(args: argparse.Namespace) -> int:
    """Answer with mean, total and density of a stream, each with 95-percent intervals."""
    config, reader = _open(args)
    stream = _stream(args, config)
    if args.by == "hour-of-day" and stream.bucket_s > HOUR_S:
        expected = "buckets no longer than an hour for --by hour-of-day"
        raise ConfigError(str(args.config), f"{stream.name}.bucket_slots", expected)
    first = 0 if args.since is None else args.since // stream.bucket_s
    last = LAST_BUCKET if args.until is None else (args.until - 1) // stream.bucket_s
    facts = read_facts(reader, config, stream, first, last)
    found = answer(stream, facts, args.by)
    view = answer_view(stream, found, facts.plans, read_records(reader, stream))
    beside = [one.device for one in read_streams(reader) if one.design.name == stream.name]
    view["curated_beside"] = beside
    reader.close()
    _print(args, view, lambda: answer_text(view) + beside_text(beside))
    if found.whole.mean is not None:
        return 0
    surveys = 0 if found.density is None else found.density.n
    reason = f"{stream.name}: no stream reports in this range yet; {surveys} survey reports"
    return _fail(f"{reason}, θ is chosen from {stream.min_survey_reports}", EXIT_NOTHING)


def released(args: argparse.Namespace) -> int:
    """Answer with sums of curated streams (central DP, one device each), never a fleet's."""
    config, reader = _open(args)
    try:
        view = answer_released(reader, args)
    finally:
        reader.close()
    _print(args, view, lambda: print_text(view))
    if view["released"]:
        return 0
    return _fail(f"{config.fleet}: no curated stream that this asks for", EXIT_NOTHING)


def theta(args: argparse.Namespace) -> int:
    """Show every plan of a stream: epoch, θ, when it was issued, share of survey slots."""
    config, reader = _open(args)
    stream = _stream(args, config)
    plans = theta_view(read_plans(reader, stream))
    reader.close()
    view = {"stream": stream.name, "unit": stream.unit, "theta": plans}
    _print(args, view, lambda: theta_text(stream.unit, plans))
    return 0 if plans else _fail(f"{stream.name}: no plan was issued yet", EXIT_NOTHING)


async def _serve(service: Service) -> None:
    task = asyncio.create_task(service.serve(), name="service")
    stop = asyncio.create_task(_told_to_stop(), name="stop")
    manager, loop = ServiceManager(os.environ), asyncio.get_running_loop()
    telling = asyncio.create_task(keep_telling(manager, lambda: service.health, loop.time))
    manager.tell("READY=1")
    await asyncio.wait((task, stop), return_when=asyncio.FIRST_COMPLETED)
    manager.tell("STOPPING=1")
    stop.cancel()
    telling.cancel()
    while not task.done():  # Python 3.11 can lose a cancellation that meets a lost link
        task.cancel()
        await asyncio.wait((task,), timeout=CANCEL_AGAIN_S)
    if not task.cancelled():
        task.result()


async def _told_to_stop() -> None:
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await told.wait()


def _open(args: argparse.Namespace) -> tuple[AggregatorConfig, Reader]:
    config = load_config(args.config)
    return config, open_reader(config, str(args.config))


def _stream(args: argparse.Namespace, config: AggregatorConfig) -> StreamTable:
    name = args.stream or config.streams[0].name
    found = next((stream for stream in config.streams if stream.name == name), None)
    if found is None:
        known = ", ".join(stream.name for stream in config.streams)
        raise ConfigError(str(args.config), "--stream", f"expected one of {known}")
    return found


def _clock(config: AggregatorConfig) -> Clock:
    table = config.clock
    return Clock(origin_s=table.origin_s, started_s=table.started_s, rate=table.rate)


def _pinned(config: AggregatorConfig) -> dict[str, str]:
    """Return what a store's counts are about: they mean nothing under other slots or buckets."""
    streams = {
        f"stream {s.id}": f"{s.name} in {s.unit}, {s.bucket_slots} slots of {s.slot_seconds} s"
        for s in config.streams
    }
    return {"fleet": config.fleet, **streams}


def _print(args: argparse.Namespace, view: dict[str, Any], text: Callable[[], str]) -> None:
    sys.stdout.write(json.dumps(view) + "\n" if args.json else text())


def _fail(reason: object, code: int) -> int:
    sys.stderr.write(f"edge-ldp aggregator: {reason}\n")
    return code


def _seconds(text: str) -> int:
    """Return seconds UTC of an ISO 8601 time (UTC unless it says otherwise) or of a number."""
    if text.isdecimal():
        return int(text)
    at = datetime.fromisoformat(text)
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())


def _parser() -> argparse.ArgumentParser:
    epilog = __doc__.split("\n\n")[1]
    parser = argparse.ArgumentParser(prog="edge-ldp aggregator", epilog=epilog)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    made = {}
    keys = {
        check: check_view.__doc__,
        status: read_status.__doc__,
        query: answer_view.__doc__,
        theta: theta_view.__doc__,
    }
    keys[released] = JSON_KEYS
    for command in (run, check, status, query, released, theta):
        sub = commands.add_parser(
            command.__name__,
            help=command.__doc__,
            description=command.__doc__,
            epilog=f"--json: {keys[command]}" if command in keys else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.add_argument("-c", "--config", type=Path, required=True, help="the aggregator's TOML")
        sub.set_defaults(command=command)
        made[command.__name__] = sub
    for name in ("check", "status", "query", "released", "theta"):
        made[name].add_argument("--json", action="store_true", help="for machines")
    for name in ("query", "theta"):
        made[name].add_argument("--stream", help="its name; the first one unless given")
    made["query"].add_argument("--by", choices=GROUPINGS, default="none", help="group the range")
    made["released"].add_argument("--stream", help="its name; all unless given")
    add_options(made["released"])
    for name in ("query", "released"):
        made[name].add_argument("--since", type=_seconds, help="from here on: ISO 8601 or seconds")
        made[name].add_argument("--until", type=_seconds, help="up to here: ISO 8601 or seconds")
    return parser
