"""The list of devices, for machines (JSON) and for people."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from aggregator.answers.fleet import is_silent
from aggregator.answers.trust_view import told_ages
from aggregator.answers.units import age_text, clock_text, text_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from aggregator.counting.members import Listed


def page(rows: Sequence[Listed], number: int | None, length: int) -> Sequence[Listed]:
    """Return one page of rows, from 1 on; all of them without a number."""
    return rows if number is None else rows[(number - 1) * length : number * length]


def members_view(  # noqa: PLR0913 (what is known)
    fleet: str, devices: Sequence[Listed], *, total: int, now_s: int, old_s: int, least: int
) -> dict[str, Any]:
    """Return the JSON of `devices list`.

    fleet; now_s (UTC); total: devices that were asked for, on all pages; devices[]: device; group
    ("" for none); state by its last status (online, offline, unknown); silent: none came for a day
    (in a rehearsal of real time), or ever; seen_s, enrolled_s, revoked_s, held_s: seconds UTC or
    null; by its last status, where it told: health ("ok", or what
    is wrong), ages: seconds then since the last telegram_s, commit_s (not told where [query]
    min_devices, `least`, is above 1), receipt_s, and since link_s.
    """
    return {
        "fleet": fleet,
        "now_s": now_s,
        "total": total,
        "devices": [
            asdict(one)
            | {
                "seen_s": None if one.state == "unknown" else one.seen_s,
                "ages": told_ages(one.ages, least),
                "silent": is_silent(one.state, one.seen_s, old_s),
            }
            for one in devices
        ],
    }


def members_text(view: Mapping[str, Any], zone: tzinfo = UTC) -> str:
    """Return the list as people read it."""
    head = ["device", "group", "state", "last status", "ago", "enrolled", "revoked", "quarantine"]
    head.append("health")
    rows = [
        [
            *(one["device"], one["group"] or "-", _state(one)),
            *_seen(one, view["now_s"], zone),
            *(clock_text(one[key], zone) for key in ("enrolled_s", "revoked_s", "held_s")),
            one["health"] or "-",
        ]
        for one in view["devices"]
    ]
    lines = [text_table(head, rows)]
    if len(rows) < view["total"]:
        lines.append(f"{len(rows)} of {view['total']} devices")
    return "\n".join([*lines, ""])


def _state(one: Mapping[str, Any]) -> str:
    """Return the state, or that it is an old one; of "unknown" nothing newer can be said."""
    is_old = one["silent"] and one["state"] != "unknown"
    return "silent" if is_old else str(one["state"])


def _seen(one: Mapping[str, Any], now_s: int, zone: tzinfo) -> tuple[str, str]:
    if one["seen_s"] is None:  # no status yet
        return "-", "-"
    return clock_text(one["seen_s"], zone), age_text(now_s - one["seen_s"])
