"""What the broker retains for whoever shows a fleet's figures: a stream's last hour and day.

Each is what `query` answers for that range, to the bit, and withheld like it. Home Assistant finds
them by its MQTT discovery. And what each group's homes used in the last month that is closed, as
its homes may see it: told once nothing can be counted in the month any more, so two messages never
differ by one home's reports, and rounded to what its interval leaves in doubt. A group of few homes
is told nothing of, nor others, until what all groups that are told leave over is of a crowd. Months
are UTC's, as sums' days are. Source: docs/adr/0036-a-groups-month.md; docs/faults.md, AGG-44.
"""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, timedelta
from math import ceil, floor, log10
from typing import Any

from msgspec import to_builtins

from aggregator.answers.crowds import Reported, withheld
from aggregator.answers.load_lookup import read_answers
from aggregator.answers.local_time import Spans
from aggregator.answers.parts import AnswerPart, Interval, Seconds, Span
from aggregator.answers.query import Figures
from aggregator.answers.sums_answer import (
    SUMS,
    SumPeriod,
    SumsAnswer,
    narrower_mode,
    read_sums_answer,
)
from aggregator.answers.units import energy_kwh, volume_m3
from aggregator.config import AggregatorConfig, AnnounceTable, StreamTable
from aggregator.counting.reporters import STREAMS
from aggregator.store.contract import Reader
from edge_ldp.device.sums import DAY_S, MAX_DAYS
from edge_ldp.protocol.group_month import GroupMean, GroupMonth
from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.utc import utc
from edge_ldp.version import __version__

LEAST = 2  # homes, however few [query] min_devices allows: a home's own mean is no group's
MISSED = 3  # announcements that did not come, after which Home Assistant shows a figure no more


class AnnouncedFigures(Figures, frozen=True, kw_only=True):
    """What `query` answers for a range as `whole`; since_s, until_s."""

    since_s: Seconds
    until_s: Seconds


class AnnouncedSums(AnswerPart, frozen=True, kw_only=True):
    """A stream's message: v, stream, unit, slot_seconds, the last hour and day that are over.

    And the last period of which homes sent their own sums.
    """

    v: int = 1
    stream: str
    unit: str
    slot_seconds: Span
    hour: AnnouncedFigures
    day: AnnouncedFigures
    sums: SumPeriod | None


class AnnouncedAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `announced` answers.

    fleet; announced: message (an object) by topic; null where the topic is to be cleared, as of a
    retired stream. A message of a stream: v, stream, unit, slot_seconds; hour and day, the last
    ones that have been over for [announce] delay_s, a day being one of [query] zone: since_s,
    until_s (UTC), and what `query` answers for that range as `whole`; sums: of the last period of
    which homes sent sums, as of `query`, null without any. A message of a group (groups=true): v,
    group, from_s, to_s, the last month that is closed; streams[]: stream, unit, mean and within
    (95 %) in whole units, homes. Others are for Home Assistant's MQTT discovery.
    """

    fleet: str
    announced: dict[str, dict[str, Any] | None]


def announcements(
    reader: Reader, config: AggregatorConfig, table: AnnounceTable, now_s: int
) -> AnnouncedAnswer:
    """Return what `announced` answers: what is published at a moment."""
    retired = reader.retired()
    found: dict[str, dict[str, Any] | None] = {}
    for stream in config.streams:
        at = topic(config.fleet, "sum", stream.name)
        sums = to_builtins(_sums(reader, config, stream, now_s - table.delay_s))
        messages = {at: sums, **_discovery(config.fleet, table, stream, at)}
        found |= dict.fromkeys(messages) if stream.id in retired else messages
    return AnnouncedAnswer(fleet=config.fleet, announced=found)


def announced_groups(reader: Reader, config: AggregatorConfig, now_s: int) -> AnnouncedAnswer:
    """Return the same of groups, by the topics that their homes read."""
    months = group_months(reader, config, now_s)
    found = {
        topic(config.fleet, "group", name): json.loads(month.to_json()) if month.streams else None
        for name, month in months.items()
    }
    return AnnouncedAnswer(fleet=config.fleet, announced=found)


def announced_text(view: AnnouncedAnswer) -> str:
    """Return each topic and its message, as a line."""
    lines = (f"{where} {json.dumps(message)}\n" for where, message in view.announced.items())
    return "".join(lines)


def _discovery(
    fleet: str, table: AnnounceTable, stream: StreamTable, at: str
) -> dict[str, dict[str, object]]:
    """Return what tells Home Assistant of a stream's figures, which are announced `at` a topic."""
    if table.discovery is None:
        return {}
    name = f"edge-ldp-{fleet}"
    device = {"identifiers": [name], "name": f"Fleet {fleet}"}
    return {
        table.sensor_topic(fleet, f"{stream.name}-{part}"): {
            **sensor,
            "unique_id": f"{name}-{stream.name}-{part}",
            "state_topic": at,
            "json_attributes_topic": at,
            "json_attributes_template": _shown(f"{part} | tojson", "'{}'"),
            "suggested_display_precision": 1,
            "expire_after": MISSED * table.interval_s,
            "device": device,
            "origin": {"name": "edge-ldp", "sw_version": __version__},
        }
        for part, sensor in _sensors(stream).items()
    }


def _sums(
    reader: Reader, config: AggregatorConfig, stream: StreamTable, now_s: int
) -> AnnouncedSums:
    """Return a stream's message: of the last hour and day that were over at `now_s`."""
    span, zone = (now_s - 2 * MAX_DAYS * DAY_S, now_s), config.zone(stream)
    with reader.snapshot():
        sums = read_sums_answer(reader, stream, span, zone, least=config.query.min_devices)
    return AnnouncedSums.of(
        stream,
        stream=stream.name,
        hour=_whole(reader, config, stream, "hour", now_s),
        day=_whole(reader, config, stream, "day", now_s),
        sums=None if sums is None else max(sums.periods, key=lambda one: one.to_s),
    )


def _whole(
    reader: Reader, config: AggregatorConfig, stream: StreamTable, by: str, now_s: int
) -> AnnouncedFigures:
    begin, end = Spans(stream, by, config.zone(stream)).over(now_s)
    with reader.snapshot():
        (found,) = read_answers(reader, config, stream, (begin, end))
    seconds = {"since_s": begin * stream.bucket_s, "until_s": end * stream.bucket_s}
    return AnnouncedFigures.of(found.whole, **seconds)


def _sensors(stream: StreamTable) -> dict[str, dict[str, str]]:
    """Return what each figure is to Home Assistant: of a day its energy, where the unit has one.

    Of gas homes' sums of their last period alone, as no report is of it.
    """
    if volume_m3(stream, 0) is not None:
        name = f"{stream.name}, measured in the last period"
        return {"sums": _sensor(name, "m³", "sums.volume_m3", device_class="gas")}
    power = {"device_class": "power"} if stream.unit in ("W", "kW") else {}
    mean = {"state_class": "measurement", **power}
    hour = _sensor(f"{stream.name}, mean of the last hour", stream.unit, "hour.mean", **mean)
    day = _sensor(f"{stream.name}, mean of the last day", stream.unit, "day.mean", **mean)
    if energy_kwh(stream, 0) is not None:
        name = f"{stream.name}, energy of the last day"
        day = _sensor(name, "kWh", "day.energy_kwh", device_class="energy")
    return {"hour": hour, "day": day}


def _sensor(name: str, unit: str, what: str, **kind: str) -> dict[str, str]:
    shown = _shown(what)
    return {"name": name, "unit_of_measurement": unit, **kind, "value_template": shown}


def _shown(what: str, cleared: str = "none") -> str:
    """Return a template; of a topic that is cleared, as a retired stream's, there is no JSON.

    Before the first period is over there are no sums.
    """
    some = " and value_json.sums" if what.startswith("sums") else ""
    return f"{{{{ value_json.{what} if value_json is defined{some} else {cleared} }}}}"


def group_months(reader: Reader, config: AggregatorConfig, now_s: int) -> dict[str, GroupMonth]:
    """Return the closed month of each group by its name; without streams where nothing is told."""
    from_s, to_s = closed_month(now_s - config.intake.resend_window_s)
    retired, groups = reader.retired(), reader.groups()
    streams = [one for one in config.streams if one.id not in retired]
    with reader.snapshot():
        means = [_means(reader, config, one, groups, (from_s, to_s)) for one in streams]
    return {
        name: GroupMonth(name, from_s, to_s, tuple(one[name] for one in means if name in one))
        for name in groups
        if name
    }


def closed_month(at_s: int) -> tuple[int, int]:
    """Return first second and end of the last month of UTC that was over at a moment."""
    end = utc(at_s - at_s % DAY_S).replace(day=1)
    first = (end - timedelta(days=1)).replace(day=1)
    return int(first.timestamp()), int(end.timestamp())


def in_doubt(one: Interval) -> tuple[int, int] | None:
    """Return a mean and half its interval in whole units, None without; the interval is in it.

    The half has one digit, and the mean ends where it does.
    """
    if one.mean is None or one.low is None or one.high is None:
        return None
    half = max(one.high - one.mean, one.mean - one.low, 1.0)
    step = 10 ** floor(log10(half))
    mean = step * round(one.mean / step)
    return mean, step * ceil((half + abs(mean - one.mean)) / step)


def _means(
    reader: Reader,
    config: AggregatorConfig,
    stream: StreamTable,
    groups: Mapping[str, int],
    span: tuple[int, int],
) -> dict[str, GroupMean]:
    """Return a stream's mean of each group that may be told."""
    begin, end = (one // stream.bucket_s for one in span)
    of_reports = read_answers(reader, config, stream, (begin, end), groups.values())
    of_sums = [  # however few they are
        read_sums_answer(reader, stream, span, UTC, group=group, least=1)
        for group in groups.values()
    ]
    least, found = max(LEAST, config.query.min_devices), {}
    few = withheld([one.cell for one in of_reports], least)
    few_sums = _few_homes(of_sums, least)
    for at, name in enumerate(groups):
        reports, sums = of_reports[at].whole, of_sums[at]
        told, homes = None if at in few else in_doubt(reports), reports.devices
        is_told = sums is not None and at not in few_sums and sums.is_all_of(*span)
        if sums and is_told and (told is None or narrower_mode([reports], sums) == SUMS):
            told, homes = in_doubt(sums.whole), sums.whole.homes
        if told is not None and homes:
            found[name] = GroupMean(stream.name, stream.unit, *told, homes)
    return found


def _few_homes(found: Iterable[SumsAnswer | None], least: int) -> set[int]:
    """Return which groups' sums may not be told: of each the period of fewest homes counts."""
    homes = [min(one.homes or 0 for one in sums.periods) if sums else 0 for sums in found]
    return withheld([Reported((one, 0), 1) for one in homes], least, (STREAMS,))
