"""Reading a store for load curves, and ranges that cut what was added up."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from aggregator.load_curve import load_curve
from aggregator.rollup import GONE, SUMMED, spans
from aggregator.shell.lookup import read_plans

if TYPE_CHECKING:
    from aggregator.config import StreamTable
    from aggregator.load_curve import LoadCurve
    from aggregator.rollup import Kept
    from aggregator.shell.store import Reader

NAMES = {3600: "hours", 86_400: "days"}


def read_load_curve(
    reader: Reader, stream: StreamTable, first: int, last: int, group: int | None = None
) -> LoadCurve:
    """Return the curve of the hours that begin in the buckets first..last, of one moment.

    Raises StoreError, CountsError, RowError.
    """
    hour, _ = spans(stream)
    first, last = first - first % hour, last - last % hour + hour - 1
    with reader.snapshot():
        summed = reader.kept(stream.id).until.get(SUMMED, 0)
        kept = [
            (bucket, epoch, bytes(sums))
            for bucket, epoch, of, sums in reader.sums(stream.id, first, min(last, summed - 1))
            if group is None or of == group
        ]
        rows = reader.counts(stream.id, max(first, summed), last, group)
        presence = [pair for pair in reader.presence(stream.id, group) if first <= pair[0] <= last]
        plans = read_plans(reader, stream)
    return load_curve(plans, kept, rows, np.array(presence, np.int64).reshape(-1, 2), hour)


def whole_spans(
    kept: Kept, stream: StreamTable, first: int, last: int, *, hours: bool = False
) -> tuple[int, int, list[str]]:
    """Return first and last so that no kept span is cut, and warnings that name what was changed.

    `hours`: as for groups by hour, which need the hours themselves.
    """
    warnings = []
    gone, whole = kept.until.get(GONE, 0), kept.whole_from(spans(stream)[0]) if hours else 0
    for border, why in ((gone, "were deleted"), (whole, "are kept by days, without their hours")):
        if first < border and (first > 0 or border == whole):
            at = _time(border, stream)
            warnings.append(f"counts before {at} {why}: the answer begins there")
        first = max(first, border)
    for bucket in (first, last):
        begin, end = kept.span_of(bucket)
        cuts = begin < first if bucket == first else last + 1 < end
        if cuts:
            level = NAMES.get((end - begin) * stream.bucket_s, "spans")
            warnings.append(
                f"counts there are kept by {level}: the range cuts the one from "
                f"{_time(begin, stream)} to {_time(end, stream)}, and was widened to it"
            )
    return *kept.widened(first, last), warnings


def _time(bucket: int, stream: StreamTable) -> str:
    return datetime.fromtimestamp(bucket * stream.bucket_s, UTC).strftime("%Y-%m-%dT%H:%MZ")
