"""What of a fleet needs an operator, by its summary: for the overview, and as metrics."""

from collections import deque
from collections.abc import Iterable, Iterator
from shlex import quote
from typing import NamedTuple

from aggregator.answers.fleet.status_answer import FleetSummary, StreamState
from aggregator.answers.units import age_text
from aggregator.counting.retention import DAY_S, HOUR_S

Alarm = dict[str, str]

SILENT = 0.1  # of the devices that were heard of
REFUSED = 100  # messages within an hour
LINK_S = 60  # without a link
ENOUGH = 20  # reports that do not all fail to come by chance
LEAST_BYTES = 1 << 30  # of room for the store
EXPIRING = ((7, "critical"), (30, "warning"), (90, "info"))  # days that a certificate is valid
STEP_S = 300  # between what is remembered
SEVERITIES = ("info", "warning", "critical")
ALARMS = {  # each is a rule of config/prometheus-alerts.yml; its severity where it has but one
    "ServiceDown": "critical",
    "LinkLost": "critical",
    "NothingCounted": "critical",
    "RoomLow": "critical",
    "PlanAhead": "critical",
    "NoPlan": "critical",
    "ServiceDegraded": "warning",
    "CertificateExpires": "",
    "DevicesSilent": "warning",
    "PlansRefused": "warning",
    "DevicesMarked": "warning",
    "LookAlarm": "warning",
    "ReportsPending": "warning",
    "ReportsExpired": "warning",
    "ReportsRefused": "warning",
}
PROGRAM = "edge-ldp aggregator"
UNIT = "systemctl status edge-ldp-aggregator"


class OfLate(NamedTuple):
    """What happened of late, as far as it was seen: since the first summary, where that is later.

    `expired` reports within a day, `refused` messages within an hour; `made`: reports that devices
    make in a day, and `due_s`: when ENOUGH more should have been counted, by what was seen.
    """

    expired: int = 0
    refused: int = 0
    made: float = 0.0
    due_s: float = float("inf")


class _Seen(NamedTuple):
    at_s: int
    expired: int
    refused: int
    created: int
    counted: int


class Lately:
    """What was counted up at times of the last day, so that alarms end; summaries are noted."""

    def __init__(self) -> None:
        self._seen: deque[_Seen] = deque()

    def __len__(self) -> int:
        return len(self._seen)

    def note(self, found: FleetSummary) -> OfLate:
        """Return what happened of late, by this summary and those before."""
        now_s, seen, streams = found.now_s, self._seen, found.streams
        now = _Seen(
            now_s,
            sum(stream.expired for stream in streams),
            sum(row.messages for row in found.refused),
            sum(stream.created for stream in streams),
            sum(stream.counted for stream in streams),
        )
        while seen and seen[-1].at_s > now_s:  # the clock was set back
            seen.pop()
        if not seen or seen[-1].at_s <= now_s - STEP_S:
            seen.append(now)
        while len(seen) > 1 and seen[1].at_s <= now_s - DAY_S:
            seen.popleft()
        first = seen[0]
        before = next((one for one in reversed(seen) if one.at_s <= now_s - HOUR_S), first)
        over_s, until_s = now_s - first.at_s, (found.last_commit_s or 0) - first.at_s
        counted = now.counted - first.counted
        return OfLate(
            max(0, now.expired - first.expired),
            max(0, now.refused - before.refused),
            (now.created - first.created) * DAY_S / over_s if over_s >= HOUR_S else 0.0,
            ENOUGH * until_s / counted if counted > 0 and until_s >= HOUR_S else float("inf"),
        )


def alarms(
    found: FleetSummary, lately: OfLate, file: str, marked_one: str | None = None
) -> Iterator[Alarm]:
    """Yield what needs an operator: name (of ALARMS), severity, text, command.

    `lately`: as of Lately. `file`: the configuration's name, as a shell takes it. `marked_one`: the
    device that alone is marked. What follows from another alarm is none of its own.
    """
    stopped = [*_stopped(found, lately, file)]
    yield from stopped
    plans = [
        alarm
        for stream in found.streams
        if stream.retired_s is None
        for alarm in _stream_alarms(stream, file)
    ]
    yield from plans
    if not stopped and not plans:
        yield from _degraded(found, file)
    if found.room_bytes is not None and found.room_bytes < LEAST_BYTES:
        text = f"{found.room_bytes >> 20:,} MiB are left for the store, then nothing is counted"
        yield _alarm("RoomLow", text, f"{PROGRAM} check -c {file}")
    yield from _expiring(found, file)
    yield from _device_alarms(found, file, marked_one, is_heard=not stopped)
    if lately.expired:
        text = f"within a day {lately.expired:,} reports expired on their devices, unsent"
        yield _alarm("ReportsExpired", text, f"{PROGRAM} completeness -c {file}")
    pending = sum(stream.pending for stream in found.streams)
    if not stopped and 0 < lately.made < pending:
        text = f"{pending:,} reports wait on their devices, more than a day's"
        yield _alarm("ReportsPending", text, f"{PROGRAM} completeness -c {file}")
    if lately.refused > REFUSED:
        text = f"within an hour {lately.refused:,} messages were refused"
        yield _alarm("ReportsRefused", text, f"{PROGRAM} status -c {file}")


def worst_first(found: Iterable[Alarm]) -> list[Alarm]:
    """Return alarms by severity; of one severity as they were raised."""
    return sorted(found, key=lambda alarm: -SEVERITIES.index(alarm["severity"]))


def _stopped(found: FleetSummary, lately: OfLate, file: str) -> Iterator[Alarm]:
    """Yield why nothing is counted now, the nearest cause alone."""
    service, last_s = found.service, found.last_commit_s
    running = [one for one in service.workers if one.health != "stopped" and not one.is_late]
    lost = [0 if one.ages.lost_s is None else one.ages.lost_s for one in running]
    linked = [one.ages.link_s or 0 for one in running] if found.devices.heard else []
    idle_s = max(linked, default=0) if last_s is None else found.now_s - last_s
    run = f"{PROGRAM} run -c {file}" if found.is_fast else UNIT  # a rehearsal has no unit
    if service.runs is False:
        yield _alarm("ServiceDown", "no service runs on this store: nothing is counted", run)
    elif service.is_late:
        text = "no worker's heart has beaten for two minutes: nothing is counted"
        yield _alarm("ServiceDown", text, run)
    elif lost and min(lost) >= LINK_S:
        text = f"for {age_text(min(lost))} there is no link to the broker"
        yield _alarm("LinkLost", text, f"{PROGRAM} check --live -c {file}")
    elif idle_s > min(found.quiet_s, max(found.slot_s, lately.due_s)):
        text = f"nothing was counted for {age_text(idle_s)}: do the devices reach the broker?"
        yield _alarm("NothingCounted", text, f"{PROGRAM} check --live -c {file}")


def _degraded(found: FleetSummary, file: str) -> Iterator[Alarm]:
    for one in found.service.workers:
        if one.is_late or (one.is_degraded and one.ages.lost_s is None):
            how = "does not answer" if one.is_late else f"is {one.health}"
            text = f"worker {one.worker or 'service'} {how}"
            yield _alarm("ServiceDegraded", text, f"{PROGRAM} check --live -c {file}")
            return


def _expiring(found: FleetSummary, file: str) -> Iterator[Alarm]:
    ends = [one.valid_s for one in found.service.workers if one.valid_s is not None]
    if not ends:
        return
    left_s = min(ends) - found.now_s
    for days, severity in EXPIRING:
        if left_s <= days * DAY_S:
            when = f"expires in {age_text(left_s)}" if left_s > 0 else "has expired"
            text = f"a certificate of the link to the broker {when}: then no device reports"
            command = f"{PROGRAM} check --live -c {file}"
            yield _alarm("CertificateExpires", text, command) | {"severity": severity}
            return


def _device_alarms(
    found: FleetSummary, file: str, marked_one: str | None, *, is_heard: bool
) -> Iterator[Alarm]:
    devices = found.devices
    if is_heard and devices.missing > SILENT * devices.heard:
        text = f"{devices.missing:,} of {devices.heard:,} devices have been silent for a day"
        yield _alarm("DevicesSilent", text, f"{PROGRAM} devices list -c {file}")
    if devices.refusing:
        text = f"{devices.refusing:,} devices refuse plans, or report impossible counts"
        yield _alarm("PlansRefused", text, f"{PROGRAM} status -c {file}")
    if devices.marked:
        text = f"{devices.marked:,} devices send codes as no honest one does"
        what = f"status -c {file}"
        if marked_one is not None:
            what = f"devices quarantine -c {file} {quote(marked_one)}"
        yield _alarm("DevicesMarked", text, f"{PROGRAM} {what}")


def _stream_alarms(stream: StreamState, file: str) -> Iterator[Alarm]:
    """Yield what of one stream's plan needs an operator."""
    name, plan = stream.stream, stream.plan
    rings = () if stream.look is None else stream.look.alarms
    for text in [warning for one in rings for warning in one.warnings][:1]:
        command = f"{PROGRAM} plan show -c {file} --stream {name}"
        yield _alarm("LookAlarm", f"{name}: {text}", command)
    if stream.is_summed_alone:
        return
    if plan is None:
        text = f"{name} has no plan, so no device reports it"
        yield _alarm("NoPlan", text, f"{PROGRAM} run -c {file}")
    elif plan.is_ahead:
        text = f"{name}: its plan is dated ahead, so devices refuse it: is the clock right?"
        yield _alarm("PlanAhead", text, f"{PROGRAM} check --live -c {file}")


def _alarm(name: str, text: str, command: str) -> Alarm:
    return {"name": name, "severity": ALARMS[name], "text": text, "command": command}
