"""What the commands print: JSON with documented keys for machines, plain tables for people."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from aggregator.answers.crowds import account_told
from aggregator.answers.curves import density_view, quantiles_view, ranges_view
from aggregator.answers.local_time import group_name
from aggregator.answers.units import (
    ENERGIES,
    age_text,
    clock_text,
    csv_text,
    energies,
    figure,
    iso,
    largest,
    scale_of,
)
from edge_ldp.poisoning.alarm import largest_shift
from edge_ldp.service.health import LINK_STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aggregator.answers.query import Answer, Group
    from aggregator.config import StreamTable
    from aggregator.counting.records import Key, Record
    from aggregator.plans.revision import Revision
    from aggregator.store.rows import ReportSum
    from edge_ldp.protocol.plan import Plan

FIGURES = (
    *("mean", "low", "high", "total", "total_low", "total_high"),
    *("energy_kwh", "energy_kwh_low", "energy_kwh_high"),
)
NUMBERS = ("devices", "missing", "device_slots", "n", "surveys", "bias", "corrected")


def answer_view(  # noqa: PLR0913 (what is known)
    stream: StreamTable,
    answer: Answer,
    plans: Mapping[int, Plan],
    records: Sequence[ReportSum],
    revisions: Iterable[Revision] = (),
    *,
    zone: tzinfo = UTC,
) -> dict[str, Any]:
    """Return the JSON of `query`.

    stream, unit, slot_seconds, zone; group as asked for, or null; from_s, to_s: seconds UTC of the
    time covered (null: none), from, to the same in ISO 8601 of zone; whole and groups[] by the
    clocks of zone (these with "group": the hour, or the first second, UTC, of the day or week, and
    "at", its name): mean, low, high (95 %, unit; they assume nothing about the density), total,
    total_low, total_high (unit × slots), energy_kwh, energy_kwh_low, energy_kwh_high (of W, kW, Wh,
    kWh), all null without reports; n: stream reports, surveys; bias: the part of the mean (unit)
    that only surveys saw, values above θ; corrected: false if there was no survey (high then allows
    for all that may lie there); own: how far that part is by the group's own surveys, 0..1; spread
    (unit): how much groups differ above θ beyond noise, unseen: how much they could without
    showing, or null; devices heard and missing; device_slots: the slots in which devices were there
    (total = mean × device_slots; each device counts by its own, however often it reports); untold:
    share of the reports of devices that did not say how often, which count as alike; density: edges
    (bucket k holds edges[k] ≤ v < edges[k+1]), probabilities, low, high (95 % each), n, iterations,
    method, warnings[], or null; quantiles[]: share, value, low, high (95 %, unit); theta[]: as of
    `theta`; counts: reports counted, rejected, duplicates, of all time, null where whole is
    withheld; ranges[]: low, high (unit) as asked for, share of the values v with low ≤ v < high,
    share_low, share_high (95 %); in whole and groups[] withheld: figures and numbers are null as
    they, or the whole less all others, are of fewer devices than query.min_devices;
    curated_beside[]: devices that publish a stream of this name of their own, in no figure here;
    warnings[]: how the answer differs from what was asked, as the time covered where counts were
    added up by day.
    """
    whole = _row_view(stream, answer.whole, zone)
    del whole["group"], whole["at"]
    first, last = answer.first_bucket, answer.last_bucket
    from_s = None if first is None else first * stream.bucket_s
    to_s = None if last is None else (last + 1) * stream.bucket_s
    return {
        "stream": stream.name,
        "unit": stream.unit,
        "slot_seconds": stream.slot_seconds,
        "from_s": from_s,
        "to_s": to_s,
        "zone": str(zone),
        "from": iso(from_s, zone),
        "to": iso(to_s, zone),
        "whole": whole,
        "groups": [_row_view(stream, group, zone) for group in answer.groups],
        "spread": answer.spread,
        "unseen": answer.unseen,
        "untold": answer.untold,
        "density": density_view(answer.curve),
        "quantiles": quantiles_view(answer.curve),
        "ranges": ranges_view(answer.curve),
        "theta": theta_view(plans, revisions),
        "counts": {
            name: None if whole["withheld"] else sum(getattr(row, name) for row in records)
            for name in ("counted", "rejected", "duplicates")
        },
    }


def _row_view(stream: StreamTable, group: Group, zone: tzinfo) -> dict[str, Any]:
    """Return one line of figures."""
    row = asdict(group)
    if group.withheld:
        row |= dict.fromkeys(NUMBERS)
    at = None if group.group is None else group_name(group.group, zone)
    return {**row, "at": at, **energies(stream, group.total, group.total_low, group.total_high)}


def theta_view(
    plans: Mapping[int, Plan], revisions: Iterable[Revision] = ()
) -> list[dict[str, Any]]:
    """Return the plans, each with the keys that `stream_view` names; `revisions`: oldest first."""
    last = {revision.epoch: revision for revision in revisions}
    return [
        {
            "epoch": epoch,
            "theta": plan.theta,
            "issued_s": plan.issued_s,
            "survey_share": plan.share[0] / plan.share[1],
            "survey_low": plan.survey_mechanism.low,
            "survey_high": plan.survey_mechanism.high,
            "influence": plan.stream_mechanism.influence,
            "shift_per_percent": largest_shift(plan.stream_mechanism, 0.01),
            "forecast": forecast_view(last[epoch]) if epoch in last else None,
            "reasons": list(last[epoch].reasons) if epoch in last else None,
        }
        for epoch, plan in sorted(plans.items())
    ]


def stream_view(
    stream: StreamTable, plans: Mapping[int, Plan], revisions: Iterable[Revision] = ()
) -> dict[str, Any]:
    """Return the JSON of `theta`.

    stream, unit; theta[], one for each plan: epoch, theta, survey_low, survey_high (unit),
    issued_s, survey_share; forecast[]: question, half_width expected of its 95 % interval (unit),
    by the last revision that led to this plan or let it stay, and its reasons[] in words; null
    where none did. Against lying devices:
    influence: how far from the middle between low and θ one report can count at most, in multiples
    of the way from there to θ (4 under θ = 2,000 W and low = 0 W: 4 × 1,000 W = 4,000 W from the
    middle); shift_per_percent: how far each per cent of liars moves a mean at most (unit), which is
    1 % of (influence + 1) × that way.
    """
    return {"stream": stream.name, "unit": stream.unit, "theta": theta_view(plans, revisions)}


def forecast_view(revision: Revision) -> list[dict[str, Any]]:
    """Return what a revision expects of intervals: question, half_width (unit)."""
    return [{"question": name, "half_width": half} for name, half in revision.forecast]


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


def answer_csv(view: Mapping[str, Any]) -> str:
    """Return the whole range and its groups as CSV: figures as in the JSON, in the unit."""
    columns = ("at", *FIGURES, *NUMBERS[:5], "withheld")
    return csv_text(columns, [{**view["whole"], "at": "all"}, *view["groups"]])


def answer_text(view: Mapping[str, Any], zone: tzinfo = UTC, notes: Iterable[str] = ()) -> str:
    """Return the answer as people read it; `notes`: of its range, a line each."""
    unit, whole = view["unit"], view["whole"]
    if view["from_s"] is None:
        return f"{view['stream']}, no reports in this range\n{_of_all_time(view)}\n"
    times = (clock_text(view[at], zone) for at in ("from_s", "to_s"))
    lines = [
        f"{view['stream']}, {' to '.join(times)} {view['zone']}",
        f"devices heard {number_text(whole['devices'])}, missing {number_text(whole['missing'])}",
        *notes,
        "",
        _figures_table(view),
    ]
    if whole["withheld"] or any(group["withheld"] for group in view["groups"]):
        lines.append("withheld: fewer devices reported, or are left out, than [query] min_devices,")
        lines.append("or the whole less all other groups would tell of so few")
    elif whole["mean"] is not None and not whole["corrected"]:
        lines.append("no surveys: the interval allows for all that may lie above θ")
    elif whole["mean"] is not None:
        lines.append(
            "of these devices' own values in these slots, each by its time, not by its reports;"
        )
        lines.append("honest devices, any distribution")
    if view["untold"]:
        lines.append(
            f"{view['untold']:.0%} of the reports are of devices that did not say how often they "
            "report: they count as if alike"
        )
    if view["groups"] and view["unseen"] is not None:
        lines.append(
            f"what groups have above θ differs by {view['spread']:,.1f} {unit} beyond noise; "
            f"up to {view['unseen']:,.1f} {unit} might not show"
        )
        lines.append("it is estimated from all together: groups need not add up to the whole")
    if view["quantiles"]:
        lines += ["", _quantile_table(unit, view["quantiles"])]
        lines.append(f"from {view['density']['n']:,} reports: {view['density']['method']}")
        lines += [f"warning: {warning}" for warning in view["density"]["warnings"]]
        lines.append("")
    lines += [
        f"share of values from {row['low']:g} to below {row['high']:g} {unit}: {row['share']:.4f}, "
        f"95 % from {row['share_low']:.4f} to {row['share_high']:.4f}"
        for row in view["ranges"]
    ]
    lines.append(_of_all_time(view))
    return "\n".join(lines) + "\n"


def text_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a plain text table: the first column left, the others right."""
    cells = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[at]) for row in cells) for at in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def number_text(number: int | None) -> str:
    """Return a number as people read it, - where it is withheld."""
    return "-" if number is None else f"{number:,}"


def time_text(seconds: int | None) -> str:
    """Return seconds UTC as people read them, - for none."""
    return clock_text(seconds)


def theta_text(unit: str, rows: Iterable[Mapping[str, Any]], zone: tzinfo = UTC) -> str:
    """Return the plans as a table."""
    head = ["epoch", f"θ {unit}", f"issued {zone}", "survey share", f"survey {unit}"]
    head.append(f"1 % liars {unit}")
    cells = (
        [
            str(row["epoch"]),
            str(row["theta"]),
            clock_text(row["issued_s"], zone),
            f"{row['survey_share']:.4f}",
            f"{row['survey_low']} to {row['survey_high']}",
            f"{row['shift_per_percent']:,.1f}",
        ]
        for row in rows
    )
    return text_table(head, cells) + "\n"


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


def _figures_table(view: Mapping[str, Any]) -> str:
    """Return means, and energies where the unit tells of any, each in a unit that fits."""
    rows = [{**view["whole"], "at": "all"}, *view["groups"]]
    unit, by = scale_of(view["unit"], largest(row["high"] for row in rows))
    kwh = [row["energy_kwh_high"] for row in rows]
    keys, last = FIGURES[3:6], f"total {view['unit']} × slots"
    energy, energy_by = last, 1.0
    if view["unit"] in ENERGIES:
        keys = FIGURES[6:]
        named, energy_by = scale_of("kWh", largest(kwh))
        energy = f"energy {named}"
    head = ["", f"mean {unit}", "95 % from", "to", energy, "95 % from", "to", "reports"]
    cells = (
        [
            row["at"],
            *(figure(row[key], by) for key in FIGURES[:3]),
            *(figure(row[key], energy_by) for key in keys),
            "-" if row["withheld"] else f"{row['n'] + row['surveys']:,}",
        ]
        for row in rows
    )
    return text_table(head, cells)


def _quantile_table(unit: str, rows: Sequence[Mapping[str, float]]) -> str:
    head = ["share below", unit, "95 % from", "to"]
    cells = (
        [f"{row['share'] * 100:g} %", *(_number(row[name]) for name in ("value", "low", "high"))]
        for row in rows
    )
    return text_table(head, cells)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _of_all_time(view: Mapping[str, Any]) -> str:
    counts = ", ".join(f"{name} {number_text(number)}" for name, number in view["counts"].items())
    return f"reports of all time: {counts}"
