"""`status` as people read it: a summary, however many devices there are."""

from collections.abc import Iterable, Sequence
from datetime import UTC, tzinfo

from msgspec.structs import asdict

from aggregator.answers.fleet import status_answer as told
from aggregator.answers.fleet.status import COLUMNS
from aggregator.answers.plan_view import Look
from aggregator.answers.units import age_text, clock_text, text_table
from edge_ldp.service.health import LINK_STATES

MANY = 20  # rows of a table in a summary
NOTE = "a mark takes nothing out of any count, unless [guard] quarantine says so"


def status_text(view: told.StatusAnswer, zone: tzinfo = UTC) -> str:
    """Return the status as people read it."""
    devices, service = view.devices, view.service
    states = f"{devices.online} online, {devices.offline} offline"
    day = "day of real time" if view.is_fast else "day"
    states += f", {devices.unknown} never heard; {devices.silent} silent for a {day} or ever"
    lines = [f"fleet {view.fleet}: {devices.enrolled} devices, by their last status {states}"]
    if service.runs is False:
        lines.append("NO SERVICE RUNS ON THIS STORE: all of this is as old as the last commit")
    elif service.is_late:
        lines.append("THE SERVICE DOES NOT ANSWER: all of this is as old as its last heartbeat")
    lines += [worker_text(beat, zone) for beat in service.workers]
    lines.append(f"last commit {_when(view.last_commit_s, service.last_commit_age_s, zone)}")
    silent = devices.longest_silent
    if silent is not None:
        when = _when(silent.seen_s, silent.age_s, zone)
        lines.append(f"oldest status message: {silent.device}, {when}")
    lines += [_plan_line(stream, view.now_s, zone) for stream in view.streams]
    rows = [
        [stream.stream, *(f"{getattr(stream, name):,}" for name in COLUMNS)]
        for stream in view.streams
    ]
    lines += ["", text_table(["reports of all devices", *COLUMNS], rows)]
    if view.curated_streams:
        lines.append(f"{view.curated_streams} curated streams, in no figure above: `released`")
    lines.append("of each device: `completeness`, `devices list`")
    refused = [(row.reason, row.stream, row.messages, row.reports) for row in view.refused]
    if refused:
        lines += ["", text_table(["not counted", "stream", "messages", "reports"], refused)]
    if any(row.reason == "duplicate" for row in view.refused):
        lines.append("duplicate: sent again by the device, and counted already")
    if any(row.reason == "foreign" for row in view.refused):
        lines.append("foreign: of a plan that this store never made; its device keeps the reports")
    lines += looks_lines(((stream.stream, stream.look) for stream in view.streams), zone)
    lines += trust_lines(devices, view.marked, zone)
    return "\n".join(lines) + "\n"


def worker_text(beat: told.WorkerState, zone: tzinfo = UTC) -> str:
    """Return how a worker is by its last heartbeat."""
    name = f"worker {beat.worker}" if beat.worker else "service"
    state = f"DOES NOT ANSWER, was {beat.health}" if beat.is_late else beat.health
    text = f"heartbeat {_when(beat.at_s, beat.age_s, zone)}"
    return ", ".join([f"{name} {state}", text, *beat_ages(beat)])


def beat_ages(beat: told.WorkerState) -> list[str]:
    """Return in words how old link, report and receipt are; nothing where it was not told.

    Who does not answer may have another link by now, or none.
    """
    every = asdict(beat.ages)
    ages = {name.removesuffix("_s"): age for name, age in every.items() if age is not None}
    links = LINK_STATES if not beat.is_late else {}
    came = ("report", "receipt")
    texts = [f"{words} for {age_text(ages[name])}" for name, words in links.items() if name in ages]
    texts += [f"last {name} {age_text(ages[name])} ago" for name in came if name in ages]
    if never := [f"no {name}" for name in came if ages and name not in ages]:
        texts.append(f"{' and '.join(never)} since its start")
    return texts


def _plan_line(stream: told.StreamState, now_s: int, zone: tzinfo) -> str:
    plan = stream.plan
    terms = "sums of homes alone, so no plan" if stream.is_summed_alone else "no plan yet"
    if plan is not None:
        age_s = None if plan.is_ahead else max(0, now_s - plan.issued_s)
        terms = f"epoch {plan.epoch}, θ = {plan.theta} {stream.unit}"
        terms += f", issued {_when(plan.issued_s, age_s, zone)}"
        terms += ": DATED AHEAD, devices refuse it" if plan.is_ahead else ""
    if stream.retired_s is not None:
        terms += f", retired since {clock_text(stream.retired_s, zone)} {zone}"
    return f"{stream.stream}: {terms}"


def _when(seconds: int | None, age_s: int | None, zone: tzinfo) -> str:
    """Return a time and how long ago it was; without an age it is in the future."""
    if seconds is None:
        return "never"
    age = "in the future: by a rehearsal's clock?" if age_s is None else f"{age_text(age_s)} ago"
    return f"{clock_text(seconds, zone)} {zone} ({age})"


def looks_lines(looks: Iterable[tuple[str, Look | None]], zone: tzinfo = UTC) -> list[str]:
    """Return for people what the last revision of each stream said."""
    lines = []
    for name, look in looks:
        if look is None:
            continue
        lines += ["", f"{name}, looked at {clock_text(look.at_s, zone)} {zone}:"]
        lines += [f"  {reason}" for reason in look.reasons]
        lines += [f"  warning: {text}" for alarm in look.alarms for text in alarm.warnings]
    return lines


def trust_lines(
    devices: told.TroubledDevices, marked: Sequence[told.MarkedDevice], zone: tzinfo = UTC
) -> list[str]:
    """Return for people the devices that need somebody, by what is wrong with them."""
    decided = ["device", f"revoked {zone}", f"quarantine {zone}"]
    degraded = ["device", "by its last status", "last telegram then"]
    marks = ["marked", "codes", "seen", "of reports", "bound", "chance", f"first {zone}", "times"]
    refusing = [(row.device, "; ".join(row.reasons)) for row in devices.refusing]
    return [
        *_first(decided, _decided_rows(devices, zone), "devices list --only revoked|held"),
        *_first(degraded, [_degraded_row(row) for row in devices.degraded], "devices list"),
        *_first(["device", "refused, last reasons"], refusing, "status --json"),
        *_first(marks, [_marked_row(row, zone) for row in marked], "status --json"),
        *([NOTE] if marked else []),
    ]


def _first(head: Sequence[str], rows: Sequence[Sequence[object]], where: str) -> list[str]:
    """Return a table's first rows, nothing without any; `where` all of them are shown."""
    if not rows:
        return []
    lines, more = text_table(head, rows).splitlines(), len(rows) - MANY
    return ["", *lines[: 1 + MANY], *([f"and {more} more: `{where}`"] if more > 0 else [])]


def _decided_rows(devices: told.TroubledDevices, zone: tzinfo) -> list[list[str]]:
    decided = (devices.revoked, devices.held)
    since = [{row.device: row.since_s for row in rows} for rows in decided]
    return [
        [device, *(clock_text(of.get(device), zone) for of in since)]
        for device in sorted(since[0].keys() | since[1].keys())
    ]


def _degraded_row(row: told.DegradedDevice) -> list[str]:
    age_s = row.ages.get("telegram_s")
    return [row.device, row.health, "-" if age_s is None else f"{age_text(age_s)} ago"]


def _marked_row(row: told.MarkedDevice, zone: tzinfo) -> list[object]:
    odds = (f"{row.bound:.4f}", f"{row.chance:.1e}")
    counts = (row.seen, row.reports)
    first = clock_text(row.first_s, zone)
    return [f"{row.device} {row.stream}", row.name, *counts, *odds, first, row.times]
