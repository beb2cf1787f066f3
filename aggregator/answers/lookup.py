"""Reading a store for the commands that answer: query, theta, completeness."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from aggregator.answers.crowds import supposed
from aggregator.answers.fleet.completeness import DeviceAccount, StreamSums, stream_name
from aggregator.answers.local_time import Grouping
from aggregator.answers.query import WHOLE, Facts, first_streamed, part_of
from aggregator.config import AggregatorConfig, StreamTable
from aggregator.counting.classes import Weights
from aggregator.counting.reporters import NOBODY
from aggregator.counting.retention import SUMMED, spans
from aggregator.counting.tally import CountRows, exact_sum
from aggregator.plans.revision import Revision, read_revision
from aggregator.store.contract import PlanRow, Reader, stored_plan
from aggregator.store.rows import DeviceRow, ReportSum
from edge_ldp.protocol.plan import Plan
from edge_ldp.protocol.released import FIRST_KEY

LAST_BUCKET = 1 << 32


def read_plans(reader: Reader, stream: StreamTable) -> dict[int, Plan]:
    """Return a stream's plans by epoch; raises StoreError for a damaged one."""
    return {row.epoch: stored_plan(row) for row in reader.plans() if row.stream == stream.id}


def read_used_plans(reader: Reader, stream: StreamTable) -> dict[int, Plan]:
    """Return the plans that devices go by: of sums alone none, even if some were issued once."""
    return {} if stream.is_summed_alone else read_plans(reader, stream)


def newest_plan(rows: Iterable[PlanRow], stream: StreamTable) -> PlanRow | None:
    """Return the row of a stream's plan in force, None without one."""
    mine = (row for row in rows if row.stream == stream.id)
    return max(mine, key=lambda row: row.epoch, default=None)


def read_revisions(reader: Reader, stream: StreamTable) -> list[Revision]:
    """Return a stream's revisions of θ, oldest first; raises CountsError for damaged ones."""
    return [read_revision(row.payload) for row in reader.revisions() if row.stream == stream.id]


def read_last_revision(reader: Reader, stream: StreamTable) -> Revision | None:
    """Return a stream's last revision of θ; raises CountsError for damaged ones."""
    return next(reversed(read_revisions(reader, stream)), None)


def _records(reader: Reader, stream: StreamTable, group: int | None = None) -> list[ReportSum]:
    """Return the records of a stream, added up: of a group (None: of all).

    Not of devices that are held: their counts are among no others.
    """
    return [
        row
        for row in reader.report_sums()
        if row.stream == stream.id
        and not row.held
        and row.group is not None
        and group in (None, row.group)
    ]


def _enrolled(reader: Reader, config: AggregatorConfig, group: int | None) -> int:
    """Return how many devices of a group (None: of all) may report, by what is now.

    Not those revoked or held, nor those that publish curated streams and never reported, and where
    the configuration lists devices, those alone.
    """
    listed, curating = config.intake.listed, _curating(reader, group)
    if listed is None:
        return reader.may_report(group) - len(curating)
    name = _group_name(reader, group)
    of = {row.device: _may_report(row) and name in (None, row.group) for row in reader.devices()}
    return sum(of.get(device, group is None) for device in listed - curating)


def _curating(reader: Reader, group: int | None) -> set[str]:
    """Return the devices of a group that might report, and do nothing but curate.

    By what came of them: one in the central mode of which nothing was released yet is in none of
    it, nor one that reported before it changed its mode.
    """
    released = {chunk.device for chunk in reader.released_chunks()}
    names = [one for one in released if all(key >= FIRST_KEY for key, _ in reader.states(one))]
    rows = reader.some_devices(names) if names else []
    name = _group_name(reader, group)
    return {row.device for row in rows if _may_report(row) and name in (None, row.group)}


def _may_report(row: DeviceRow) -> bool:
    return row.revoked_s is None and row.held_s is None


def _group_name(reader: Reader, group: int | None) -> str | None:
    """Return a group's name, None of all devices."""
    return (
        None if group is None else next(one for one, at in reader.groups().items() if at == group)
    )


def read_counted(  # noqa: PLR0913, PLR0917 (what is asked for)
    reader: Reader,
    stream: StreamTable,
    first: int,
    last: int,
    group: int | None = None,
    by: Grouping = WHOLE,
    *,
    every: Facts | None = None,
) -> Facts:
    """Return the counts of a stream in the buckets first..last, of all or of one group.

    Counts are added up as far as an answer grouped `by` allows, a fraction of the work for a year.
    What is held of devices in quarantine is not in it. `every`: the same of all devices, where it
    was read before.
    """
    plans = read_plans(reader, stream)
    begin = _first_streamed(reader, stream, plans, first, last)
    rows = reader.summed(stream.id, first, last, group, part_of(stream, by, begin))
    within = every.rows if every else None
    if group is not None and within is None:
        within = reader.summed(stream.id, first, last, None, part_of(stream, WHOLE, begin))
    weights = every and every.weights
    return Facts(
        plans,
        rows,
        read_presence(reader, stream, first, last, group),
        beside=read_beside(reader, stream, first, last, group),
        weights=weights or read_weights(reader, stream, within or rows, max(first, begin), last),
        within=within,
    )


def read_weights(
    reader: Reader, stream: StreamTable, rows: CountRows, begin: int, last: int
) -> Weights:
    """Return what reports stand for, by the counts of all devices in the buckets begin..last."""
    there = (rows.bucket >= begin) & (rows.bucket <= last)
    slots = reader.device_slots(stream.id, begin, last)
    return Weights(rows.whose[there], rows.count[there], slots)


def read_presence(
    reader: Reader, stream: StreamTable, first: int, last: int, group: int | None
) -> NDArray[np.int64]:
    """Return (bucket, device-slots) of the buckets first..last, rising."""
    presence = [pair for pair in reader.presence(stream.id, group) if first <= pair[0] <= last]
    return np.array(presence, np.int64).reshape(-1, 2)


def read_beside(
    reader: Reader, stream: StreamTable, first: int, last: int, group: int | None
) -> dict[int, bytes] | None:
    """Return who reported by bucket of all devices but the group's; None where it is of all.

    Where the store does not know, as many as were there.
    """
    if group is None:
        return None
    found = reader.reporters(stream.id, first, last, group)
    if NOBODY not in found.values():
        return found
    mine = dict(read_presence(reader, stream, first, last, group).tolist())
    every = dict(read_presence(reader, stream, first, last, None).tolist())
    there = {
        bucket: -(-(every.get(bucket, 0) - mine.get(bucket, 0)) // stream.bucket_slots)
        for bucket in found
    }
    return {bucket: who or supposed(there[bucket]) for bucket, who in found.items()}


def read_extent(
    reader: Reader, stream: StreamTable, group: int | None = None
) -> tuple[int, int] | None:
    """Return the seconds (UTC) from which to which there are reports at all, None without any."""
    there = [bucket for bucket, _ in reader.presence(stream.id, group)]
    return (min(there) * stream.bucket_s, (max(there) + 1) * stream.bucket_s) if there else None


def read_facts(
    reader: Reader,
    config: AggregatorConfig,
    stream: StreamTable,
    group: int | None,
    counted: Facts,
) -> Facts:
    """Return the counts of a stream and a group (None: of all) with what is known of its devices.

    Devices are of the group that they are in now, counts of the one they were in then.
    """
    length = stream.bucket_slots
    mine = _records(reader, stream, group)
    return replace(
        counted,
        spans=_spans(mine, length),
        enrolled=_enrolled(reader, config, group),
        least=config.query.min_devices,
        records=mine,
    )


def _spans(rows: Iterable[ReportSum], bucket_slots: int) -> NDArray[np.int64]:
    """Return first and last bucket of each device with reports."""
    found = [
        (row.first_slot // bucket_slots, row.last_slot // bucket_slots, row.devices)
        for row in rows
        if row.first_slot is not None
    ]
    spans = np.array(found, np.int64).reshape(-1, 3)
    return np.repeat(spans[:, :2], spans[:, 2], axis=0)


def _first_streamed(
    reader: Reader, stream: StreamTable, plans: Mapping[int, Plan], first: int, last: int
) -> int:
    """Return the first bucket with stream reports, 0 for none: hours' sums say where to look."""
    rolled_up, hour = reader.rolled_up(stream.id), spans(stream)[0]
    until = rolled_up.until.get(SUMMED, 0)
    begin, end = first - first % hour, min(last, until - 1)
    while (summed := reader.first_summed(stream.id, begin, end)) is not None:
        low, high = rolled_up.span_of(summed)  # hours may have been added up to days since
        within = max(first, low), min(last, max(high, summed + hour) - 1)
        found = first_streamed(plans, reader.counts(stream.id, *within))
        if found:
            return found
        begin = summed + 1
    return first_streamed(plans, reader.counts(stream.id, max(first, until), last))


def read_account(
    reader: Reader, config: AggregatorConfig
) -> tuple[list[DeviceAccount], list[StreamSums]]:
    """Return the account of every device and stream, and those of streams, at one moment.

    What of a stream is in no count was deleted, where [retention] day_days lets old ones go.
    """
    names = {stream.id: stream.name for stream in config.streams}
    with reader.snapshot():
        records = list(reader.records())
        groups = {row.device: row.group for row in reader.devices()}
        held: Counter[tuple[str, int]] = Counter()
        for row in reader.held_counts():
            held[row.device, row.stream] += exact_sum(row.counts)
        streams = {key for (_, key), _ in records if key < FIRST_KEY} | names.keys()
        in_counts = {stream: exact_sum(reader.totals(stream).count) for stream in streams}
    rows = [
        DeviceAccount(
            device, groups.get(device, ""), stream_name(key, names), record, held[device, key]
        )
        for (device, key), record in records
    ]
    sums = []
    for stream, found in in_counts.items():
        counted = sum(record.counted for (_, key), record in records if key == stream)
        apart = sum(reports for (_, key), reports in held.items() if key == stream)
        missing = counted - found - apart if config.retention.day_days is not None else 0
        sums.append(
            StreamSums(
                stream=stream_name(stream, names),
                counted=counted,
                in_counts=found,
                apart=apart,
                deleted=max(0, missing),
            )
        )
    return rows, sorted(sums, key=lambda one: one.stream)
