"""The service as a process: its store opened, its state told to systemd, ended by a signal."""

import asyncio
import logging
import os
import signal
import time
from functools import partial
from math import inf

from aggregator.config import AggregatorConfig, read_password
from aggregator.errors import StoreAwayError, StoreError
from aggregator.plans.clock_jumps import steady
from aggregator.plans.signing import read_seal
from aggregator.running.service import Service
from aggregator.store.contract import Session, Store
from aggregator.store.opening import make_worker, open_session, open_store
from aggregator.store.rollups import tend
from aggregator.store.rows import FleetDay
from aggregator.store.worker import Worker
from edge_ldp.protocol.utc import utc
from edge_ldp.service.clock import Clock
from edge_ldp.service.service_manager import ServiceManager, keep_telling

CANCEL_AGAIN_S = 0.5
AWAY_S = 2.0
REPEAT_S = 300.0
_log = logging.getLogger(__name__)


def run_service(config: AggregatorConfig, file: str, worker_name: str | None, clock: Clock) -> None:
    """Collect reports, give receipts and plans, until told to stop (SIGTERM, SIGINT).

    `file`: the configuration's. Raises ConfigError, StoreError.
    """
    password = read_password(config.broker, file)
    seal = read_seal(config, file)
    worker = make_worker(config, file, worker_name)
    store = _wait_for_store(config, file, worker)
    try:
        store.pin(pinned(config))
    except StoreError:
        store.close()
        raise
    chores = Retention(config, clock), partial(keep_fleet_day, config, clock)
    service = Service(config, password, clock, store, seal, worker=worker, chores=chores, file=file)
    asyncio.run(_serve(service))


class Retention:
    """A chore of the one worker that leads: tends the store of a configuration.

    A clock that jumps is not followed for an hour, as by the guard: it would close and delete.
    """

    def __init__(self, config: AggregatorConfig, clock: Clock) -> None:
        self._config = config
        self._clock = clock
        self._steady = steady(clock, config.intake.tolerance_s)
        self._session: Session | None = None

    def __call__(self, _: Store) -> bool:
        """Do one step and say whether there may be more; raises StoreError."""
        more = False
        now_s = self._steady.at(self._clock.now(), self._clock.monotonic())
        try:
            session = self._session = self._session or open_session(self._config, "configuration")
            more = tend(session, self._config, now_s)
        finally:
            if not more and self._session is not None:  # nothing to do for a while, or an error
                self._session.close()
                self._session = None
        return more


def keep_fleet_day(config: AggregatorConfig, clock: Clock, store: Store) -> bool:
    """Keep how many devices are silent or refuse today, a chore of the one worker that leads.

    Returns that nothing is left to do; raises StoreError.
    """
    now_s = int(clock.now())
    found = store.device_sums(config.silent_before(now_s))
    today = utc(now_s).astimezone(config.zone()).toordinal()
    day = FleetDay(today, found.heard - found.missing, found.missing, found.refusing)
    if day not in store.fleet_days():
        store.beat(day)
    return False


def _wait_for_store(config: AggregatorConfig, file: str, worker: Worker) -> Store:
    """Return the store; a server that is away is waited for, and the service manager told so."""
    manager, warned_s = ServiceManager(os.environ), -inf
    while True:
        try:
            return open_store(config, file, worker)
        except StoreAwayError as exc:
            manager.tell("READY=1", "STATUS=degraded: store away", "WATCHDOG=1")
            if time.monotonic() - warned_s >= REPEAT_S:
                warned_s = time.monotonic()
                _log.warning("%s; tried again every %.0f s", exc, AWAY_S)
            time.sleep(AWAY_S)


async def _serve(service: Service) -> None:
    task = asyncio.create_task(service.serve(), name="service")
    stop = asyncio.create_task(_signalled(), name="stop")
    manager, loop = ServiceManager(os.environ), asyncio.get_running_loop()
    states = keep_telling(manager, lambda: service.health, loop.time, ages=lambda: service.ages)
    telling = asyncio.create_task(states)
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


async def _signalled() -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await stop.wait()


def pinned(config: AggregatorConfig) -> dict[str, str]:
    """Return what a store's counts are about: they mean nothing under other slots or buckets."""
    streams = {
        f"stream {s.id}": f"{s.name} in {s.unit}, {s.bucket_slots} slots of {s.slot_seconds} s"
        for s in config.streams
    }
    return {"fleet": config.fleet, **streams}
