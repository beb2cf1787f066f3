"""`edge-ldp aggregator check --live`: everything that the service needs, tried for once.

It disturbs no service that runs, and changes nothing: the store is only read, and what the broker
is asked for is nobody's (`aggregator.running.rights`).
"""

import asyncio
import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from aggregator.config import AggregatorConfig, ClockTable, read_password
from aggregator.errors import OldStoreError, StoreError
from aggregator.plans.signing import read_seal
from aggregator.running.process import pinned
from aggregator.running.rights import NOTHING, RUN, Trial, plan_part, read_stored, try_rights
from aggregator.running.service import make_broker
from aggregator.store.contract import Reader
from aggregator.store.opening import open_reader
from aggregator.store.rows import MOVED, STOPPED, THERE, BeatRow
from edge_ldp.service.clock import Clock, kernel_synchronised
from edge_ldp.service.trial import Finding, own_name, try_broker, untried

WAIT_S = 5.0  # for what a broker retains
LINKS_S = 5.0  # within that a service has its link, and said so
LOOK_S = 0.2
CONNECT_S = 10.0
LEAST_BYTES = 256 << 20  # of room on a disk


def try_service(
    config: AggregatorConfig, file: str, clock: Clock, wait_s: float = WAIT_S
) -> list[Finding]:
    """Return the verdicts in the order in which the service needs the parts.

    `file`: the configuration's. Raises ConfigError for secrets that cannot be read, StoreError for
    a store that goes away meanwhile.
    """
    password, seal = read_password(config.broker, file), read_seal(config, file)
    store, reader, is_new = _try_store(config, file)
    found = [store, *_try_rooms(config)]
    try:
        if reader is None:
            found += untried(["service"], "the store tells nothing")
        else:
            found.append(_try_running(reader, clock))
        found.append(_try_clock(config, clock, reader))
        broker = replace(
            make_broker(config, password),
            client_id=own_name(),
            session_s=0,
            manual_ack=False,
            connect_timeout_s=CONNECT_S,
        )
        reread = None if reader is None else partial(read_stored, reader, seal)
        stored = NOTHING if is_new else None
        asked = Trial(config, seal, reread, stored if reread is None else reread(), wait_s, clock)
        parts = ["publishing", "reports", "statuses", *map(plan_part, config.planned)]
        return found + asyncio.run(try_broker(broker, parts, partial(try_rights, asked)))
    finally:
        if reader is not None:
            reader.close()


def _try_store(config: AggregatorConfig, file: str) -> tuple[Finding, Reader | None, bool]:
    """Return the verdict on the store, its reader where it can be read, and whether it is to come.

    A store that is to come has no plans and no devices, which is something to go by.
    """
    path = None if config.store.path is None else Path(config.store.path)
    if path is not None and not path.exists():
        place = _try_place("store", path.absolute().parent, f"{path} is not there yet")
        return place, None, True
    try:
        reader = open_reader(config, file)
    except OldStoreError as exc:
        told = f"{exc.where} {exc.reason}: {RUN} makes it new"
        return Finding("store", "ok", told), None, exc.version == 0
    except StoreError as exc:
        return _unusable(exc), None, False
    try:
        return _try_opened(config, reader), reader, False
    except StoreError as exc:
        reader.close()
        return _unusable(exc), None, False


def _unusable(exc: StoreError) -> Finding:
    return Finding("store", "fails", f"{exc.where} {exc.reason}", exc.remedy)


def _try_opened(config: AggregatorConfig, reader: Reader) -> Finding:
    where, kept = config.store.path or config.store.url, reader.facts()
    if MOVED in kept:
        return Finding("store", "fails", f"{where} was moved to {kept[MOVED]}", THERE)
    for name, value in pinned(config).items():
        if kept.get(name, value) != value:
            told = f"{where} was made for {name} = {kept[name]}, not {value}"
            return Finding("store", "fails", told, "put it back, or name a new store")
    if closed := reader.unwritable():
        remedy = "run this as the service's user, or give that user the right to write"
        return Finding("store", "fails", f"{where}: {closed}", remedy)
    return Finding("store", "ok", f"{where} opens, is of this version, and can be written")


def _try_place(what: str, place: Path, told: str) -> Finding:
    """Return the verdict on a directory in which the service is to make something."""
    if not place.is_dir():
        remedy = f"mkdir -p {place}, for the user that the service runs as"
        return Finding(what, "fails", f"{place} is not there", remedy)
    if os.access(place, os.W_OK | os.X_OK, effective_ids=True):
        return Finding(what, "ok", f"{told}: {RUN} makes it")
    remedy = "run this as the service's user, or let that user own the directory"
    return Finding(what, "fails", f"{place} cannot be written by this user", remedy)


def _try_rooms(config: AggregatorConfig) -> list[Finding]:
    """Return how much room there is for the store, and for the archive where there is one."""
    found = []
    if config.store.path is None:
        found += untried(["room"], "the database's server has the disk")
    else:
        found.append(_try_room("room", Path(config.store.path).absolute().parent))
    if config.archive is not None:
        found.append(_try_room("archive", Path(config.archive.path).absolute()))
    return found


def _try_room(what: str, place: Path) -> Finding:
    there = next(one for one in (place, *place.parents) if one.exists())
    if not os.access(there, os.W_OK | os.X_OK, effective_ids=True):
        remedy = "run this as the service's user, or let that user own the directory"
        return Finding(what, "fails", f"{there} cannot be written by this user", remedy)
    disk = os.statvfs(there)
    free = disk.f_bavail * disk.f_frsize
    told = f"{free / (1 << 30):,.1f} GiB free at {there}"
    if free >= LEAST_BYTES:
        return Finding(what, "ok", told)
    remedy = f"make room: below {LEAST_BYTES >> 20} MiB the service may soon count nothing"
    return Finding(what, "fails", told, remedy)


def _try_running(reader: Reader, clock: Clock) -> Finding:
    """Say whether a service runs on the store, and what its workers last said of themselves."""
    is_served = reader.is_served()
    if is_served is None:
        return Finding("service", "untried", "this user cannot see whether one runs")
    if not is_served:
        return Finding("service", "ok", "none runs on this store now")
    beats = _settled_beats(reader, clock)
    now_s = clock.now()
    said = [
        f"{one.worker or 'it'} said {one.health} {max(0, now_s - one.at_s) / clock.rate:.0f} s ago"
        for one in beats
    ]
    told = "; ".join(["one runs", *said])
    if any(one.is_degraded for one in beats):
        remedy = "what it waits for stands in its log, and mostly below"
        return Finding("service", "fails", told, remedy)
    return Finding("service", "ok", told)


def _settled_beats(reader: Reader, clock: Clock) -> list[BeatRow]:
    """Return the last heartbeats; one of a moment ago is from before the link: the next, then."""
    until = time.monotonic() + LINKS_S
    while True:
        beats = [one for one in reader.beats() if one.health != STOPPED]
        recent_s = clock.now() - LINKS_S * clock.rate
        begins = any(one.is_degraded and (one.times.lost_s or 0) > recent_s for one in beats)
        if not begins or time.monotonic() >= until:
            return beats
        time.sleep(LOOK_S)


def _try_clock(config: AggregatorConfig, clock: Clock, reader: Reader | None) -> Finding:
    if config.clock != ClockTable():
        return Finding("clock", "ok", "a rehearsal's ([clock])")
    last_s = None if reader is None else reader.last_commit_s()
    ahead_s = 0 if last_s is None else last_s - clock.now()
    if ahead_s > config.intake.tolerance_s:
        told = f"{ahead_s:.0f} s behind the store's last commit"
        return Finding("clock", "fails", told, "set it right before the service runs")
    if kernel_synchronised():
        return Finding("clock", "ok", "synchronised")
    told = "not synchronised: plans are dated by it, and time buckets closed"
    return Finding(
        "clock", "fails", told, "switch time synchronisation on: timedatectl set-ntp true"
    )
