"""What the commands print: JSON with documented keys for machines, plain tables for people."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aggregator.curve_view import density_view, quantiles_view, ranges_view
from aggregator.poisoning import largest_shift
from edge_ldp.utc import utc

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aggregator.config import StreamTable
    from aggregator.query import Answer
    from aggregator.records import Key, Record
    from aggregator.revise import Look
    from edge_ldp.plan import Plan


def answer_view(
    stream: StreamTable,
    answer: Answer,
    plans: Mapping[int, Plan],
    records: Sequence[Record],
    look: Look | None = None,
) -> dict[str, Any]:
    """Return the JSON of `query`.

    stream, unit; from_s, to_s: seconds UTC of the time covered (null: none); whole and groups[]
    (these with "group": the hour, or the first second of the day or week): mean, low, high (95 %,
    unit; they assume nothing about the density), total, total_low, total_high (unit × slots), all
    null without reports; n: stream reports, surveys; bias: the tail above θ that was added;
    corrected: false if no survey told of it (high then allows for all that may lie there); own: how
    far the tail is by the group's own surveys, 0..1; spread (unit): how much groups' tails differ
    beyond noise, unseen: how much they could without showing, or null; devices heard and missing;
    device_slots: the slots in which devices were there (total = mean × device_slots); density:
    edges (bucket k holds edges[k] ≤ v < edges[k+1]), probabilities, low, high (95 % each), n,
    iterations, method, warnings[], or null; quantiles[]: share, value, low, high (95 %, unit);
    theta[]: as of `theta`; counts: reports counted, rejected, duplicates, of all time; ranges[]:
    low, high (unit) as asked for, share of the values v with low ≤ v < high, share_low, share_high
    (95 %); in whole and groups[] withheld: figures are null as fewer devices were heard than
    query.min_devices.
    """
    whole = asdict(answer.whole)
    del whole["group"]
    first, last = answer.first_bucket, answer.last_bucket
    return {
        "stream": stream.name,
        "unit": stream.unit,
        "from_s": None if first is None else first * stream.bucket_s,
        "to_s": None if last is None else (last + 1) * stream.bucket_s,
        "whole": whole,
        "groups": [asdict(group) for group in answer.groups],
        "spread": answer.spread,
        "unseen": answer.unseen,
        "density": density_view(answer.curve),
        "quantiles": quantiles_view(answer.curve),
        "ranges": ranges_view(answer.curve),
        "theta": theta_view(plans, look),
        "counts": {
            "counted": sum(record.counted for record in records),
            "rejected": sum(record.rejected for record in records),
            "duplicates": sum(record.duplicates for record in records),
        },
    }


def theta_view(plans: Mapping[int, Plan], look: Look | None = None) -> list[dict[str, Any]]:
    """Return the plans: epoch, theta, survey_low, survey_high (unit), issued_s, survey_share.

    forecast[]: question, half_width expected of its 95 % interval (unit), of the plan that the last
    look led to or let stay; null for others. Against poisoned reports: influence, the most that one
    stream report can claim (half-ranges), and shift_per_percent, how far each per cent of liars can
    move a mean at most (unit).
    """
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
            "forecast": forecast_view(look) if look is not None and look.epoch == epoch else None,
        }
        for epoch, plan in sorted(plans.items())
    ]


def forecast_view(look: Look) -> list[dict[str, Any]]:
    """Return what a look expects of intervals: question, half_width (unit)."""
    return [{"question": name, "half_width": half} for name, half in look.forecast]


def completeness_view(key: Key, record: Record, names: Mapping[int, str]) -> dict[str, Any]:
    """Return one device and stream of `status`: reports, by where they are.

    created = counted + rejected + expired + pending; expired and pending by the device's last
    status; duplicates and conflicts came on top; gaps: batches first..last that are missing.
    """
    device, stream = key
    return {
        "device": device,
        "stream": names.get(stream, str(stream)),
        "created": record.counted + record.rejected + record.given_up + record.pending,
        "counted": record.counted,
        "rejected": record.rejected,
        "expired": record.given_up,
        "pending": record.pending,
        "duplicates": record.duplicates,
        "conflicts": record.conflicts,
        "highest_batch": record.state.highest,
        "gaps": [[gap.first, gap.last] for gap in record.state.gaps],
    }


def answer_text(view: Mapping[str, Any]) -> str:
    """Return the answer as people read it."""
    unit, whole = view["unit"], view["whole"]
    lines = [
        f"{view['stream']}, {time_text(view['from_s'])} to {time_text(view['to_s'])} UTC",
        f"devices heard {whole['devices']}, missing {whole['missing']}",
        "",
    ]
    head = ["", f"mean {unit}", "95 % from", "to", f"total {unit} × slots", "reports", "above θ"]
    rows = [_group_row("all", whole)]
    rows += [_group_row(_group_name(group["group"]), group) for group in view["groups"]]
    lines.append(table(head, rows))
    if whole["withheld"] or any(group["withheld"] for group in view["groups"]):
        lines.append("withheld: too few devices were heard (query.min_devices)")
    elif whole["mean"] is not None and not whole["corrected"]:
        lines.append("no surveys: the interval allows for all that may lie above θ")
    elif whole["mean"] is not None:
        lines.append(
            "of these devices' own values in these slots; honest devices, any distribution"
        )
    if view["groups"] and view["unseen"] is not None:
        lines.append(
            f"what groups have above θ differs by {view['spread']:,.1f} {unit} beyond noise; "
            f"up to {view['unseen']:,.1f} {unit} might not show"
        )
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
    lines.append(f"counts: {_pairs(view['counts'])}")
    return "\n".join(lines) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
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


def time_text(seconds: int | None) -> str:
    """Return seconds UTC as people read them, - for none."""
    if seconds is None:
        return "-"
    return utc(seconds).strftime("%Y-%m-%d %H:%M")


def theta_text(unit: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the plans as a table."""
    head = ["epoch", f"θ {unit}", "issued UTC", "survey share", f"survey {unit}", "influence"]
    head.append(f"1 % liars {unit}")
    cells = (
        [
            str(row["epoch"]),
            str(row["theta"]),
            time_text(row["issued_s"]),
            f"{row['survey_share']:.4f}",
            f"{row['survey_low']} to {row['survey_high']}",
            f"{row['influence']:.2f}",
            f"{row['shift_per_percent']:,.1f}",
        ]
        for row in rows
    )
    return table(head, cells) + "\n"


def status_text(view: Mapping[str, Any]) -> str:
    """Return the status as people read it."""
    devices = view["devices"]
    lines = [
        f"fleet {view['fleet']}: {devices['enrolled']} devices, {devices['online']} online",
        f"last commit {time_text(view['last_commit_s'])} UTC",
    ]
    for stream in view["streams"]:
        plan = stream["plan"]
        terms = "no plan yet" if plan is None else f"epoch {plan['epoch']}, θ = {plan['theta']}"
        lines.append(f"{stream['stream']}: {terms} {stream['unit']}{_retired(stream)}")
    columns = ["created", "counted", "rejected", "expired", "pending", "duplicates", "conflicts"]
    rows = [
        [f"{row['device']} {row['stream']}", *(str(row[name]) for name in columns)]
        for row in view["completeness"]
    ]
    lines += ["", table(["reports", *columns], rows)]
    if view["curated"]:
        rows = [
            [f"{row['device']} {row['number']}", *(str(row[name]) for name in columns)]
            for row in view["curated"]
        ]
        lines += ["", table(["curated values, in no figure above", *columns], rows)]
    refused = [
        [row["reason"], row["stream"] or "-", str(row["messages"]), str(row["reports"])]
        for row in view["refused"]
    ]
    lines += ["", table(["not counted", "stream", "messages", "reports"], refused)]
    return "\n".join(lines) + "\n"


def _retired(stream: Mapping[str, Any]) -> str:
    since_s = stream.get("retired_s")
    return "" if since_s is None else f", retired since {time_text(since_s)} UTC"


def _group_name(group: int) -> str:
    """Return an hour of the day, or a day, as people read it."""
    return f"{group:02d} h" if group < 24 else time_text(group)[:10]  # noqa: PLR2004 (hours)


def _group_row(name: str, group: Mapping[str, Any]) -> list[str]:
    fields = ("mean", "low", "high", "total", "n", "bias")
    return [name, *(_number(group[field]) for field in fields)]


def _quantile_table(unit: str, rows: Sequence[Mapping[str, float]]) -> str:
    head = ["share below", unit, "95 % from", "to"]
    cells = (
        [f"{row['share'] * 100:g} %", *(_number(row[name]) for name in ("value", "low", "high"))]
        for row in rows
    )
    return table(head, cells)


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _pairs(fields: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in fields.items())
