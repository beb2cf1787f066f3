"""What a store tells of devices, marks, refusals and curated streams, a row each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from aggregator.counting.records import Marked
from edge_ldp.arrays import Ints
from edge_ldp.device.sums import DAY_S
from edge_ldp.service.health import OK

LAST_BUCKET = 1 << 32
ALIVE = "alive, worker "  # of a fact, before the worker's name
ALIVE_TIMES = "times, worker "  # same; of its own, as older versions take all of ALIVE for health
FLEET_DAY = "fleet, day "  # of a fact, before a number below FLEET_DAYS: they take turns
FLEET_DAYS = 14
MOVED = "moved to"  # a fact of a SQLite store: the database that it goes on in
THERE = "name that one in [store] url; this file is only kept"
STOPPED = "stopped"  # health of a worker that ended as it was told to
# what devices can be asked for by, and put in order by
STATES = ("all", "online", "silent", "revoked", "held", "refusing", "marked")
ORDERS = ("device", "group", "state", "software", "seen", "counted", "pending")


@dataclass(frozen=True, slots=True)
class MarkRow:
    """A device marked in a stream: when first and last (seconds UTC), how often, the last mark."""

    device: str
    stream: int
    first_s: int
    last_s: int
    times: int
    mark: Marked


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device that has a row: its last status, if it ever sent one (`state` "unknown").

    `group`: by name; times in seconds UTC: when it was enrolled (None: before that was kept), and
    when it was revoked or put into quarantine (None: it is not). `refusals`: why it refused plans,
    or what of its account is not believed. By its last status, "" where that told nothing:
    `health`, `ages` as JSON (Status.ages). `heard`: days of UTC on which a status came, back from
    that of `seen_s`, a bit a day; above them a 1, which says how far back days are kept.
    """

    device: str
    state: str
    software: str
    seen_s: int
    group: str
    enrolled_s: int | None
    revoked_s: int | None
    held_s: int | None
    refusals: tuple[str, ...] = ()
    health: str = ""
    ages: str = ""
    heard: int = 0b10

    def heard_on(self, day: int) -> bool | None:
        """Say whether a status came on a day of UTC (since 1970); None: that is not kept."""
        ago = self.seen_s // DAY_S - day
        if ago < 0 or self.state == "unknown":
            return False
        return bool(self.heard >> ago & 1) if ago < self.heard.bit_length() - 1 else None

    @property
    def is_degraded(self) -> bool:
        """Say whether its last status told that something is wrong."""
        return self.health not in ("", OK)


class AuditRow(NamedTuple):
    """A change that was ordered: when (seconds UTC), by whom, and the command as it was typed."""

    at_s: int
    who: str
    command: str


class BeatTimes(NamedTuple):
    """When a report came and a receipt went last; since when there is a link, or none (lost).

    Seconds UTC. None: not since the worker started; of link and lost, one is always. `valid_s`:
    until when the certificates of the link are valid.
    """

    report_s: int | None = None
    receipt_s: int | None = None
    link_s: int | None = None
    lost_s: int | None = None
    valid_s: int | None = None

    @classmethod
    def of(cls, times: Mapping[str, int]) -> "BeatTimes":
        """Return those of the times that are asked for here, by their names without the unit."""
        return cls(*(times.get(name.removesuffix("_s")) for name in cls._fields))


class BeatRow(NamedTuple):
    """A worker's last heartbeat ("": the only one), seconds UTC; "ok", "stopped" or what is up."""

    worker: str
    at_s: int
    health: str
    times: BeatTimes = BeatTimes()

    @property
    def is_degraded(self) -> bool:
        """Say whether it told that something is wrong."""
        return self.health not in (OK, STOPPED)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Name and value of the facts that it is kept as: the times name their heartbeat."""
        times = (
            f" {name} {at_s}" for name, at_s in self.times._asdict().items() if at_s is not None
        )
        return [
            (f"{ALIVE}{self.worker}", f"{self.at_s} {self.health}"),
            (f"{ALIVE_TIMES}{self.worker}", f"{self.at_s}{''.join(times)}"),
        ]

    @classmethod
    def of(cls, worker: str, facts: Mapping[str, str]) -> "BeatRow":
        """Return what is kept of a worker; a heartbeat of an older version has no times."""
        at_s, health = facts[f"{ALIVE}{worker}"].split(" ", 1)
        beat_s, *words = facts.get(f"{ALIVE_TIMES}{worker}", "").split(" ")
        stored = dict(zip(words[::2], words[1::2], strict=False)) if beat_s == at_s else {}
        times = (int(stored[name]) if name in stored else None for name in BeatTimes._fields)
        return cls(worker, int(at_s), health, BeatTimes(*times))


class FleetDay(NamedTuple):
    """How a fleet's devices were when a day was last looked at.

    `day`: its ordinal (datetime.date) where people read; of DeviceSums `heard` and not missing,
    `missing` and `refusing`.
    """

    day: int
    heard: int
    missing: int
    refusing: int

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Name and value of the fact that it is kept as, in place of the day a fortnight before."""
        return [(f"{FLEET_DAY}{self.day % FLEET_DAYS}", " ".join(map(str, self)))]


class DeviceSums(NamedTuple):
    """How many devices there are, and how many of them are so; `marked`: and not held.

    `heard`: may report, and sent a status ever; `missing`: of those, silent.
    """

    enrolled: int
    online: int
    silent: int
    revoked: int
    held: int
    refusing: int
    marked: int
    heard: int
    missing: int


class ReportSum(NamedTuple):
    """Records of devices alike in what comes before `devices`, added up; counts are of reports.

    `group`: None of a device without a row. Slots are null where no report was settled.
    """

    stream: int
    group: int | None
    held: bool
    first_slot: int | None
    last_slot: int
    devices: int
    counted: int
    rejected: int
    expired: int
    pending: int
    duplicates: int
    conflicts: int

    @property
    def created(self) -> int:
        """Reports that were made."""
        return self.counted + self.rejected + self.expired + self.pending


class HeldRow(NamedTuple):
    """A bucket's histogram of one device that is held: codes rising, and their counts."""

    device: str
    stream: int
    epoch: int
    group: int
    bucket: int
    codes: Ints
    counts: Ints


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """Messages and reports that were not counted, by reason; `stream` is -1 where not known."""

    reason: str
    stream: int
    messages: int
    reports: int


class SumsRow(NamedTuple):
    """The sums of an hour that begins with `bucket` (aggregator.store.moments), and of whom."""

    bucket: int
    epoch: int
    group: int
    cls: int
    reporters: bytes
    sums: bytes


class ReleasedChunk(NamedTuple):
    """A chunk of a device's curated stream: θ in its unit, the bytes of its design."""

    device: str
    key: int
    series: int
    chunk: int
    theta: int
    design: bytes


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A plan as issued: its exact bytes, and when (seconds UTC)."""

    stream: int
    epoch: int
    issued_s: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision of a stream's θ (`plans.revision.Revision`), as JSON; `at_s` seconds UTC."""

    stream: int
    at_s: int
    payload: bytes


def heard_since(seen_s: str) -> str:
    """Return SQL of `devices.heard` at a status of that time, 31 days back (DeviceRow)."""
    days = f"CAST({seen_s} / {DAY_S} - devices.seen_s / {DAY_S} AS integer)"
    top = 1 << 31
    return f"""CASE WHEN {days} > 31 THEN {top + 1} WHEN {days} < 0 THEN 3
        ELSE (devices.heard << {days}) & {top - 1} | 1
            | CASE WHEN devices.heard << {days} < {top} THEN 0 ELSE {top} END END"""
