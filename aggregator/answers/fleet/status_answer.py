"""What `status` and its summary answer: the service, the streams, the devices."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from aggregator.answers.fleet.completeness import CuratedPlaces, StreamPlaces
from aggregator.answers.parts import AnswerPart, Reports, Seconds, Share, Span
from aggregator.answers.plan_view import Look, PlanTerms


class WorkerAges(AnswerPart, frozen=True, kw_only=True):
    """How old things were at a heartbeat.

    report_s, receipt_s: since the last one; link_s: since there is a link to the broker, lost_s:
    since there is none; null: not since its start, or not told.
    """

    report_s: Span | None
    receipt_s: Span | None
    link_s: Span | None
    lost_s: Span | None


class WorkerState(AnswerPart, frozen=True, kw_only=True):
    """A worker, by its last heartbeat.

    worker: its name; at_s, age_s of the heartbeat; health then ("ok", "stopped", or what is wrong:
    is_degraded), is_late: none came for two minutes, and it was not stopped; ages by the heartbeat;
    valid_s: when the first certificate of its link to the broker expires, or null.
    """

    worker: str
    at_s: Seconds
    health: str
    age_s: Span
    is_degraded: bool
    is_late: bool
    ages: WorkerAges
    valid_s: Seconds | None


class ServiceState(AnswerPart, frozen=True, kw_only=True):
    """Whether a service runs on the store.

    runs (null: nobody can say); workers[]; is_late: all of them are; last_commit_age_s (null:
    never, or in the future, as after a rehearsal whose clock was ahead).
    """

    runs: bool | None
    workers: list[WorkerState]
    is_late: bool
    last_commit_age_s: Span | None


class DatedPlan(PlanTerms, frozen=True, kw_only=True):
    """A plan in force.

    expires_s; is_ahead: it is dated ahead of now, so devices refuse it.
    """

    expires_s: Seconds
    is_ahead: bool


class StreamState(AnswerPart, frozen=True, kw_only=True):
    """A stream, and its reports summed over devices.

    stream, unit, plan in force, or null; look: the last revision of θ, or null; created, counted,
    rejected, expired, pending, duplicates, conflicts: reports; retired_s, or null; is_summed_alone
    (else left out): homes give sums of it and report no single value, so it has no plan.
    """

    stream: str
    unit: str
    plan: DatedPlan | None
    look: Look | None
    created: Reports
    counted: Reports
    rejected: Reports
    expired: Reports
    pending: Reports
    duplicates: Reports
    conflicts: Reports
    retired_s: Seconds | None
    is_summed_alone: bool | UnsetType = UNSET


class RefusedMessages(AnswerPart, frozen=True, kw_only=True):
    """What was not counted: reason, stream (or null), messages, reports in them."""

    reason: str
    stream: str | None
    messages: int
    reports: Reports


class SilentDevice(AnswerPart, frozen=True, kw_only=True):
    """The device whose status is the oldest: seen_s, age_s (null: in the future)."""

    device: str
    seen_s: Seconds
    age_s: Span | None


class MarkedDevice(AnswerPart, frozen=True, kw_only=True):
    """A device that sends codes more often than honest ones.

    device, stream, first_s, last_s, times that it was marked; and of the last mark: name: the set
    of codes; seen of reports were in it; bound: its largest honest share; chance: of as many. A
    mark takes nothing out of any count, unless the configuration says so.
    """

    device: str
    stream: str
    first_s: Seconds
    last_s: Seconds
    times: int
    name: str
    seen: Reports
    reports: Reports
    bound: Share
    chance: Share


class DecidedDevice(AnswerPart, frozen=True, kw_only=True):
    """A device that an operator, or a mark, decided about: device, since_s."""

    device: str
    since_s: Seconds


class RefusingDevice(AnswerPart, frozen=True, kw_only=True):
    """A device that refuses plans: device, reasons[]."""

    device: str
    reasons: list[str]


class DegradedDevice(AnswerPart, frozen=True, kw_only=True):
    """A device whose last status told of trouble: device, health, ages."""

    device: str
    health: str
    ages: dict[str, Span]


class TroubledDevices(AnswerPart, frozen=True, kw_only=True):
    """The devices that need somebody, or about which somebody decided.

    revoked[]: those that may not report, and held[]: those in quarantine, whose counts are kept
    apart, each device, since_s; refusing[]: device, reasons[] why it refused plans since it
    started, or what of its account is not believed; degraded[]: device, health, ages (as `devices
    list`) of those whose last status told of trouble.
    """

    revoked: list[DecidedDevice]
    held: list[DecidedDevice]
    refusing: list[RefusingDevice]
    degraded: list[DegradedDevice]


class FleetDevices(TroubledDevices, frozen=True, kw_only=True):
    """The fleet's devices.

    enrolled, online, offline, unknown (never heard of), by their last status; silent: no status for
    a day, or ever; longest_silent: device, seen_s, age_s, or null; as follow, those that need
    somebody.
    """

    enrolled: int
    online: int
    offline: int
    unknown: int
    silent: int
    longest_silent: SilentDevice | None


class FleetState(AnswerPart, frozen=True, kw_only=True):
    """What of a fleet is of no single device."""

    fleet: str
    now_s: Seconds
    service: ServiceState
    last_commit_s: Seconds | None
    streams: list[StreamState]
    refused: list[RefusedMessages]


class StatusAnswer(FleetState, frozen=True, kw_only=True):
    """What `status` answers.

    fleet; now_s; service; last_commit_s, or null; devices; curated_streams: how many; streams[];
    completeness[]: where each device's reports are, and its own sums of a period; curated[]: the
    same of released values, which are in no figure above (both are empty with --summary); marked[];
    refused[]: what was not counted; is_fast: the clock is a rehearsal's, and the day of real time.
    """

    devices: FleetDevices
    curated_streams: int
    completeness: list[StreamPlaces]
    curated: list[CuratedPlaces]
    marked: list[MarkedDevice]
    is_fast: bool


class DeviceCounts(AnswerPart, frozen=True, kw_only=True):
    """How many devices are so.

    enrolled, online, silent (no status for a day, or ever), revoked, held, refusing, marked (and
    not held); heard: may report, and were heard of ever; missing: of those, not for a day.
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


class DayCounts(AnswerPart, frozen=True, kw_only=True):
    """How many devices were so when the service last looked on a day.

    date: where people read, year-month-day; heard within a day before, missing and refusing: as
    DeviceCounts.
    """

    date: str
    heard: int
    missing: int
    refusing: int


class FleetSummary(FleetState, frozen=True, kw_only=True):
    """Numbers alone, no device's name.

    As `status`; quiet_s: how long nothing may be committed; slot_s: of the longest slot, and then
    some; room_bytes: left beside the store (null: its server knows); devices: how many are so;
    days[]: how many were, of the days of a fortnight on which the service ran; is_fast: the clock
    is a rehearsal's, and quiet_s, the day and what slot_s adds are of real time.
    """

    quiet_s: Span
    slot_s: Span
    room_bytes: Annotated[int, Meta(extra_json_schema={"x-unit": "B"})] | None
    devices: DeviceCounts
    days: list[DayCounts]
    is_fast: bool


class ShownDevice(AnswerPart, frozen=True, kw_only=True):
    """What a page of devices tells of one, of its records and all marks."""

    device: str
    group: str
    state: str
    software: str
    seen_s: Seconds | None
    health: str
    receipt_s: Span | None
    revoked_s: Seconds | None
    held_s: Seconds | None
    refusals: list[str]
    streams: list[StreamPlaces]
    marks: list[MarkedDevice]
