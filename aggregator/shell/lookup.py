"""Reading a store for the commands that answer: query, theta, status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.query import Facts
from aggregator.revise import read_look
from aggregator.shell.released_lookup import account_of
from aggregator.trust_view import look_view, mark_view
from aggregator.views import completeness_view, theta_view
from edge_ldp.plan import Plan, parse_plan
from edge_ldp.released import FIRST_KEY

if TYPE_CHECKING:
    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.records import Record
    from aggregator.shell.store import Reader

LAST_BUCKET = 1 << 32
SUMMED = ("created", "counted", "rejected", "expired", "pending", "duplicates", "conflicts")


def read_plans(reader: Reader, stream: StreamTable) -> dict[int, Plan]:
    """Return a stream's plans by epoch."""
    return {row.epoch: parse_plan(row.payload) for row in reader.plans() if row.stream == stream.id}


def read_records(reader: Reader, stream: StreamTable) -> list[Record]:
    """Return the records of a stream, one for each device."""
    return [record for (_, at), record in reader.records() if at == stream.id]


def read_facts(
    reader: Reader, config: AggregatorConfig, stream: StreamTable, first: int, last: int
) -> Facts:
    """Return what the store knows of a stream in the buckets first..last."""
    length = stream.bucket_slots
    records = read_records(reader, stream)
    spans = [
        (record.first_slot // length, record.state.last_slot // length)
        for record in records
        if record.first_slot is not None
    ]
    listed = config.intake.enrolment
    presence = [pair for pair in reader.presence(stream.id) if first <= pair[0] <= last]
    return Facts(
        plans=read_plans(reader, stream),
        rows=reader.counts(stream.id, first, last),
        totals=reader.totals(stream.id),
        presence=np.array(presence, np.int64).reshape(-1, 2),
        spans=np.array(spans, np.int64).reshape(-1, 2),
        enrolled=len(records) if listed == "open" else len(listed),
    )


def read_status(reader: Reader, config: AggregatorConfig) -> dict[str, Any]:
    """Return the JSON of `status`.

    fleet; last_commit_s (UTC, or null); devices: enrolled, online; streams[]: stream, unit, plan in
    force (as of `theta`, or null), look (the last at its reports: at_s, theta, spread, survey,
    stream_reports, survey_reports, surprise, shifted, reasons, alarms[]; or null), and reports
    summed over devices: created, counted, rejected, expired, pending, duplicates, conflicts;
    completeness[]: device, stream, the same reports, highest_batch, gaps [[first, last]];
    curated[]: device, number of its curated stream, the same of released values, which are in no
    figure above; marked[]: device, stream, first_s, last_s, times, and the last mark: name of a set
    of codes, seen of reports in it, its honest bound, chance; refused[]: reason, stream (or null),
    messages, reports that were not counted.
    """
    names = {stream.id: stream.name for stream in config.streams}
    records = list(reader.records())
    completeness = [completeness_view(*pair, names) for pair in records if pair[0][1] < FIRST_KEY]
    devices = reader.devices()
    return {
        "fleet": config.fleet,
        "last_commit_s": reader.last_commit_s(),
        "devices": {
            "enrolled": len(devices),
            "online": sum(device.state == "online" for device in devices),
        },
        "streams": [_stream_view(reader, stream, completeness) for stream in config.streams],
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
    plans = theta_view(read_plans(reader, stream))
    looks = [row for row in reader.looks() if row.stream == stream.id]
    return {
        "stream": stream.name,
        "unit": stream.unit,
        "plan": plans[-1] if plans else None,
        "look": look_view(read_look(looks[-1].payload)) if looks else None,
        **{field: sum(row[field] for row in mine) for field in SUMMED},
    }
