"""What the commands print: JSON with documented keys for machines, plain tables for people."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aggregator.config import StreamTable
    from aggregator.estimate import Density
    from aggregator.query import Answer
    from aggregator.records import Key, Record
    from edge_ldp.plan import Plan


def answer_view(
    stream: StreamTable, answer: Answer, plans: Mapping[int, Plan], records: Sequence[Record]
) -> dict[str, Any]:
    """Return the JSON of `query`.

    stream, unit; from_s, to_s: seconds UTC of the time covered (null: none); whole and groups[]
    (these with "group", the hour): mean, low, high (95 %, unit), total, total_low, total_high (unit
    × slots), all null while n = 0; n: stream reports; bias: what was added for truncation;
    corrected: false if values above θ count as θ; devices heard and missing; device_slots: the
    slots in which devices were there (total = mean × device_slots); density: edges (bucket
    k holds edges[k] ≤ v < edges[k+1]), probabilities, n, iterations, or null; theta[]: epoch,
    theta, issued_s, survey_share; counts: reports counted, rejected, duplicates, of all time.
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
        "density": _density(answer.density),
        "theta": theta_view(plans),
        "counts": {
            "counted": sum(record.counted for record in records),
            "rejected": sum(record.rejected for record in records),
            "duplicates": sum(record.duplicates for record in records),
        },
    }


def theta_view(plans: Mapping[int, Plan]) -> list[dict[str, Any]]:
    """Return the plans as epoch, theta (stream's unit), issued_s (UTC), survey_share (0..1)."""
    return [
        {
            "epoch": epoch,
            "theta": plan.theta,
            "issued_s": plan.issued_s,
            "survey_share": plan.share[0] / plan.share[1],
        }
        for epoch, plan in sorted(plans.items())
    ]


def completeness_view(key: Key, record: Record, names: Mapping[int, str]) -> dict[str, Any]:
    """Return one device and stream of `status`: reports, by where they are.

    created = counted + rejected + expired + pending; expired and pending by the device's last
    status; duplicates and conflicts came on top; gaps: batches first..last that are missing.
    """
    device, stream = key
    return {
        "device": device,
        "stream": names.get(stream, str(stream)),
        "created": record.counted + record.rejected + record.expired + record.pending,
        "counted": record.counted,
        "rejected": record.rejected,
        "expired": record.expired,
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
        f"{view['stream']}, {_time(view['from_s'])} to {_time(view['to_s'])} UTC",
        f"devices heard {whole['devices']}, missing {whole['missing']}",
        "",
    ]
    head = ["", f"mean {unit}", "95 % from", "to", f"total {unit} × slots", "reports", "bias"]
    rows = [_group_row("all", whole)]
    rows += [_group_row(f"{group['group']:02d} h", group) for group in view["groups"]]
    lines.append(table(head, rows))
    if not whole["corrected"]:
        lines.append("not corrected for truncation: values above θ count as θ")
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


def theta_text(unit: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the plans as a table."""
    head = ["epoch", f"θ {unit}", "issued UTC", "survey share"]
    cells = (
        [
            str(row["epoch"]),
            str(row["theta"]),
            _time(row["issued_s"]),
            f"{row['survey_share']:.4f}",
        ]
        for row in rows
    )
    return table(head, cells) + "\n"


def status_text(view: Mapping[str, Any]) -> str:
    """Return the status as people read it."""
    devices = view["devices"]
    lines = [
        f"fleet {view['fleet']}: {devices['enrolled']} devices, {devices['online']} online",
        f"last commit {_time(view['last_commit_s'])} UTC",
    ]
    for stream in view["streams"]:
        plan = stream["plan"]
        terms = "no plan yet" if plan is None else f"epoch {plan['epoch']}, θ = {plan['theta']}"
        lines.append(f"{stream['stream']}: {terms} {stream['unit']}")
    columns = ["created", "counted", "rejected", "expired", "pending", "duplicates", "conflicts"]
    rows = [
        [f"{row['device']} {row['stream']}", *(str(row[name]) for name in columns)]
        for row in view["completeness"]
    ]
    lines += ["", table(["reports", *columns], rows)]
    refused = [
        [row["reason"], row["stream"] or "-", str(row["messages"]), str(row["reports"])]
        for row in view["refused"]
    ]
    lines += ["", table(["not counted", "stream", "messages", "reports"], refused)]
    return "\n".join(lines) + "\n"


def _group_row(name: str, group: Mapping[str, Any]) -> list[str]:
    fields = ("mean", "low", "high", "total", "n", "bias")
    return [name, *(_number(group[field]) for field in fields)]


def _density(density: Density | None) -> dict[str, Any] | None:
    if density is None:
        return None
    return {
        "edges": density.edges.tolist(),
        "probabilities": density.probabilities.tolist(),
        "n": density.n,
        "iterations": density.iterations,
    }


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def _time(seconds: int | None) -> str:
    if seconds is None:
        return "-"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _pairs(fields: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {number:,}" for name, number in fields.items())
