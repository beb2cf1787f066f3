"""What `status` shows of trust: the last look at each stream; devices revoked, held and marked."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from aggregator.answers.views import forecast_view, table, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aggregator.counting.records import Marked
    from aggregator.plans.revision import Look
    from aggregator.store.rows import DeviceRow

MANY = 20  # rows of a table in a summary
NOTE = "a mark takes nothing out of any count, unless [guard] quarantine says so"


def look_view(look: Look) -> dict[str, Any]:
    """Return the last look at a stream's reports.

    at_s (UTC); theta, survey [low, high] (unit), survey_share; stream_reports and survey_reports it
    went by; forecast[]: question, half_width expected of its 95 % interval (unit) under the plan;
    least: the narrowest there is for the stream's horizon, or null; reasons[] in words; alarms[]:
    kind, low, high, reports, share left out, warnings[].
    """
    return {
        "at_s": look.at_s,
        "theta": look.theta,
        "survey": list(look.survey),
        "survey_share": look.share,
        "stream_reports": look.reports[0],
        "survey_reports": look.reports[1],
        "forecast": forecast_view(look),
        "least": look.least,
        "reasons": list(look.reasons),
        "alarms": [
            {
                "kind": found.kind,
                "low": found.low,
                "high": found.high,
                "reports": found.reports,
                "share": found.share,
                "warnings": list(found.warnings),
            }
            for found in look.screen
            if found.rings
        ],
    }


def mark_view(device: str, stream: str, when: tuple[int, int, int], mark: Marked) -> dict[str, Any]:
    """Return one device that sends codes more often than honest ones; `when`: first, last, times.

    name: the set of codes; seen of reports were in it; bound: its largest honest share; chance: of
    as many. A mark takes nothing out of any count, unless the configuration says so.
    """
    first_s, last_s, times = when
    head = {"device": device, "stream": stream, "first_s": first_s, "last_s": last_s}
    return {**head, "times": times, **asdict(mark)}


def decided_views(rows: Iterable[DeviceRow]) -> dict[str, list[dict[str, Any]]]:
    """Return the devices that an operator, or a mark, decided about: device, since_s (UTC).

    revoked[]: those that may not report; held[]: those in quarantine, whose counts are kept apart;
    refusing[]: device, reasons[] why it refused plans, or what of its account is not believed.
    """
    found: dict[str, list[dict[str, Any]]] = {"revoked": [], "held": [], "refusing": []}
    for row in rows:
        if row.refusals:
            found["refusing"].append({"device": row.device, "reasons": list(row.refusals)})
        for name, since_s in (("revoked", row.revoked_s), ("held", row.held_s)):
            if since_s is not None:
                found[name].append({"device": row.device, "since_s": since_s})
    return found


def trust_lines(view: Mapping[str, Any]) -> list[str]:
    """Return the same for people: alarms of looks; devices revoked, held, refusing and marked."""
    lines = []
    for stream in view["streams"]:
        look = stream.get("look")
        if look is None:
            continue
        lines += ["", f"{stream['stream']}, looked at {time_text(look['at_s'])} UTC:"]
        lines += [f"  {reason}" for reason in look["reasons"]]
        lines += [f"  warning: {said}" for alarm in look["alarms"] for said in alarm["warnings"]]
    if view["devices"]["revoked"] or view["devices"]["held"]:
        lines += ["", *_first(_decided_table(view["devices"]), "devices list --only revoked|held")]
    refusing = [[row["device"], ", ".join(row["reasons"])] for row in view["devices"]["refusing"]]
    if refusing:
        told = table(["device", "refused, last reasons"], refusing)
        lines += ["", *_first(told, "status --json")]
    if view.get("marked"):
        lines += ["", *_first(_marked_table(view["marked"]), "status --json"), NOTE]
    return lines


def _first(told: str, where: str) -> list[str]:
    """Return a table's first lines; `where` all of them are shown."""
    lines = told.splitlines()
    more = len(lines) - 1 - MANY
    return lines if more <= 0 else [*lines[: 1 + MANY], f"and {more} more: `{where}`"]


def _decided_table(devices: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    since = {
        name: {row["device"]: row["since_s"] for row in devices[name]}
        for name in ("revoked", "held")
    }
    rows = (
        [device, *(time_text(of.get(device)) for of in since.values())]
        for device in sorted(since["revoked"].keys() | since["held"].keys())
    )
    return table(["device", "revoked UTC", "quarantine UTC"], rows)


def _marked_table(rows: Sequence[Mapping[str, Any]]) -> str:
    head = ["marked", "codes", "seen", "of reports", "bound", "chance", "first UTC", "times"]
    cells = (
        [
            f"{row['device']} {row['stream']}",
            row["name"],
            str(row["seen"]),
            str(row["reports"]),
            f"{row['bound']:.4f}",
            f"{row['chance']:.1e}",
            time_text(row["first_s"]),
            str(row["times"]),
        ]
        for row in rows
    )
    return table(head, cells)
