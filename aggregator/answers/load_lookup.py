"""Reading a store for load curves, and ranges that cut what was added up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aggregator.answers.load_curve import load_curve, span_of
from aggregator.answers.lookup import read_plans
from aggregator.counting.retention import DAY_S, GONE, HOUR_S, SUMMED, spans
from aggregator.counting.tally import rows_of
from edge_ldp.protocol.utc import utc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aggregator.answers.load_curve import LoadCurve
    from aggregator.config import StreamTable
    from aggregator.counting.retention import RolledUp
    from aggregator.counting.tally import Tally
    from aggregator.store.contract import Reader

    Ints = NDArray[np.int64]

NAMES = {HOUR_S: "hours of UTC", DAY_S: "days"}


def read_load_curve(  # noqa: PLR0913 (what is asked for)
    reader: Reader,
    stream: StreamTable,
    first: int,
    last: int,
    group: int | None = None,
    *,
    by: str = "hour",
) -> LoadCurve:
    """Return the curve of the hours, or days, that touch the buckets first..last, of one moment.

    Raises StoreError, CountsError, RowError.
    """
    span = span_of(stream, by)
    first, last = _widened(first, last, span)
    with reader.snapshot():
        summed = reader.kept(stream.id).until.get(SUMMED, 0)
        kept = [
            (bucket, epoch, bytes(sums))
            for bucket, epoch, of, sums in reader.sums(stream.id, first, min(last, summed - 1))
            if group is None or of == group
        ]
        rows = reader.counts(stream.id, max(first, summed), last, group)
        presence = _presence(reader, stream, first, last, group)
        beside = _beside(reader, stream, first, last, group)
        plans = read_plans(reader, stream)
    return load_curve(plans, kept, rows, presence, span, beside)


def replayed_curve(  # noqa: PLR0913 (what is asked for)
    reader: Reader,
    stream: StreamTable,
    tally: Tally,
    first: int,
    last: int,
    *,
    group: int | None = None,
    by: str = "hour",
) -> LoadCurve:
    """Return the same from other counts, those of a replay; plans and presence are the store's."""
    span = span_of(stream, by)
    first, last = _widened(first, last, span)
    rows = rows_of(tally, stream.id, first, last)
    presence = _presence(reader, stream, first, last, group)
    beside = _beside(reader, stream, first, last, group)
    return load_curve(read_plans(reader, stream), [], rows, presence, span, beside)


def whole_spans(
    kept: RolledUp, stream: StreamTable, first: int, last: int, *, hours: bool = False
) -> tuple[int, int, list[str]]:
    """Return first and last so that no kept span is cut, and warnings that name what was changed.

    `hours`: as for groups by hour, which need the hours themselves.
    """
    warnings = []
    gone, whole = kept.until.get(GONE, 0), _hours_from(kept, stream) if hours else 0
    longer = f"are kept by {_level(kept.span_of(max(0, whole - 1)), stream)}, without their hours"
    for border, why in ((gone, "were deleted"), (whole, longer)):
        if first < border and (first > 0 or border == whole):
            at = _time(border, stream)
            warnings.append(f"counts before {at} {why}: the answer begins there")
        first = max(first, border)
    if first > last:
        return first, last, warnings
    for begin, end in dict.fromkeys((kept.span_of(first), kept.span_of(last))):
        if begin < first or last + 1 < end:
            warnings.append(
                f"counts there are kept by {_level((begin, end), stream)}: the range cuts the one "
                f"from {_time(begin, stream)} to {_time(end, stream)}, and was widened to it"
            )
    return *kept.widened(first, last), warnings


def _hours_from(kept: RolledUp, stream: StreamTable) -> int:
    """Return the first bucket from which on each is of one hour of the stream's own day.

    Hours that were added up are those of UTC; they are other ones where the offset is no hour's.
    """
    return kept.whole_from(1 if stream.utc_offset_s % HOUR_S else spans(stream)[0])


def _level(span: tuple[int, int], stream: StreamTable) -> str:
    return NAMES.get((span[1] - span[0]) * stream.bucket_s, "spans")


def _widened(first: int, last: int, span: int) -> tuple[int, int]:
    return first - first % span, last - last % span + span - 1


def _presence(
    reader: Reader, stream: StreamTable, first: int, last: int, group: int | None
) -> Ints:
    found = [pair for pair in reader.presence(stream.id, group) if first <= pair[0] <= last]
    return np.array(found, np.int64).reshape(-1, 2)


def _beside(
    reader: Reader, stream: StreamTable, first: int, last: int, group: int | None
) -> Ints | None:
    """Return the presence of all devices but the group's; None where it is of all."""
    if group is None:
        return None
    mine = dict(_presence(reader, stream, first, last, group).tolist())
    every = _presence(reader, stream, first, last, None).tolist()
    rest = [(bucket, slots - mine.get(bucket, 0)) for bucket, slots in every]
    return np.array(rest, np.int64).reshape(-1, 2)


def _time(bucket: int, stream: StreamTable) -> str:
    return utc(bucket * stream.bucket_s).strftime("%Y-%m-%dT%H:%MZ")
