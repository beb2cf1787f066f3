"""What `status` shows of trust: each stream's last revision; devices that need somebody."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from aggregator.answers.crowds import MOVED_AGES
from aggregator.answers.units import age_text, clock_text, text_table
from edge_ldp.protocol.strict_json import loads

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aggregator.store.rows import DeviceRow, MarkRow

MANY = 20  # rows of a table in a summary
NOTE = "a mark takes nothing out of any count, unless [guard] quarantine says so"


def mark_view(row: MarkRow, names: Mapping[int, str]) -> dict[str, Any]:
    """Return one device that sends codes more often than honest ones; `names` of streams.

    device, stream, first_s, last_s (UTC), times that it was marked; and of the last mark:
    name: the set of codes; seen of reports were in it; bound: its largest honest share; chance: of
    as many. A mark takes nothing out of any count, unless the configuration says so.
    """
    return {
        "device": row.device,
        "stream": names.get(row.stream, str(row.stream)),
        "first_s": row.first_s,
        "last_s": row.last_s,
        "times": row.times,
        **asdict(row.mark),
    }


def decided_views(rows: Iterable[DeviceRow], least: int = 1) -> dict[str, list[dict[str, Any]]]:
    """Return the devices that an operator, or a mark, decided about: device, since_s (UTC).

    revoked[]: those that may not report; held[]: those in quarantine, whose counts are kept apart;
    refusing[]: device, reasons[] why it refused plans, or what of its account is not believed;
    degraded[]: whose last status told of trouble: device, health, ages (as `devices list`).
    """
    found: dict[str, list[dict[str, Any]]]
    found = {"revoked": [], "held": [], "refusing": [], "degraded": []}
    for row in rows:
        if row.is_degraded and row.revoked_s is None:
            status = {"health": row.health, "ages": told_ages(row.ages, least)}
            found["degraded"].append({"device": row.device, **status})
        if row.refusals:
            found["refusing"].append({"device": row.device, "reasons": list(row.refusals)})
        for name, since_s in (("revoked", row.revoked_s), ("held", row.held_s)):
            if since_s is not None:
                found[name].append({"device": row.device, "since_s": since_s})
    return found


def told_ages(text: str, least: int = 1) -> dict[str, int]:
    """Return the ages that a device told, in seconds at its last status.

    But for those that its reports move, where figures are of `least` devices.
    """
    ages = dict(loads(text.encode()).raw()) if text else {}
    return {name: age for name, age in ages.items() if least <= 1 or name not in MOVED_AGES}


def trust_lines(view: Mapping[str, Any], zone: tzinfo = UTC) -> list[str]:
    """Return the same for people: revisions' alarms, then devices by what is wrong with them."""
    lines = []
    for stream in view["streams"]:
        revision = stream.get("look")
        if revision is None:
            continue
        lines += ["", f"{stream['stream']}, looked at {clock_text(revision['at_s'], zone)} {zone}:"]
        lines += [f"  {reason}" for reason in revision["reasons"]]
        lines += [
            f"  warning: {text}" for alarm in revision["alarms"] for text in alarm["warnings"]
        ]
    if view["devices"]["revoked"] or view["devices"]["held"]:
        lines += [
            "",
            *_first(_decided_table(view["devices"], zone), "devices list --only revoked|held"),
        ]
    degraded = [_degraded_row(row) for row in view["devices"]["degraded"]]
    if degraded:
        table = text_table(["device", "by its last status", "last telegram then"], degraded)
        lines += ["", *_first(table, "devices list")]
    refusing = [[row["device"], "; ".join(row["reasons"])] for row in view["devices"]["refusing"]]
    if refusing:
        table = text_table(["device", "refused, last reasons"], refusing)
        lines += ["", *_first(table, "status --json")]
    if view.get("marked"):
        lines += ["", *_first(_marked_table(view["marked"], zone), "status --json"), NOTE]
    return lines


def _degraded_row(row: Mapping[str, Any]) -> list[str]:
    age_s = row["ages"].get("telegram_s")
    return [row["device"], row["health"], "-" if age_s is None else f"{age_text(age_s)} ago"]


def _first(table: str, where: str) -> list[str]:
    """Return a table's first lines; `where` all of them are shown."""
    lines = table.splitlines()
    more = len(lines) - 1 - MANY
    return lines if more <= 0 else [*lines[: 1 + MANY], f"and {more} more: `{where}`"]


def _decided_table(devices: Mapping[str, Sequence[Mapping[str, Any]]], zone: tzinfo) -> str:
    since = {
        name: {row["device"]: row["since_s"] for row in devices[name]}
        for name in ("revoked", "held")
    }
    rows = (
        [device, *(clock_text(of.get(device), zone) for of in since.values())]
        for device in sorted(since["revoked"].keys() | since["held"].keys())
    )
    return text_table(["device", f"revoked {zone}", f"quarantine {zone}"], rows)


def _marked_table(rows: Sequence[Mapping[str, Any]], zone: tzinfo) -> str:
    head = ["marked", "codes", "seen", "of reports", "bound", "chance", f"first {zone}", "times"]
    cells = (
        [
            f"{row['device']} {row['stream']}",
            row["name"],
            str(row["seen"]),
            str(row["reports"]),
            f"{row['bound']:.4f}",
            f"{row['chance']:.1e}",
            clock_text(row["first_s"], zone),
            str(row["times"]),
        ]
        for row in rows
    )
    return text_table(head, cells)
