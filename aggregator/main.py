"""Counts what devices report, answers with sums and intervals, and sends plans back.

A command imports its own part alone: half of what a question takes would be importing the rest.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from math import inf
from typing import TYPE_CHECKING

from aggregator.commands import read
from aggregator.commands.common import EXIT_CONFIG, EXIT_STORE, EXITS, add_command, fail, make_clock
from aggregator.config import AggregatorConfig, ConfigError, load_config, read_password
from aggregator.counting.members import MemberError
from aggregator.errors import StoreAwayError, StoreError
from aggregator.plans.signing import read_seal
from aggregator.store.opening import make_worker, open_store
from edge_ldp.arguments import Parser
from edge_ldp.errors import CountsError, RowError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from aggregator.running.service import Service
    from aggregator.store.contract import Store
    from aggregator.store.worker import Worker

CANCEL_AGAIN_S = 0.5
AWAY_S = 2.0
# what commands.read adds
READING = ("check", "status", "completeness", "query", "released", "theta", "announced", "audit")
SAID_AGAIN_S = 300.0
_log = logging.getLogger(__name__)


def main(argv: Sequence[str]) -> int:
    """Run one aggregator command; return its exit code."""
    args = parser(argv[:1]).parse_args(argv, argparse.Namespace(argv=argv))
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    try:
        return int(args.command(args))
    except (ConfigError, MemberError) as exc:
        return fail(exc, EXIT_CONFIG)
    except (StoreError, CountsError, RowError) as exc:
        return fail(exc, EXIT_STORE)


def run(args: argparse.Namespace) -> int:
    """Collect reports, give receipts and plans, until told to stop (SIGTERM, SIGINT)."""
    import asyncio  # noqa: PLC0415 (time: a question needs none of it)

    from aggregator.running.service import Service  # noqa: PLC0415 (same)
    from aggregator.running.upkeep import Retention  # noqa: PLC0415 (same)

    config = load_config(args.config)
    password = read_password(config.broker, str(args.config))
    seal = read_seal(config, str(args.config))
    worker = make_worker(config, str(args.config), args.worker)
    store = _opened(config, str(args.config), worker)
    try:
        store.pin(_pinned(config))
    except StoreError:
        store.close()
        raise
    clock = make_clock(config)
    chores = [Retention(config, clock)]
    file = str(args.config)
    service = Service(config, password, clock, store, seal, worker=worker, chores=chores, file=file)
    asyncio.run(_serve(service))
    return 0


def _opened(config: AggregatorConfig, file: str, worker: Worker) -> Store:
    """Return the store; a server that is away is waited for, and the service manager told so."""
    from edge_ldp.service.service_manager import ServiceManager  # noqa: PLC0415 (time)

    manager, said_s = ServiceManager(os.environ), -inf
    while True:
        try:
            return open_store(config, file, worker)
        except StoreAwayError as exc:
            manager.tell("READY=1", "STATUS=degraded: store away", "WATCHDOG=1")
            if time.monotonic() - said_s >= SAID_AGAIN_S:
                said_s = time.monotonic()
                _log.warning("%s; tried again every %.0f s", exc, AWAY_S)
            time.sleep(AWAY_S)


async def _serve(service: Service) -> None:
    import asyncio  # noqa: PLC0415 (time)

    from edge_ldp.service.service_manager import ServiceManager, keep_telling  # noqa: PLC0415

    task = asyncio.create_task(service.serve(), name="service")
    stop = asyncio.create_task(_told_to_stop(), name="stop")
    manager, loop = ServiceManager(os.environ), asyncio.get_running_loop()
    told = keep_telling(manager, lambda: service.health, loop.time, ages=lambda: service.ages)
    telling = asyncio.create_task(told)
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
    import asyncio  # noqa: PLC0415 (time)

    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await told.wait()


def _pinned(config: AggregatorConfig) -> dict[str, str]:
    """Return what a store's counts are about: they mean nothing under other slots or buckets."""
    streams = {
        f"stream {s.id}": f"{s.name} in {s.unit}, {s.bucket_slots} slots of {s.slot_seconds} s"
        for s in config.streams
    }
    return {"fleet": config.fleet, **streams}


def _parts(words: Sequence[str]) -> list[ModuleType]:
    """Return what adds commands, all of it unless the first word is known to be of one part."""
    if words and words[0] in READING:
        return [read]
    from aggregator.commands import (  # noqa: PLC0415 (time: only who needs it)
        backup,
        devices,
        load_curve,
        migrate,
        plan,
        setup,
        streams,
    )

    return [setup, read, load_curve, migrate, devices, streams, plan, backup]


def parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the command that `words` begin with, or of all commands."""
    parser = Parser(
        prog="edge-ldp aggregator",
        description=__doc__,
        epilog=EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    running = add_command(commands, run)
    running.add_argument("--worker", help="its name among several on one database")
    for part in _parts(words):
        part.add(commands)
    return parser
