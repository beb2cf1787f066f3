"""How a fleet is: `status`, with a row of each device; the same in numbers alone."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta, tzinfo

from msgspec import UNSET

from aggregator.answers.crowds import MOVED_AGES
from aggregator.answers.fleet import status_answer as told
from aggregator.answers.fleet.completeness import CuratedPlaces, StreamPlaces, stream_places
from aggregator.answers.lookup import read_revisions, read_used_plans
from aggregator.answers.plan_view import look_of, plan_terms
from aggregator.config import AggregatorConfig, StreamTable
from aggregator.counting.records import Record
from aggregator.counting.retention import HOUR_S
from aggregator.plans.planner import is_ahead
from aggregator.store.contract import Reader
from aggregator.store.rows import FLEET_DAYS, STOPPED, BeatRow, DeviceRow, MarkRow, ReportSum
from edge_ldp.protocol.plan import AHEAD_S
from edge_ldp.protocol.released import FIRST_KEY, FIRST_SUMS_KEY
from edge_ldp.protocol.strict_json import loads
from edge_ldp.protocol.utc import utc

COLUMNS = ("created", "counted", "rejected", "expired", "pending", "duplicates", "conflicts")
LATE_S = 120  # of a heartbeat that comes twice a minute
SENDING_S = 240  # that reports of a slot may take to us
QUIET_S = 2 * HOUR_S  # without a commit: longer than any receipt interval that ships


def read_status(
    reader: Reader,
    config: AggregatorConfig,
    now_s: int,
    *,
    every: bool = True,
    exact: bool = False,
) -> told.StatusAnswer:
    """Return what `status` answers; `every` False leaves completeness and curated empty."""
    names = {stream.id: stream.name for stream in config.streams}
    least = 1 if exact else config.query.min_devices
    sums, records = reader.report_sums(), reader.records() if every else iter(())
    plain: list[StreamPlaces] = []
    curated: list[CuratedPlaces] = []
    for (device, key), record in records:
        if not _is_curated(key):
            plain.append(stream_places((device, key), record, names, least))
        else:
            curated.append(CuratedPlaces.of_record(device, record, number=key - FIRST_KEY))
    return told.StatusAnswer.of(
        _fleet_state(reader, config, now_s, sums),
        devices=_fleet_devices(reader, config, now_s, least),
        curated_streams=sum(row.devices for row in sums if _is_curated(row.stream)),
        completeness=plain,
        curated=curated,
        marked=[marked_device(row, names) for row in reader.marks()],
        is_fast=config.speed > 1,
    )


def read_summary(reader: Reader, config: AggregatorConfig, now_s: int) -> told.FleetSummary:
    """Return the summary."""
    quiet_s = max(QUIET_S, 2 * config.intake.receipt_interval_s) * config.speed
    return told.FleetSummary.of(
        _fleet_state(reader, config, now_s, reader.report_sums()),
        quiet_s=int(quiet_s),
        slot_s=max(stream.slot_seconds for stream in config.streams)
        + int(SENDING_S * config.speed),
        room_bytes=reader.room_bytes(),
        devices=told.DeviceCounts.of(reader.device_sums(config.silent_before(now_s))),
        days=[
            told.DayCounts.of(row, date=str(date.fromordinal(row.day)))
            for row in reader.fleet_days()
        ],
        is_fast=config.speed > 1,
    )


def fortnight(found: told.FleetSummary, zone: tzinfo) -> list[tuple[str, told.DayCounts | None]]:
    """Return the dates to today, and how many devices were so then where that is known."""
    today, kept = utc(found.now_s).astimezone(zone).date(), {day.date: day for day in found.days}
    dates = (str(today - timedelta(days=ago)) for ago in reversed(range(FLEET_DAYS)))
    return [(one, kept.get(one)) for one in dates]


def is_silent(state: str, seen_s: int, old_s: int) -> bool:
    """Say whether nothing was heard since `old_s` (AggregatorConfig.silent_before), or ever."""
    return state == "unknown" or seen_s < old_s


def _is_curated(key: int) -> bool:
    return FIRST_KEY <= key < FIRST_SUMS_KEY


def shown_device(  # noqa: PLR0913 (what is known)
    row: DeviceRow,
    records: Iterable[tuple[int, Record]],
    marks: Iterable[MarkRow],
    names: Mapping[int, str],
    old_s: int,
    *,
    least: int,
) -> told.ShownDevice:
    """Return what a page tells of a device; `least`: of how many devices figures are."""
    return told.ShownDevice.of(
        row,
        state="silent" if is_silent(row.state, row.seen_s, old_s) else row.state,
        seen_s=None if row.state == "unknown" else row.seen_s,
        health=row.health if row.is_degraded else "ok",
        receipt_s=told_ages(row.ages).get("receipt_s"),
        streams=[
            stream_places((row.device, key), record, names, least)
            for key, record in records
            if not _is_curated(key)
        ],
        marks=[marked_device(one, names) for one in marks if one.device == row.device],
    )


def marked_device(row: MarkRow, names: Mapping[int, str]) -> told.MarkedDevice:
    """Return a marked device; `names` of streams."""
    return told.MarkedDevice.of(row, row.mark, stream=names.get(row.stream, str(row.stream)))


def troubled_devices(rows: Iterable[DeviceRow], least: int = 1) -> told.TroubledDevices:
    """Return the devices that need somebody; `least`: of how many devices figures are."""
    found = told.TroubledDevices(revoked=[], held=[], refusing=[], degraded=[])
    for row in rows:
        name = row.device
        if row.is_degraded and row.revoked_s is None:
            found.degraded.append(told.DegradedDevice.of(row, ages=told_ages(row.ages, least)))
        if row.refusals:
            found.refusing.append(told.RefusingDevice(device=name, reasons=list(row.refusals)))
        if row.revoked_s is not None:
            found.revoked.append(told.DecidedDevice(device=name, since_s=row.revoked_s))
        if row.held_s is not None:
            found.held.append(told.DecidedDevice(device=name, since_s=row.held_s))
    return found


def told_ages(text: str, least: int = 1) -> dict[str, int]:
    """Return the ages that a device told, in seconds at its last status.

    But for those that its reports move, where figures are of `least` devices.
    """
    ages = dict(loads(text.encode()).raw()) if text else {}
    return {name: age for name, age in ages.items() if least <= 1 or name not in MOVED_AGES}


def _fleet_state(
    reader: Reader, config: AggregatorConfig, now_s: int, sums: Sequence[ReportSum]
) -> told.FleetState:
    names, retired = {stream.id: stream.name for stream in config.streams}, reader.retired()
    return told.FleetState(
        fleet=config.fleet,
        now_s=now_s,
        service=_service_state(reader, config, now_s),
        last_commit_s=reader.last_commit_s(),
        streams=[
            _stream_state(reader, stream, sums, now_s, retired.get(stream.id))
            for stream in config.streams
        ],
        refused=[
            told.RefusedMessages.of(row, stream=names.get(row.stream)) for row in reader.refused()
        ],
    )


def _service_state(reader: Reader, config: AggregatorConfig, now_s: int) -> told.ServiceState:
    late_s, last_s = LATE_S * config.clock.rate, reader.last_commit_s()
    beats = [_worker_state(row, now_s, late_s) for row in reader.beats()]
    awaited = [beat for beat in beats if beat.health != STOPPED]
    return told.ServiceState(
        runs=reader.is_served(),
        workers=beats,
        is_late=bool(awaited) and all(beat.is_late for beat in awaited),
        last_commit_age_s=None if last_s is None else _age_s(last_s, now_s, late_s),
    )


def _age_s(at_s: int, now_s: int, slack_s: float) -> int | None:
    """Return how long ago it was; None in the future, by more than clocks may differ."""
    return max(0, now_s - at_s) if at_s - now_s <= slack_s else None


def _worker_state(row: BeatRow, now_s: int, late_s: float) -> told.WorkerState:
    age_s = now_s - row.at_s
    since = {name: getattr(row.times, name) for name in told.WorkerAges.__struct_fields__}
    ages = {name: None if at_s is None else max(0, now_s - at_s) for name, at_s in since.items()}
    is_late = age_s > late_s and row.health != STOPPED
    ages_then = told.WorkerAges(**ages)
    return told.WorkerState.of(row, row.times, age_s=age_s, is_late=is_late, ages=ages_then)


def _fleet_devices(
    reader: Reader, config: AggregatorConfig, now_s: int, least: int
) -> told.FleetDevices:
    """Return numbers, and single devices where it matters."""
    with reader.snapshot():
        states = reader.device_states()
        sums = reader.device_sums(config.silent_before(now_s))
        row, trouble = reader.longest_silent(), reader.devices_in_trouble()
    longest = None
    if row is not None:
        age_s = _age_s(row.seen_s, now_s, LATE_S * config.clock.rate)
        longest = told.SilentDevice.of(row, age_s=age_s)
    return told.FleetDevices.of(
        sums,
        troubled_devices(trouble, least),
        offline=states.get("offline", 0),
        unknown=states.get("unknown", 0),
        longest_silent=longest,
    )


def _stream_state(
    reader: Reader,
    stream: StreamTable,
    sums: Sequence[ReportSum],
    now_s: int,
    retired_s: int | None,
) -> told.StreamState:
    plans = read_used_plans(reader, stream)
    revisions = read_revisions(reader, stream)
    mine = [row for row in sums if row.stream == stream.id]
    dated = None
    if plans:
        plan = plans[max(plans)]
        (terms,) = plan_terms({plan.epoch: plan}, revisions)
        ahead = is_ahead(plan, now_s, AHEAD_S)
        dated = told.DatedPlan.of(plan, terms, is_ahead=ahead)
    return told.StreamState(
        stream=stream.name,
        unit=stream.unit,
        plan=dated,
        look=look_of(revisions[-1]) if revisions else None,
        retired_s=retired_s,
        is_summed_alone=stream.is_summed_alone or UNSET,
        **{name: sum(getattr(row, name) for row in mine) for name in COLUMNS},
    )
