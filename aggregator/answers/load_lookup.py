"""Reading a store for load curves, and ranges that cut what was added up."""

from collections.abc import Iterable
from datetime import UTC, tzinfo

from aggregator.answers import lookup
from aggregator.answers.load_curve import LoadCurve, load_curve
from aggregator.answers.local_time import DAYS, LATEST_S, Grouping, Spans, offset_s
from aggregator.answers.query import WHOLE, Answer, answer, first_streamed
from aggregator.config import AggregatorConfig, StreamTable
from aggregator.counting.retention import DAY_S, GONE, HOUR_S, SUMMED, RolledUp, spans
from aggregator.counting.tally import Tally, rows_of
from aggregator.store.contract import Reader
from edge_ldp.protocol.utc import utc

NAMES = {HOUR_S: "hours of UTC", DAY_S: "days"}


def read_load_curve(  # noqa: PLR0913 (what is asked for)
    reader: Reader,
    stream: StreamTable,
    first: int,
    last: int,
    group: int | None = None,
    *,
    by: str = "hour",
    zone: tzinfo = UTC,
    tally: Tally | None = None,
) -> LoadCurve:
    """Return the curve of the hours, days or weeks that buckets first..last touch, of one moment.

    As for `answer`, devices count from the first stream report on, here from its hour: before it
    there are surveys. `tally`: counts of a replay in place of the store's; the rest is as it says.
    Raises StoreError, CountsError, RowError.
    """
    of = Spans(stream, by, zone)
    first, last = _widened(first, last, of)
    with reader.snapshot():
        summed = reader.rolled_up(stream.id).until.get(SUMMED, 0)
        sums = reader.sums(stream.id, first, min(last, summed - 1))
        kept = [row for row in sums if group in (None, row.group)]
        rows = reader.counts(stream.id, max(first, summed), last, group)
        who = [*((row.bucket, row.reporters) for row in kept), *rows.reporters.items()]
        if tally is not None:
            rows, kept = rows_of(tally, stream.id, first, last), []
        plans = lookup.read_plans(reader, stream)
        begin = kept[0].bucket if kept else first_streamed(plans, rows)
        begin = max(first, begin - begin % spans(stream)[0])  # hours' sums are of whole hours
        presence = lookup.read_presence(reader, stream, begin, last, group)
        beside = lookup.read_beside(reader, stream, begin, last, group)
        slots = reader.device_slots(stream.id, begin, last)
        return load_curve(plans, kept, rows, presence, of, who, beside, slots)


def whole_spans(
    rolled_up: RolledUp, stream: StreamTable, first: int, last: int, by: Grouping = WHOLE
) -> tuple[int, int, list[str]]:
    """Return first and last so that no kept span is cut, and warnings that name what was changed.

    Groups by hour need the hours themselves, so they begin where `by.whole` has them.
    """
    warnings = []
    gone, whole = rolled_up.until.get(GONE, 0), by.whole if by.by == "hour-of-day" else 0
    longer = (
        f"are kept by {_level(rolled_up.span_of(max(0, whole - 1)), stream)}, without their hours"
    )
    for border, why in ((gone, "were deleted"), (whole, longer)):
        if first < border and (first > 0 or border == whole):
            at = _time(border, stream)
            warnings.append(f"counts before {at} {why}: the answer begins there")
        first = max(first, border)
    if first > last:
        return first, last, warnings
    for begin, end in dict.fromkeys((rolled_up.span_of(first), rolled_up.span_of(last))):
        if begin < first or last + 1 < end:
            warnings.append(_widened_text((begin, end), stream))
    return *rolled_up.widened(first, last), warnings


def read_answers(
    reader: Reader,
    config: AggregatorConfig,
    stream: StreamTable,
    span: tuple[int, int],
    groups: Iterable[int | None] = (None,),
) -> list[Answer]:
    """Return what `query` answers of a span of buckets, of all devices or each of these groups."""
    first, last, _ = whole_spans(reader.rolled_up(stream.id), stream, span[0], span[1] - 1)
    every, found = lookup.read_counted(reader, stream, first, last), []
    for group in groups:
        counted = every
        if group is not None:
            counted = lookup.read_counted(reader, stream, first, last, group, every=every)
        found.append(answer(stream, lookup.read_facts(reader, config, stream, group, counted)))
    return found


def cut_buckets(
    rolled_up: RolledUp, stream: StreamTable, extent: tuple[int, int] | None, *borders: int | None
) -> list[str]:
    """Return warnings of the buckets that a range from one second to another cuts.

    Of those in the `extent` that has reports, and where no longer span is kept, which `whole_spans`
    tells of.
    """
    length = stream.bucket_s
    begin, end = extent or (0, 0)
    cut = [at // length for at in borders if at is not None and begin < at < end and at % length]
    found = [rolled_up.span_of(bucket) for bucket in dict.fromkeys(cut)]
    return [_widened_text(span, stream) for span in found if span[1] - span[0] == 1]


def read_grouping(  # noqa: PLR0913, PLR0917 (what is asked for)
    reader: Reader, stream: StreamTable, first: int, last: int, by: str, zone: tzinfo
) -> tuple[Grouping, list[str]]:
    """Return how the buckets first..last are grouped, and warnings of what groups are not.

    What was added up is hours and days of UTC. Hours of the day begin where each kept hour is one
    of the zone's. Days and weeks go back further: by days of UTC, as days are kept.
    """
    if by == "none":
        return WHOLE, []
    rolled_up, (hour, _) = reader.rolled_up(stream.id), spans(stream)
    there = [bucket for bucket, _ in reader.presence(stream.id) if first <= bucket <= last]
    ahead = {offset_s(zone, bucket * stream.bucket_s) for bucket in there}
    if by == "hour-of-day":
        whole = rolled_up.whole_from(1 if any(one % HOUR_S for one in ahead) else hour)
    elif stream.bucket_s > HOUR_S and any(one % stream.bucket_s for one in ahead):
        whole = lookup.LAST_BUCKET
    else:
        whole = rolled_up.whole_from(hour)
    warnings = []
    if by in DAYS and any(ahead) and any(bucket < whole for bucket in there):
        kept = (
            f"are kept by {stream.bucket_s} s of UTC: they are shown by days of UTC"
            if whole == lookup.LAST_BUCKET
            else f"before {_time(whole, stream)} are kept by days of UTC: they are shown by these"
        )
        warnings.append(f"counts {kept}")
    if stream.bucket_s <= HOUR_S and any(one % stream.bucket_s for one in ahead):
        warnings.append(
            f"counts are kept by {stream.bucket_s} s of UTC, within which clocks of {zone} strike: "
            "each is in the group in which it begins"
        )
    return Grouping(by, zone, whole), warnings


def _widened_text(span: tuple[int, int], stream: StreamTable) -> str:
    begin, end = (_time(border, stream) for border in span)
    cut = f"the range cuts the one from {begin} to {end}, and was widened to it"
    return f"counts there are kept by {_level(span, stream)}: {cut}"


def _level(span: tuple[int, int], stream: StreamTable) -> str:
    return NAMES.get((span[1] - span[0]) * stream.bucket_s, "spans")


def _widened(first: int, last: int, of: Spans) -> tuple[int, int]:
    latest = LATEST_S // of.stream.bucket_s
    begin, _ = of.at(min(max(0, first), latest))
    return begin, lookup.LAST_BUCKET if last >= latest else of.at(max(-1, last))[1] - 1


def _time(bucket: int, stream: StreamTable) -> str:
    return utc(bucket * stream.bucket_s).strftime("%Y-%m-%dT%H:%MZ")
