"""`edge-ldp aggregator export`: whole days of answers into tables that other programs read."""

import argparse
from argparse import Namespace

from msgspec.structs import asdict

from aggregator.answers.curve_answer import CurveAnswer
from aggregator.answers.fleet.changes import ExportedAnswers
from aggregator.answers.local_time import Spans
from aggregator.answers.sums_answer import LOCAL, VOLUME_KEYS, read_sums_answer
from aggregator.commands.asking import Commands, Shown, add_command
from aggregator.commands.common import make_clock, reading
from aggregator.commands.figures import load_curve
from aggregator.config import AggregatorConfig, ConfigError, StreamTable
from aggregator.config.load import read_store_password
from aggregator.store.contract import Reader
from edge_ldp.arguments import whole_number
from edge_ldp.device.sums import DAY_S, MAX_DAYS

ALL = "*"  # in the place of a group
OF_ALL = ("mean", "low", "high", "energy_kwh", "energy_kwh_low", "energy_kwh_high")
FIGURES = ("n", "device_slots", *OF_ALL)
SUM_FIGURES = (
    *("homes", "slots", "coverage", *OF_ALL),
    *("full_kwh", "full_kwh_low", "full_kwh_high"),
    *VOLUME_KEYS,
)
LEAST = 2  # homes of a sum that leaves, whatever [query] min_devices: one home's is a release
Row = dict[str, object]
Day = tuple[str, int, int]  # stream, first second, end
Period = tuple[int, int]


def export(args: argparse.Namespace) -> int:
    """Write whole days into tables that others read: load curves, and homes' sums beside them."""
    with reading(args) as (config, reader):
        if config.store.url is None:
            expected = "expected a PostgreSQL store; a SQLite one's answers are had from the API"
            raise ConfigError(str(args.config), "store.url", expected)
        now_s = int(make_clock(config).now())
        spans, rows, sums = [], [], []
        for stream in config.streams:
            of = Spans(stream, "day", config.zone(stream))
            until = end = of.at(now_s // stream.bucket_s)[0]
            for _ in range(args.days):
                first = of.at(end - 1)[0]
                if end <= 0:
                    break
                day = stream.name, first * stream.bucket_s, end * stream.bucket_s
                spans.append(day)
                rows += day_of_answers(config, reader, day)
                end = first
            sums += periods_of_sums(
                config, reader, stream, (end * stream.bucket_s, until * stream.bucket_s)
            )
        password = read_store_password(config.store, str(args.config))
    from aggregator.store.postgres.answers import write_answers  # noqa: PLC0415 (an extra)

    write_answers(
        config.store.url, password, str(args.config), spans, {"spans": rows, "periods": sums}
    )
    withheld = sum(bool(row["withheld"]) for row in (*rows, *sums))
    view = ExportedAnswers(rows=len(rows) + len(sums), withheld=withheld, days=args.days)
    text = f"{view.rows} rows of {view.days} days, of which {withheld} are withheld\n"
    return Shown(view, lambda: text).show(args)


def day_of_answers(config: AggregatorConfig, reader: Reader, day: Day) -> list[Row]:
    """Return a day's rows of all devices and of each group, by day and by hour.

    Asked day by day, so that what is withheld within a day is so whichever days are written.
    """
    groups = reader.groups()
    found = {
        name: [row for by in ("day", "hour") for row in _asked(config, reader, day, by, name)]
        for name in (ALL, *(groups if len(groups) > 1 else ()))
    }
    return [*found.pop(ALL), *apart(found)]


def periods_of_sums(
    config: AggregatorConfig, reader: Reader, stream: StreamTable, span: tuple[int, int]
) -> list[Row]:
    """Return what homes' sums say of each period that ends in a span, of all and of each group."""
    since_s, until_s = span
    groups, least = reader.groups(), max(LEAST, config.query.min_devices)
    asked: dict[str, int | None] = {ALL: None, **(groups if len(groups) > 1 else {})}
    found: dict[Period, dict[str, list[Row]]] = {}
    for name, group in asked.items():
        since = since_s - MAX_DAYS * DAY_S, until_s
        zone = config.zone(stream)
        answer = read_sums_answer(reader, stream, since, zone, group=group, least=least)
        named = {"stream": stream.name, "group": name, "unit": stream.unit}
        for one in answer.periods if answer else ():
            if one.to_s > since_s:
                of = found.setdefault((one.from_s, one.to_s), {})
                of[name] = [{**asdict(one), **named}]
    whole = [row for of in found.values() for row in of.pop(ALL)]
    return [*whole, *(row for of in found.values() for row in apart(of, SUM_FIGURES))]


def apart(groups: dict[str, list[Row]], figures: tuple[str, ...] = FIGURES) -> list[Row]:
    """Return the rows of groups that together are all devices: none can be told from the others.

    Where something of a group is withheld, all of the smallest other one is, too: what all devices
    less the shown groups tell is then of that one's devices besides, which are enough.
    """
    whole = {name for name, rows in groups.items() if not any(row["withheld"] for row in rows)}
    if len(whole) < len(groups):
        sizes = {name: _size(rows) for name, rows in groups.items() if name in whole and rows}
        smallest = min(sizes, key=sizes.__getitem__, default=None)
        for name, rows in groups.items():
            for row in rows if smallest in (name, None) else ():
                row.update(dict.fromkeys(figures), withheld=True)
    return [row for rows in groups.values() for row in rows]


def _size(rows: list[Row]) -> int:
    many = [row.get("homes") or row.get("device_slots") for row in rows if _is_whole(row)]
    return sum(int(str(one)) for one in many)


def _is_whole(row: Row) -> bool:
    return row.get("length") != "hour"


def _asked(config: AggregatorConfig, reader: Reader, day: Day, by: str, group: str) -> list[Row]:
    stream, since, until = day
    asked = {"stream": stream, "since": since, "until": until, "by": by, "zone": None}
    of = None if group == ALL else group
    args = Namespace(config="", group=of, mode=LOCAL, **asked)
    answer = load_curve(args, config, reader).answer
    assert isinstance(answer, CurveAnswer)  # noqa: S101 (it always has one)
    rows = answer.days if by == "day" else answer.hours
    named = {"stream": stream, "group": group, "length": by, "unit": answer.unit}
    return [{**asdict(row), **named} for row in rows or ()]


def add(commands: Commands) -> None:
    """Add the command's options."""
    parser = add_command(commands, export, ExportedAnswers)
    days = "whole days before today, 3 unless given: what came late is in the next one's"
    parser.add_argument("--days", type=whole_number, default=3, metavar="N", help=days)
