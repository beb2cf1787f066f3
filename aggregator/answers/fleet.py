"""How a fleet is: `status`, with a row of each device; the same in numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from aggregator.answers.curated_lookup import account_of
from aggregator.answers.lookup import read_plans, read_revisions
from aggregator.answers.plan_view import look_of, plan_terms
from aggregator.answers.trust_view import decided_views, mark_view, told_ages
from aggregator.answers.views import completeness_view
from aggregator.counting.retention import DAY_S, HOUR_S
from aggregator.plans.planner import is_ahead
from aggregator.store.rows import STOPPED
from edge_ldp.protocol.plan import AHEAD_S
from edge_ldp.protocol.released import FIRST_KEY

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.counting.records import Key, Record
    from aggregator.store.contract import Reader
    from aggregator.store.rows import BeatRow, DeviceRow, MarkRow, ReportSum

LATE_S = 120  # of a heartbeat that comes twice a minute
QUIET_S = 2 * HOUR_S  # without a commit: longer than any receipt interval that ships
STATES = ("online", "offline", "unknown")
REPORTS = ("created", "counted", "rejected", "expired", "pending", "duplicates", "conflicts")


def read_status(
    reader: Reader,
    config: AggregatorConfig,
    now_s: int,
    *,
    every: bool = True,
    exact: bool = False,
) -> dict[str, Any]:
    """Return the JSON of `status`; `every` False leaves completeness and curated empty.

    fleet; now_s (UTC); service: runs (null: nobody can say), workers[]: worker (its name), at_s and
    age_s of its last heartbeat, health then ("ok", "stopped", or what is wrong: is_degraded),
    is_late (none came for two minutes, and it was not stopped), ages: seconds since by that
    heartbeat the last report_s, the last receipt_s, and since there is a link_s to the broker, or
    lost_s: none (null: not since its start, or not told); is_late (all are), last_commit_age_s
    (null: never, or in the future, as after a rehearsal whose clock was ahead);
    last_commit_s (UTC, or null); devices: enrolled, online, offline, unknown
    (never heard of, by their last status), silent (no status for a day, or ever),
    longest_silent: device, seen_s, age_s (same), or null;
    revoked[] and held[] (in quarantine), each device, since_s (UTC), refusing[]: device, reasons[]
    why it refused plans since it started; degraded[]: device, health, ages (as `devices list`) of
    those whose last status told of trouble; curated_streams: how many; streams[]: stream, unit,
    retired_s (UTC, or null), plan in force (as of `theta`, and expires_s, is_ahead: it is dated
    ahead of now, so devices refuse it; or null), look (the
    last revision of θ: at_s, theta, survey, survey_share, stream_reports, survey_reports,
    forecast[], least, reasons, alarms[]; or null), and reports summed over devices: created,
    counted, rejected, expired, pending, duplicates, conflicts; completeness[]: device, stream, the
    same reports, unconfirmed, highest_batch, gaps [[first, last]], null as there; curated[]:
    device, number of its curated stream, the same of released values, which are in no figure above;
    marked[]: device, stream, first_s, last_s, times, and the last mark: name of a set of codes,
    seen of reports in it, its honest bound, chance; refused[]: reason, stream (or null), messages,
    reports that were not counted; is_fast: the clock is a rehearsal's, and the day of real time.
    """
    names = {stream.id: stream.name for stream in config.streams}
    least = 1 if exact else config.query.min_devices
    sums, records = reader.report_sums(), reader.records() if every else iter(())
    plain, curated = _parted(records)
    return {
        **_fleet_view(reader, config, now_s, sums),
        "devices": _devices_view(reader, config, now_s, least),
        "curated_streams": sum(row.devices for row in sums if row.stream >= FIRST_KEY),
        "completeness": [completeness_view(*pair, names, least) for pair in plain],
        "curated": [account_of(*key, record) for key, record in curated],
        "marked": [mark_view(row, names) for row in reader.marks()],
        "is_fast": _speed(config) > 1,
    }


def read_summary(reader: Reader, config: AggregatorConfig, now_s: int) -> dict[str, Any]:
    """Return numbers alone, no device's name.

    fleet, now_s, service, last_commit_s, streams[], refused[]: as in `status`; quiet_s: how long
    nothing may be committed; devices: enrolled, online, silent (no status for a day), revoked,
    held, refusing, marked (and not held); is_fast: the clock is a rehearsal's, and quiet_s and the
    day are of real time.
    """
    quiet_s, speed = max(QUIET_S, 2 * config.intake.receipt_interval_s), _speed(config)
    return {
        **_fleet_view(reader, config, now_s, reader.report_sums()),
        "quiet_s": int(quiet_s * speed),
        "devices": reader.device_sums(silent_before(config, now_s))._asdict(),
        "is_fast": speed > 1,
    }


def silent_before(config: AggregatorConfig, now_s: int) -> int:
    """Return when a device must last have been heard of: a day ago, of real time where less."""
    return now_s - int(DAY_S * _speed(config))


def _speed(config: AggregatorConfig) -> float:
    """Return by how much more than real time passes on the fleet's clock, at least 1."""
    return max(1.0, config.clock.rate)


def is_silent(state: str, seen_s: int, old_s: int) -> bool:
    """Say whether nothing was heard of a device since `old_s` (`silent_before`), or ever."""
    return state == "unknown" or seen_s < old_s


def device_view(  # noqa: PLR0913 (what is known)
    row: DeviceRow,
    records: Iterable[tuple[int, Record]],
    marks: Iterable[MarkRow],
    names: Mapping[int, str],
    old_s: int,
    *,
    least: int,
) -> dict[str, Any]:
    """Return all that a page of devices tells of one, of its records and all marks.

    `least`: of how many devices figures are.
    """
    return {
        "device": row.device,
        "group": row.group,
        "state": "silent" if is_silent(row.state, row.seen_s, old_s) else row.state,
        "software": row.software,
        "seen_s": None if row.state == "unknown" else row.seen_s,
        "health": row.health if row.is_degraded else "ok",
        "receipt_s": told_ages(row.ages).get("receipt_s"),
        "revoked_s": row.revoked_s,
        "held_s": row.held_s,
        "refusals": list(row.refusals),
        "streams": [
            completeness_view((row.device, key), record, names, least)
            for key, record in records
            if key < FIRST_KEY
        ],
        "marks": [mark_view(one, names) for one in marks if one.device == row.device],
    }


def _fleet_view(
    reader: Reader, config: AggregatorConfig, now_s: int, sums: Sequence[ReportSum]
) -> dict[str, Any]:
    """Return of the JSON of `status` what is of no single device."""
    names, retired = {stream.id: stream.name for stream in config.streams}, reader.retired()
    return {
        "fleet": config.fleet,
        "now_s": now_s,
        "service": _service_view(reader, config, now_s),
        "last_commit_s": reader.last_commit_s(),
        "streams": [
            _stream_view(reader, stream, sums, now_s) | {"retired_s": retired.get(stream.id)}
            for stream in config.streams
        ],
        "refused": [
            {
                "reason": row.reason,
                "stream": names.get(row.stream),
                "messages": row.messages,
                "reports": row.reports,
            }
            for row in reader.refused()
        ],
    }


def _service_view(reader: Reader, config: AggregatorConfig, now_s: int) -> dict[str, Any]:
    """Return `service` of the JSON of `status`."""
    late_s, last_s = LATE_S * config.clock.rate, reader.last_commit_s()
    beats = [_beat_view(row, now_s, late_s) for row in reader.beats()]
    awaited = [beat for beat in beats if beat["health"] != STOPPED]
    return {
        "runs": reader.is_served(),
        "workers": beats,
        "is_late": bool(awaited) and all(beat["is_late"] for beat in awaited),
        "last_commit_age_s": None if last_s is None else _age_s(last_s, now_s, late_s),
    }


def _age_s(at_s: int, now_s: int, slack_s: float) -> int | None:
    """Return how long ago it was; None in the future, by more than clocks may differ."""
    return max(0, now_s - at_s) if at_s - now_s <= slack_s else None


def _beat_view(row: BeatRow, now_s: int, late_s: float) -> dict[str, Any]:
    age_s, times = now_s - row.at_s, row.times
    ages = {
        "report_s": times.report_s,
        "receipt_s": times.receipt_s,
        "link_s": times.link_s,
        "lost_s": times.lost_s,
    }
    return {
        "worker": row.worker,
        "at_s": row.at_s,
        "health": row.health,
        "age_s": age_s,
        "is_degraded": row.is_degraded,
        "is_late": age_s > late_s and row.health != STOPPED,
        "ages": {
            name: None if at_s is None else max(0, now_s - at_s) for name, at_s in ages.items()
        },
    }


def _devices_view(
    reader: Reader, config: AggregatorConfig, now_s: int, least: int
) -> dict[str, Any]:
    """Return `devices` of the JSON of `status`: numbers, and single devices where it matters."""
    with reader.snapshot():
        states = reader.device_states()
        sums = reader.device_sums(silent_before(config, now_s))
        row, trouble = reader.longest_silent(), reader.devices_in_trouble()
    longest = None
    if row is not None:
        age_s = _age_s(row.seen_s, now_s, LATE_S * config.clock.rate)
        longest = {"device": row.device, "seen_s": row.seen_s, "age_s": age_s}
    return {
        "enrolled": sums.enrolled,
        **{state: states.get(state, 0) for state in STATES},
        "silent": sums.silent,
        "longest_silent": longest,
        **decided_views(trouble, least),
    }


def _parted(
    records: Iterable[tuple[Key, Record]],
) -> tuple[list[tuple[Key, Record]], list[tuple[Key, Record]]]:
    """Return the records of reports, and those of released values."""
    found: tuple[list[tuple[Key, Record]], list[tuple[Key, Record]]] = ([], [])
    for pair in records:
        found[pair[0][1] >= FIRST_KEY].append(pair)
    return found


def _stream_view(
    reader: Reader, stream: StreamTable, sums: Sequence[ReportSum], now_s: int
) -> dict[str, Any]:
    plans, revisions = read_plans(reader, stream), read_revisions(reader, stream)
    plan = plans[max(plans)] if plans else None
    return {
        "stream": stream.name,
        "unit": stream.unit,
        "plan": None
        if plan is None
        else {
            **to_builtins(plan_terms({plan.epoch: plan}, revisions)[0]),
            "expires_s": plan.expires_s,
            "is_ahead": is_ahead(plan, now_s, AHEAD_S),
        },
        "look": to_builtins(look_of(revisions[-1])) if revisions else None,
        **{
            name: sum(getattr(row, name) for row in sums if row.stream == stream.id)
            for name in REPORTS
        },
    }
