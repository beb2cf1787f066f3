"""What each page is made of: small, whatever the fleet's size, and never a report's value.

Sums, curves and densities are not here: a page asks the API for them, which asks the commands.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from aggregator.answers.audit import orders, read_audit
from aggregator.answers.crowds import MOVED
from aggregator.answers.curated_lookup import read_streams
from aggregator.answers.dossier import dossier_view
from aggregator.answers.fleet import device_view, read_summary, silent_before
from aggregator.answers.local_time import LENGTHS, Spans
from aggregator.answers.lookup import newest_plan, read_plans, read_revisions
from aggregator.answers.plan_view import look_of, plan_terms
from aggregator.commands.check_view import check_view
from aggregator.config import ConfigError
from aggregator.counting.retention import DAY_S
from aggregator.store.rows import ORDERS, STATES
from edge_ldp.certify.verdict import judge_plan
from edge_ldp.service.zones import zone_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import tzinfo

    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.store.contract import Reader

PAGE = 50  # devices
RANGES = 8  # of a distribution
MOST_CHANGES = 500  # shown


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page: of what store, with what parameters, at what time of the fleet's clock."""

    config: AggregatorConfig
    reader: Reader
    given: Mapping[str, str]
    now_s: int

    def one_of(self, name: str, choices: tuple[str, ...]) -> str:
        """Return a parameter, the first choice without; raises ConfigError."""
        value = self.given.get(name, choices[0])
        if value not in choices:
            raise ConfigError("page", name, f"expected one of {', '.join(choices)}")
        return value

    def stream(self) -> StreamTable:
        """Return the stream that is asked for, the first one without; raises ConfigError."""
        streams = {stream.name: stream for stream in self.config.streams}
        return streams[self.one_of("stream", tuple(streams))]

    def zone(self, stream: StreamTable | None) -> tzinfo:
        """Return whose time is asked for, the configuration's without; raises ConfigError."""
        named = self.given.get("zone") or "here"  # the browser's, as long as it has not said which
        try:
            return self.config.zone(stream) if named == "here" else zone_of(named)
        except ValueError as exc:
            raise ConfigError("page", "zone", "expected a time zone, as Europe/Berlin") from exc


def overview(request: PageRequest) -> dict[str, Any]:
    """Return the summary, and the days that figures are asked for."""
    found = _summary(request) | _place(request)
    for row, stream in zip(found["streams"], request.config.streams, strict=True):
        of = Spans(stream, "day", request.zone(stream))
        today = of.at(request.now_s // stream.bucket_s)
        row["days"] = {
            name: [bucket * stream.bucket_s for bucket in day]
            for name, day in (("today", today), ("yesterday", of.at(today[0] - 1)))
        }
    if found["devices"]["marked"] == 1:
        names = request.reader.device_names
        marked = {*names("marked", "device", 0)} - {*names("held", "device", 0)}
        found["marked_one"] = next(iter(marked), None)
    return found


def stream_page(request: PageRequest) -> dict[str, Any]:
    """Return a stream's plans over time, revisions behind them, and its curated neighbours."""
    stream = request.stream()
    zone = request.zone(stream)
    revisions = read_revisions(request.reader, stream)
    theta = plan_terms(read_plans(request.reader, stream), revisions)
    counted = request.reader.presence(stream.id)
    return {
        **_choice(request, stream),
        "lengths": LENGTHS,
        "zones": list(dict.fromkeys((str(request.config.zone(stream)), "UTC", str(zone)))),
        "groups": sorted(request.reader.groups()),
        "last_s": (counted[-1][0] + 1) * stream.bucket_s if counted else None,
        "looks": [
            {**to_builtins(look_of(revision)), "halves": dict(revision.forecast)}
            for revision in revisions
        ],
        "theta": to_builtins(theta),
        "ranges": _ranges(stream.low, theta[-1].theta if theta else stream.ceiling),
        "curated": any(one.design.name == stream.name for one in read_streams(request.reader)),
    }


def devices(request: PageRequest) -> dict[str, Any]:
    """Return a page of devices and streams: state and reports by where they are."""
    least = request.config.query.min_devices
    orders = tuple(one for one in ORDERS if least <= 1 or one not in MOVED)
    chosen, order = request.one_of("state", STATES), request.one_of("sort", orders)
    reader, text, groups = request.reader, request.given.get("q", ""), request.reader.groups()
    group, old_s = request.given.get("group", "*"), silent_before(request.config, request.now_s)
    of = None if group == "*" else groups.get(group, -1)
    found = reader.device_names(chosen, order, old_s, of, down=request.given.get("down") == "1")
    rows = [name for name in found if text in name]
    plain = chosen == "all" and of is None
    pages = max(1, -(-len(rows) // PAGE))
    at = min(max(1, _whole(request.given.get("page", "1"))), pages)
    names = {stream.id: stream.name for stream in request.config.streams}
    shown = rows[(at - 1) * PAGE : at * PAGE]
    marks = [row for row in reader.marks() if row.device in shown]
    return {
        **_place(request),
        "all": len(found) if plain else reader.device_sums(old_s).enrolled,
        "found": len(rows),
        "page_at": at,
        "pages": pages,
        "states": STATES,
        "sorts": orders,
        "groups": sorted(groups),
        "rows": [
            device_view(row, reader.states(row.device), marks, names, old_s, least=least)
            for row in reader.some_devices(shown)
        ],
    }


def plans(request: PageRequest) -> dict[str, Any]:
    """Return a stream's plans, newest first, and why each is what it is."""
    stream = request.stream()
    revisions, found = read_revisions(request.reader, stream), read_plans(request.reader, stream)
    theta = to_builtins(plan_terms(found, revisions))
    by = orders(request.config, stream, found, revisions, request.reader.audit())
    for row in theta:
        row["reasons"] = [*by.get(row["epoch"], ()), *(row["reasons"] or ())]
    return {
        **_choice(request, stream),
        "horizon": stream.horizon_text,
        "held_s": request.reader.plan_holds().get(stream.id),
        "look": to_builtins(look_of(revisions[-1])) if revisions else None,
        "theta": theta[::-1],
        "epsilon": str(stream.epsilon),
        "slots_a_day": DAY_S // stream.slot_seconds,
        "low": stream.low,
        "ceiling": stream.ceiling,
        "days": stream.horizon_days,
        "homes": request.reader.device_sums(request.now_s).enrolled or 400,
    }


def audit(request: PageRequest) -> dict[str, Any]:
    """Return what operators changed, the newest first, where a text is in who or what."""
    text = request.given.get("q", "")
    found = read_audit(request.reader, request.config.fleet)
    rows = [row for row in found["audit"] if text in row["who"] or text in row["command"]]
    return {**_place(request), "found": len(rows), "audit": rows[: -MOST_CHANGES - 1 : -1]}


def message(request: PageRequest) -> bytes | None:
    """Return the plan in force as published, for `edge-ldp certify --plan`."""
    newest = newest_plan(request.reader.plans(), request.stream())
    return None if newest is None else newest.payload


def certificate(request: PageRequest) -> bytes | None:
    """Return its certificate, proved now, for `edge-ldp certify --check`."""
    payload = message(request)
    proved = None if payload is None else judge_plan(payload).certificate
    return None if proved is None else proved.to_json()


def _summary(request: PageRequest) -> dict[str, Any]:
    return read_summary(request.reader, request.config, request.now_s)


PAGES: Mapping[str, Callable[[PageRequest], dict[str, Any] | bytes | None]] = {
    "overview": overview,
    "stream": stream_page,
    "devices": devices,
    "check": lambda request: check_view(request.config),
    "privacy": lambda request: dossier_view(request.reader, request.config),
    "plans": plans,
    "audit": audit,
    "summary": _summary,
    "message": message,
    "certificate": certificate,
}


def _place(request: PageRequest, stream: StreamTable | None = None) -> dict[str, Any]:
    return {"fleet": request.config.fleet, "zone": str(request.zone(stream))}


def _choice(request: PageRequest, stream: StreamTable) -> dict[str, Any]:
    return {
        **_place(request, stream),
        "streams": [one.name for one in request.config.streams],
        "stream": stream.name,
        "unit": stream.unit,
    }


def _ranges(low: int, theta: int) -> list[str]:
    """Return equal ranges from low to θ: few enough that their shares can be told from noise."""
    edges = [low + (theta - low) * at // RANGES for at in range(RANGES + 1)]
    return [f"{one}:{other}" for one, other in pairwise(edges) if one < other]


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 9):  # noqa: PLR2004 (digits)
        raise ConfigError("page", "page", "expected a whole number")
    return int(text)
