"""What the commands print: JSON with documented keys for machines, plain tables for people."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from aggregator.answers.crowds import account_told
from aggregator.answers.units import age_text, clock_text, text_table
from edge_ldp.service.health import LINK_STATES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aggregator.counting.records import Key, Record


def completeness_view(
    key: Key, record: Record, names: Mapping[int, str], least: int = 1
) -> dict[str, Any]:
    """Return one device and stream of `status`: reports, by where they are.

    created = counted + rejected + expired + pending; expired and pending by the device's last
    status; duplicates and conflicts came on top; gaps: batches first..last that are missing.
    unconfirmed: what the device says it gave up without a receipt, of which expired never came.
    `least` above 1: null as `crowds.account_told` says.
    """
    device, stream = key
    told = account_told(whereabouts(record), least)
    return {"device": device, "stream": names.get(stream, str(stream)), **told}


def whereabouts(record: Record) -> dict[str, Any]:
    """Return where the reports of a device's stream are, or the values of a curated one."""
    return {
        "created": record.counted + record.rejected + record.given_up + record.pending,
        "counted": record.counted,
        "rejected": record.rejected,
        "expired": record.given_up,
        "unconfirmed": record.expired,
        "pending": record.pending,
        "duplicates": record.duplicates,
        "conflicts": record.conflicts,
        "highest_batch": record.state.highest,
        "gaps": [[gap.first, gap.last] for gap in record.missing],
    }


def status_text(view: Mapping[str, Any], zone: tzinfo = UTC) -> str:
    """Return the status as people read it: a summary, however many devices there are."""
    devices, now_s = view["devices"], view["now_s"]
    states = f"{devices['online']} online, {devices['offline']} offline"
    day = "day of real time" if view["is_fast"] else "day"
    states += f", {devices['unknown']} never heard; {devices['silent']} silent for a {day} or ever"
    lines = [f"fleet {view['fleet']}: {devices['enrolled']} devices, by their last status {states}"]
    if view["service"]["runs"] is False:
        lines.append("NO SERVICE RUNS ON THIS STORE: all of this is as old as the last commit")
    elif view["service"]["is_late"]:
        lines.append("THE SERVICE DOES NOT ANSWER: all of this is as old as its last heartbeat")
    lines += [worker_text(beat, zone) for beat in view["service"]["workers"]]
    last_age_s = view["service"]["last_commit_age_s"]
    lines.append(f"last commit {_when(view['last_commit_s'], last_age_s, zone)}")
    silent = devices["longest_silent"]
    if silent is not None:
        when = _when(silent["seen_s"], silent["age_s"], zone)
        lines.append(f"oldest status message: {silent['device']}, {when}")
    for stream in view["streams"]:
        plan = stream["plan"]
        terms = "no plan yet"
        if plan is not None:
            terms = f"epoch {plan['epoch']}, θ = {plan['theta']} {stream['unit']}"
            age_s = None if plan["is_ahead"] else max(0, now_s - plan["issued_s"])
            terms += f", issued {_when(plan['issued_s'], age_s, zone)}"
            terms += ": DATED AHEAD, devices refuse it" if plan["is_ahead"] else ""
        lines.append(f"{stream['stream']}: {terms}{_retired(stream, zone)}")
    columns = ["created", "counted", "rejected", "expired", "pending", "duplicates", "conflicts"]
    rows = [
        [stream["stream"], *(f"{stream[name]:,}" for name in columns)] for stream in view["streams"]
    ]
    lines += ["", text_table(["reports of all devices", *columns], rows)]
    if view["curated_streams"]:
        lines.append(f"{view['curated_streams']} curated streams, in no figure above: `released`")
    lines.append("of each device: `completeness`, `devices list`")
    refused = [
        [row["reason"], row["stream"] or "-", str(row["messages"]), str(row["reports"])]
        for row in view["refused"]
    ]
    if refused:
        lines += ["", text_table(["not counted", "stream", "messages", "reports"], refused)]
    if any(row[0] == "duplicate" for row in refused):
        lines.append("duplicate: sent again by the device, and counted already")
    if any(row[0] == "foreign" for row in refused):
        lines.append("foreign: of a plan that this store never made; its device keeps the reports")
    return "\n".join(lines) + "\n"


def worker_text(beat: Mapping[str, Any], zone: tzinfo = UTC) -> str:
    """Return how a worker is by its last heartbeat."""
    name = f"worker {beat['worker']}" if beat["worker"] else "service"
    state = f"DOES NOT ANSWER, was {beat['health']}" if beat["is_late"] else beat["health"]
    text = f"heartbeat {_when(beat['at_s'], beat['age_s'], zone)}"
    return ", ".join([f"{name} {state}", text, *beat_ages(beat)])


def beat_ages(beat: Mapping[str, Any]) -> list[str]:
    """Return in words how old link, report and receipt are; nothing where it was not told.

    Who does not answer may have another link by now, or none.
    """
    ages = {name.removesuffix("_s"): age for name, age in beat["ages"].items() if age is not None}
    links = LINK_STATES if not beat["is_late"] else {}
    came = ("report", "receipt")
    texts = [f"{words} for {age_text(ages[name])}" for name, words in links.items() if name in ages]
    texts += [f"last {name} {age_text(ages[name])} ago" for name in came if name in ages]
    if never := [f"no {name}" for name in came if ages and name not in ages]:
        texts.append(f"{' and '.join(never)} since its start")
    return texts


def _when(seconds: int | None, age_s: int | None, zone: tzinfo) -> str:
    """Return a time and how long ago it was; without an age it is in the future."""
    if seconds is None:
        return "never"
    age = "in the future: by a rehearsal's clock?" if age_s is None else f"{age_text(age_s)} ago"
    return f"{clock_text(seconds, zone)} {zone} ({age})"


def _retired(stream: Mapping[str, Any], zone: tzinfo) -> str:
    since_s = stream.get("retired_s")
    return "" if since_s is None else f", retired since {clock_text(since_s, zone)} {zone}"
