"""`edge-ldp aggregator export`: whole days of answers into tables that other programs read."""

from argparse import Namespace
from dataclasses import replace

from msgspec.structs import asdict

from aggregator.answers.curve_answer import CurveAnswer
from aggregator.answers.fleet.changes import ExportedAnswers
from aggregator.answers.local_time import Spans
from aggregator.answers.sums_answer import LOCAL, VOLUME_KEYS, read_sums_answer
from aggregator.commands.asking import Asked, Commands, Shown, option
from aggregator.commands.figures import load_curve
from aggregator.config import ConfigError, StreamTable
from aggregator.config.load import read_store_password
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


def export(asked: Asked) -> Shown:
    """Write whole days into tables that others read: load curves, and homes' sums beside them."""
    config, file, days = asked.config, str(asked.args.config), asked.args.days
    if config.store.url is None:
        expected = "expected a PostgreSQL store; a SQLite one's answers are had from the API"
        raise ConfigError(file, "store.url", expected)
    now_s = asked.now_s
    spans, rows, sums = [], [], []
    for stream in config.streams:
        of = Spans(stream, "day", config.zone(stream))
        until = end = of.at(now_s // stream.bucket_s)[0]
        for _ in range(days):
            first = of.at(end - 1)[0]
            if end <= 0:
                break
            day = stream.name, first * stream.bucket_s, end * stream.bucket_s
            spans.append(day)
            rows += day_of_answers(asked, day)
            end = first
        sums += periods_of_sums(asked, stream, (end * stream.bucket_s, until * stream.bucket_s))
    from aggregator.store.postgres.answers import write_answers  # noqa: PLC0415 (an extra)

    password = read_store_password(config.store, file)
    write_answers(config.store.url, password, file, spans, {"spans": rows, "periods": sums})
    withheld = sum(bool(row["withheld"]) for row in (*rows, *sums))
    view = ExportedAnswers(rows=len(rows) + len(sums), withheld=withheld, days=days)
    text = f"{view.rows} rows of {view.days} days, of which {withheld} are withheld\n"
    return Shown(view, lambda: text)


def day_of_answers(asked: Asked, day: Day) -> list[Row]:
    """Return a day's rows of all devices and of each group, by day and by hour.

    Asked day by day, so that what is withheld within a day is so whichever days are written.
    """
    found = {
        name: [row for by in ("day", "hour") for row in _rows(asked, day, by, name)]
        for name in _groups(asked)
    }
    return [*found.pop(ALL), *apart(found)]


def periods_of_sums(asked: Asked, stream: StreamTable, span: tuple[int, int]) -> list[Row]:
    """Return what homes' sums say of each period that ends in a span, of all and of each group."""
    since_s, until_s = span
    least, zone = max(LEAST, asked.config.query.min_devices), asked.config.zone(stream)
    found: dict[Period, dict[str, list[Row]]] = {}
    for name, group in _groups(asked).items():
        since = since_s - MAX_DAYS * DAY_S, until_s
        answer = read_sums_answer(asked.reader, stream, since, zone, group=group, least=least)
        named = {"stream": stream.name, "group": name, "unit": stream.unit}
        for one in answer.periods if answer else ():
            if one.to_s > since_s:
                of = found.setdefault((one.from_s, one.to_s), {})
                of[name] = [{**asdict(one), **named}]
    whole = [row for of in found.values() for row in of.pop(ALL)]
    return [*whole, *(row for of in found.values() for row in apart(of, SUM_FIGURES))]


def _groups(asked: Asked) -> dict[str, int | None]:
    """Return all devices, and each group where there are several, with their numbers."""
    groups = asked.reader.groups()
    return {ALL: None, **(groups if len(groups) > 1 else {})}


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
    many = [
        row.get("homes") or row.get("device_slots") for row in rows if row.get("length") != "hour"
    ]
    return sum(int(str(one)) for one in many)


def _rows(asked: Asked, day: Day, by: str, group: str) -> list[Row]:
    stream, since, until = day
    named = {"stream": stream, "since": since, "until": until, "by": by, "zone": None}
    args = Namespace(config="", group=None if group == ALL else group, mode=LOCAL, **named)
    answer = load_curve(replace(asked, args=args)).answer
    assert isinstance(answer, CurveAnswer)  # noqa: S101 (it always has one)
    rows = answer.days if by == "day" else answer.hours
    told = {"stream": stream, "group": group, "length": by, "unit": answer.unit}
    return [{**asdict(row), **told} for row in rows or ()]


def add(commands: Commands) -> None:
    """Add the command's options."""
    told = "whole days before today, 3 unless given: what came late is in the next one's"
    days = option("--days", type=whole_number, default=3, metavar="N", help=told)
    commands.question(export, ExportedAnswers, days)
