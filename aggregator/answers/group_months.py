"""What each group's homes used in the last month that is closed, as its homes may see it.

Told once nothing can be counted in the month any more, so two messages never differ by one home's
reports, and rounded to what its interval leaves in doubt. A group of few homes is told nothing of,
nor others, until what all groups that are told leave over is of a crowd. Months are UTC's, as sums'
days are. Source: docs/adr/0036-a-groups-month.md; docs/faults.md, AGG-44.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import ceil, floor, log10

from aggregator.answers.crowds import Reported, withheld
from aggregator.answers.load_lookup import read_answers
from aggregator.answers.parts import Interval
from aggregator.answers.sums_answer import SUMS, SumsAnswer, narrower_mode, read_sums_answer
from aggregator.config import AggregatorConfig, StreamTable
from aggregator.counting.reporters import STREAMS
from aggregator.store.contract import Reader
from edge_ldp.protocol.group_month import GroupMean, GroupMonth
from edge_ldp.protocol.utc import utc

LEAST = 2  # homes, however few [query] min_devices allows: a home's own mean is no group's


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
    now = utc(at_s)
    end, before = now.year * 12 + now.month - 1, now.year * 12 + now.month - 2
    first, until = (
        int(datetime(one // 12, one % 12 + 1, 1, tzinfo=UTC).timestamp()) for one in (before, end)
    )
    return first, until


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
