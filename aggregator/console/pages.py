"""What each page is made of: small, whatever the fleet's size, and never a report's value.

Sums, curves and densities are not here: a page asks the API for them, which asks the commands.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from msgspec.structs import asdict, replace

from aggregator.answers.crowds import MOVED
from aggregator.answers.curated_view import read_streams
from aggregator.answers.dossier import DossierAnswer, dossier_answer
from aggregator.answers.fleet.audit import AuditEntry, orders, read_audit
from aggregator.answers.fleet.check_view import CheckAnswer, check_answer
from aggregator.answers.fleet.lists import GroupSize
from aggregator.answers.fleet.one_device import DeviceAnswer, read_device
from aggregator.answers.fleet.status import fortnight, read_summary, shown_device
from aggregator.answers.fleet.status_answer import DayCounts, FleetSummary, ShownDevice
from aggregator.answers.local_time import LENGTHS, Spans
from aggregator.answers.lookup import newest_plan, read_revisions, read_used_plans
from aggregator.answers.parts import AnswerPart
from aggregator.answers.plan_view import Look, PlanTerms, look_of, plan_terms
from aggregator.answers.units import amount_of
from aggregator.config import AggregatorConfig, ConfigError, StreamTable
from aggregator.errors import NothingError
from aggregator.store.contract import Reader
from aggregator.store.rows import ORDERS, STATES
from edge_ldp.certify.verdict import judge_plan
from edge_ldp.device.sums import DAY_S
from edge_ldp.service.zones import zone_of

PAGE = 50  # devices
BACK = 28  # days before today that figures are of
MOST_CHANGES = 500  # shown
MOST_GROUPS = 30  # whose figures are asked for at once


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


class OverviewPage(FleetSummary, frozen=True, kw_only=True):
    """The summary; of one stream from when to when figures are asked for, by name.

    fortnight: dates to today, and how many devices were so then where that is known.
    """

    zone: str
    stream: str
    times: dict[str, list[int]]
    fortnight: list[tuple[str, DayCounts | None]]
    next_look_s: int | None
    marked_one: str | None


class FleetPage(AnswerPart, frozen=True, kw_only=True):
    """A page of a fleet; times are of zone."""

    fleet: str
    zone: str


class OneStream(FleetPage, frozen=True, kw_only=True):
    """A page of one of the streams; amount: of what unit its totals are, "": unit × slots.

    is_summed_alone: homes give its sums and report no single value, so it has no plan.
    """

    streams: list[str]
    stream: str
    unit: str
    amount: str
    is_summed_alone: bool


class PastLook(Look, frozen=True, kw_only=True):
    """A revision; halves: the half-width expected, by question."""

    halves: dict[str, float]


class StreamPage(OneStream, frozen=True, kw_only=True):
    """A stream's plans over time, revisions behind them, and its curated neighbours."""

    lengths: list[str]
    zones: list[str]
    groups: list[str]
    last_s: int | None
    looks: list[PastLook]
    theta: list[PlanTerms]
    curated: bool


class DevicesPage(FleetPage, frozen=True, kw_only=True):
    """A page of devices and streams: state and reports by where they are."""

    all: int
    found: int
    page_at: int
    pages: int
    states: list[str]
    sorts: list[str]
    groups: list[str]
    rows: list[ShownDevice]


class PlansPage(OneStream, frozen=True, kw_only=True):
    """A stream's plans, newest first, and why each is what it is; what a forecast begins with."""

    horizon: str
    held_s: int | None
    look: Look | None
    theta: list[PlanTerms]
    epsilon: str
    slots_a_day: int
    parts: int
    low: int
    ceiling: int
    days: int
    homes: int


class GroupsPage(OneStream, frozen=True, kw_only=True):
    """Groups and how many devices are in each; first and end of the week of their figures."""

    found: int
    least: int
    week: list[int]
    groups: list[GroupSize]


class ChangesPage(FleetPage, frozen=True, kw_only=True):
    """What operators changed, the newest first; found: how many, of which some are shown."""

    found: int
    audit: list[AuditEntry]


def overview(request: PageRequest) -> OverviewPage:
    """Return the summary, and the times that figures of a stream are asked for."""
    stream, found, marked_one = request.stream(), _summary(request), None
    if found.devices.marked == 1:
        names = request.reader.device_names
        marked = {*names("marked", "device", 0)} - {*names("held", "device", 0)}
        marked_one = next(iter(marked), None)
    (state,) = (one for one in found.streams if one.stream == stream.name)
    looked = state.look.at_s if state.look else state.plan.issued_s if state.plan else None
    return OverviewPage(
        **asdict(found),
        zone=str(request.zone(stream)),
        stream=stream.name,
        times=_times(request, stream),
        fortnight=fortnight(found, request.config.zone()),
        next_look_s=looked and looked + stream.revise_slots * stream.slot_seconds,
        marked_one=marked_one,
    )


def _times(request: PageRequest, stream: StreamTable) -> dict[str, list[int]]:
    """Return first and end of today, of what went before it, and of what each is compared with."""
    of = Spans(stream, "day", request.zone(stream))
    day = of.at(request.now_s // stream.bucket_s)
    days = [day[1], day[0]]  # the ends of today, yesterday and so on
    for _ in range(BACK):
        days.append(of.at(days[-1] - 1)[0])
    spans = {"today": (1, 0), "yesterday": (2, 1), "week": (8, 1), "month": (29, 1)}
    spans |= {"before": (9, 8), "weeks": (15, 8), "curve": (9, 0), "days": (14, 0)}
    times = [max(0, bucket) * stream.bucket_s for bucket in days]
    return {name: [times[first], times[end]] for name, (first, end) in spans.items()}


def stream_page(request: PageRequest) -> StreamPage:
    """Return a page of one stream."""
    stream = request.stream()
    zone = request.zone(stream)
    revisions = read_revisions(request.reader, stream)
    theta = plan_terms(read_used_plans(request.reader, stream), revisions)
    counted = request.reader.presence(stream.id)
    return StreamPage(
        **asdict(_one_stream(request, stream)),
        lengths=list(LENGTHS),
        zones=list(dict.fromkeys((str(request.config.zone(stream)), "UTC", str(zone)))),
        groups=[name for name, _ in _groups(request.reader)],
        last_s=(counted[-1][0] + 1) * stream.bucket_s if counted else None,
        looks=[PastLook(**asdict(look_of(one)), halves=dict(one.forecast)) for one in revisions],
        theta=theta,
        curated=any(one.design.name == stream.name for one in read_streams(request.reader)),
    )


def devices(request: PageRequest) -> DevicesPage:
    """Return a page of devices."""
    least = request.config.query.min_devices
    orders = tuple(one for one in ORDERS if least <= 1 or one not in MOVED)
    chosen, order = request.one_of("state", STATES), request.one_of("sort", orders)
    reader, text, groups = request.reader, request.given.get("q", ""), request.reader.groups()
    group, old_s = request.given.get("group", "*"), request.config.silent_before(request.now_s)
    of = None if group == "*" else groups.get(group, -1)
    found = reader.device_names(chosen, order, old_s, of, down=request.given.get("down") == "1")
    rows = [name for name in found if text in name]
    plain = chosen == "all" and of is None
    pages = max(1, -(-len(rows) // PAGE))
    at = min(max(1, _whole(request.given.get("page", "1"))), pages)
    names = {stream.id: stream.name for stream in request.config.streams}
    shown = rows[(at - 1) * PAGE : at * PAGE]
    marks = [row for row in reader.marks() if row.device in shown]
    return DevicesPage(
        fleet=request.config.fleet,
        zone=str(request.zone(None)),
        all=len(found) if plain else reader.device_sums(old_s).enrolled,
        found=len(rows),
        page_at=at,
        pages=pages,
        states=list(STATES),
        sorts=list(orders),
        groups=sorted(groups),
        rows=[
            shown_device(row, reader.states(row.device), marks, names, old_s, least=least)
            for row in reader.some_devices(shown)
        ],
    )


def device(request: PageRequest) -> DeviceAnswer:
    """Return the page of a device."""
    name = request.given.get("name", "")
    zone = request.zone(None)
    found = read_device(request.reader, request.config, name, request.now_s, zone)
    if found is None:
        raise ConfigError("page", "name", "expected the name of a device that is known")
    return found


def plans(request: PageRequest) -> PlansPage:
    """Return a page of a stream's plans."""
    stream = request.stream()
    window_s = min(one.slot_seconds for one in request.config.streams)  # slots that windows are of
    revisions, found = (
        read_revisions(request.reader, stream),
        read_used_plans(request.reader, stream),
    )
    by = orders(request.config, stream, found, revisions, request.reader.audit())
    theta = [
        replace(row, reasons=[*by.get(row.epoch, ()), *(row.reasons or ())])
        for row in plan_terms(found, revisions)
    ]
    return PlansPage(
        **asdict(_one_stream(request, stream)),
        horizon=stream.horizon_text,
        held_s=request.reader.plan_holds().get(stream.id),
        look=look_of(revisions[-1]) if revisions else None,
        theta=theta[::-1],
        epsilon=str(stream.epsilon),
        slots_a_day=DAY_S // window_s,
        parts=stream.slot_seconds // window_s,
        low=stream.low,
        ceiling=stream.ceiling,
        days=stream.horizon_days,
        homes=request.reader.device_sums(request.now_s).enrolled or 400,
    )


def groups(request: PageRequest) -> GroupsPage:
    """Return a page of the groups whose name has a text."""
    stream, names = request.stream(), request.reader.device_names
    text, every = request.given.get("q", ""), _groups(request.reader)
    found = [(name, number) for name, number in every if text in name]
    sized = [(name, len(names("all", "device", 0, number))) for name, number in found[:MOST_GROUPS]]
    return GroupsPage(
        **asdict(_one_stream(request, stream)),
        found=len(found),
        least=request.config.query.min_devices,
        week=_times(request, stream)["week"],
        groups=[GroupSize(group=name, devices=devices) for name, devices in sized],
    )


def audit(request: PageRequest) -> ChangesPage:
    """Return what operators changed, where a text is in who or what."""
    text = request.given.get("q", "")
    every = read_audit(request.reader, request.config.fleet).audit
    rows = [row for row in every if text in row.who or text in row.command]
    return ChangesPage(
        fleet=request.config.fleet,
        zone=str(request.zone(None)),
        found=len(rows),
        audit=rows[: -MOST_CHANGES - 1 : -1],
    )


def message(request: PageRequest) -> bytes:
    """Return the plan in force as published, for `edge-ldp certify --plan`; or NothingError."""
    stream = request.stream()
    newest = newest_plan(request.reader.plans(), stream)
    if newest is None:
        raise NothingError(f"{stream.name}: {stream.no_plan}")
    return newest.payload


def certificate(request: PageRequest) -> bytes:
    """Return its certificate, proved now, for `edge-ldp certify --check`; or NothingError."""
    proved = judge_plan(message(request)).certificate
    if proved is None:
        raise NothingError(f"{request.stream().name}: {request.stream().no_plan}")
    return proved.to_json()


def _summary(request: PageRequest) -> FleetSummary:
    return read_summary(request.reader, request.config, request.now_s)


PAGES: Mapping[str, tuple[Callable[[PageRequest], AnswerPart], type[AnswerPart]]] = {
    "overview": (overview, OverviewPage),
    "stream": (stream_page, StreamPage),
    "devices": (devices, DevicesPage),
    "device": (device, DeviceAnswer),
    "check": (lambda request: check_answer(request.config), CheckAnswer),
    "privacy": (lambda request: dossier_answer(request.reader, request.config), DossierAnswer),
    "plans": (plans, PlansPage),
    "groups": (groups, GroupsPage),
    "audit": (audit, ChangesPage),
    "summary": (_summary, FleetSummary),
}
FILES: Mapping[str, Callable[[PageRequest], bytes]] = {
    "message": message,
    "certificate": certificate,
}


def _one_stream(request: PageRequest, stream: StreamTable) -> OneStream:
    return OneStream(
        fleet=request.config.fleet,
        zone=str(request.zone(stream)),
        streams=[one.name for one in request.config.streams],
        stream=stream.name,
        unit=stream.unit,
        amount=amount_of(stream.unit),
        is_summed_alone=stream.is_summed_alone,
    )


def _groups(reader: Reader) -> list[tuple[str, int]]:
    """Return groups and their numbers by name; "", of devices in none, where there are such."""
    found = sorted(reader.groups().items())
    return [(name, at) for name, at in found if name or len(found) == 1 or reader.may_report(at)]


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 9):  # noqa: PLR2004 (digits)
        raise ConfigError("page", "page", "expected a whole number")
    return int(text)
