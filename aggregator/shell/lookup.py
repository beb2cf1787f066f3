"""Reading a store for the commands that answer: query, theta, status."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.completeness import Account, Sums
from aggregator.query import Facts
from aggregator.revise import read_look
from aggregator.shell.released_lookup import account_of
from aggregator.shell.stored_plan import stored_plan
from aggregator.trust_view import decided_views, look_view, mark_view
from aggregator.views import completeness_view, theta_view
from edge_ldp.released import FIRST_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.records import Record
    from aggregator.revise import Look
    from aggregator.shell.store import Reader
    from edge_ldp.plan import Plan

LAST_BUCKET = 1 << 32
SUMMED = ("created", "counted", "rejected", "expired", "pending", "duplicates", "conflicts")


def read_plans(reader: Reader, stream: StreamTable) -> dict[int, Plan]:
    """Return a stream's plans by epoch; raises StoreError for a damaged one."""
    return {row.epoch: stored_plan(row) for row in reader.plans() if row.stream == stream.id}


def read_last_look(reader: Reader, stream: StreamTable) -> Look | None:
    """Return the last look at a stream's reports; raises CountsError for a damaged one."""
    rows = [row for row in reader.looks() if row.stream == stream.id]
    return read_look(rows[-1].payload) if rows else None


def read_records(
    reader: Reader, stream: StreamTable, devices: AbstractSet[str] | None = None
) -> list[Record]:
    """Return the records of a stream, one for each device, of all or of some devices."""
    return [
        record
        for (device, at), record in reader.records()
        if at == stream.id and (devices is None or device in devices)
    ]


def read_members(
    reader: Reader, config: AggregatorConfig, group: int | None
) -> tuple[frozenset[str], int]:
    """Return the devices whose counts are among those of a group (None: of all), by what is now.

    And how many may report: not revoked, nor held, and listed where the configuration lists.
    """
    listed = config.intake.listed
    names = {number: name for name, number in reader.groups().items()}
    rows = [row for row in reader.devices() if group is None or row.group == names[group]]
    counted = [row for row in rows if row.held_s is None]
    enrolled = {row.device for row in counted if row.revoked_s is None}
    if listed is not None:
        gone = {row.device for row in reader.devices()} - enrolled
        enrolled = enrolled & listed if group is not None else set(listed - gone)
    return frozenset(row.device for row in counted), len(enrolled)


def read_facts(  # noqa: PLR0913, PLR0917 (what is asked for)
    reader: Reader,
    config: AggregatorConfig,
    stream: StreamTable,
    first: int,
    last: int,
    group: int | None = None,
) -> Facts:
    """Return what the store knows of a stream in the buckets first..last, of all or of one group.

    What counts are held of devices in quarantine is in none of it. Devices are of the group that
    they are in now, counts of the one they were in then.
    """
    length = stream.bucket_slots
    devices, enrolled = read_members(reader, config, group)
    records = read_records(reader, stream, devices)
    spans = [
        (record.first_slot // length, record.state.last_slot // length)
        for record in records
        if record.first_slot is not None
    ]
    presence = [pair for pair in reader.presence(stream.id, group) if first <= pair[0] <= last]
    return Facts(
        plans=read_plans(reader, stream),
        rows=reader.counts(stream.id, first, last, group),
        presence=np.array(presence, np.int64).reshape(-1, 2),
        spans=np.array(spans, np.int64).reshape(-1, 2),
        enrolled=enrolled,
        least=config.query.min_devices,
    )


def read_account(reader: Reader, config: AggregatorConfig) -> tuple[list[Account], dict[str, Sums]]:
    """Return the account of every device and stream, and the sums of the counts, at one moment."""
    names = {stream.id: stream.name for stream in config.streams}
    with reader.snapshot():
        records = list(reader.records())
        groups = {row.device: row.group for row in reader.devices()}
        held: Counter[tuple[str, int]] = Counter()
        for row in reader.apart():
            held[row.device, row.stream] += int(row.counts.sum())
        streams = sorted({key for (_, key), _ in records if key < FIRST_KEY} | names.keys())
        in_counts = {stream: int(reader.totals(stream).count.sum()) for stream in streams}
    apart = Counter(dict.fromkeys(streams, 0))
    for (_, stream), reports in held.items():
        apart[stream] += reports
    rows = [
        Account(device, groups.get(device, ""), key, _name(key, names), record, held[device, key])
        for (device, key), record in records
    ]
    forgets = config.retention.day_days is not None
    return rows, {_name(s, names): Sums(in_counts[s], apart[s], forgets) for s in streams}


def _name(key: int, names: Mapping[int, str]) -> str:
    return f"curated {key - FIRST_KEY}" if key >= FIRST_KEY else names.get(key, str(key))


def read_status(reader: Reader, config: AggregatorConfig) -> dict[str, Any]:
    """Return the JSON of `status`.

    fleet; last_commit_s (UTC, or null); devices: enrolled, online, revoked[] and held[] (in
    quarantine), each device, since_s (UTC), refusing[]: device, reasons[] why it refused plans
    since it started; streams[]: stream, unit, retired_s (UTC, or null), plan in force (as of
    `theta`, or null), look (the last at its reports: at_s, theta, survey, survey_share,
    stream_reports, survey_reports, forecast[], least, reasons, alarms[]; or null), and reports
    summed over devices: created, counted, rejected, expired, pending, duplicates,
    conflicts; completeness[]: device, stream, the same reports, highest_batch, gaps [[first,
    last]]; curated[]: device, number of its curated stream, the same of released values, which are
    in no figure above; marked[]: device, stream, first_s, last_s, times, and the last mark: name of
    a set of codes, seen of reports in it, its honest bound, chance; refused[]: reason, stream (or
    null), messages, reports that were not counted.
    """
    names = {stream.id: stream.name for stream in config.streams}
    records = list(reader.records())
    completeness = [completeness_view(*pair, names) for pair in records if pair[0][1] < FIRST_KEY]
    devices, retired = reader.devices(), reader.retired()
    return {
        "fleet": config.fleet,
        "last_commit_s": reader.last_commit_s(),
        "devices": {
            "enrolled": len(devices),
            "online": sum(device.state == "online" for device in devices),
            **decided_views(devices),
        },
        "streams": [
            _stream_view(reader, stream, completeness) | {"retired_s": retired.get(stream.id)}
            for stream in config.streams
        ],
        "completeness": completeness,
        "curated": [
            account_of(device, key, record) for (device, key), record in records if key >= FIRST_KEY
        ],
        "marked": [
            mark_view(
                row.device,
                names.get(row.stream, str(row.stream)),
                (row.first_s, row.last_s, row.times),
                row.mark,
            )
            for row in reader.marks()
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


def _stream_view(
    reader: Reader, stream: StreamTable, completeness: list[dict[str, Any]]
) -> dict[str, Any]:
    mine = [row for row in completeness if row["stream"] == stream.name]
    look = read_last_look(reader, stream)
    plans = theta_view(read_plans(reader, stream), look)
    return {
        "stream": stream.name,
        "unit": stream.unit,
        "plan": plans[-1] if plans else None,
        "look": None if look is None else look_view(look),
        **{field: sum(row[field] for row in mine) for field in SUMMED},
    }
