"""`edge-ldp forecast`: how wide the answers will be.

Says before anything is asked how well a fleet's means will be known: expected 95 % half-widths by
horizon, what another split of a window's ε would give, and which mode answers what better. Nothing
is drawn or sent. Exit codes: 0 done; 2 wrong usage, or a file that cannot be read.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edge_ldp.arguments import Parser
from edge_ldp.device.errors import EdgeLdpError, ParameterError
from edge_ldp.extras import pip_install
from edge_ldp.protocol.ledger import scheduled
from edge_ldp.sums.forecast import DAY_S, NAMES, SHIPPED, Fleet, Forecast, forecast, splits
from edge_ldp.sums.law import HOMES_CEILING, Law, homes_law, law_in_time, law_of
from edge_ldp.sums.modes import QUESTIONS, choices
from edge_ldp.sums.modes_text import modes_text, modes_view
from edge_ldp.sums.text import ForecastStudy, asked_text, study_text, study_view

EXIT_USAGE = 2
PICTURES = (".png", ".svg")
GROUP = 30
CURVE = (30, 100, 300, 1_000, 3_000, 10_000, 40_000)  # homes of the picture
OF_A_SHARE = """
With all of the window's ε; of an Nth of it each ± is N times as wide (`setup --gas`: an eighth). A
sum of 28 days is twice as exact as four of 7 days and tells about as much of a home, once a month.
"""
MOST_COUNTS = 20


def main(argv: Sequence[str]) -> int:
    """Forecast what the arguments describe; return the exit code."""
    args = parser().parse_args(argv)
    try:
        _forecast(args)
    except EdgeLdpError as exc:
        return _fail(str(exc))
    except OSError as exc:
        return _fail(f"{exc.filename}: {exc.strerror}")
    except ModuleNotFoundError as exc:
        told = pip_install("edge-ldp[plot]")
        return _fail(f"--picture needs the package {exc.name!r}: {told}")
    return 0


def forecast_view(args: argparse.Namespace) -> dict[str, object]:
    """Return what --json prints; raises EdgeLdpError, OSError."""
    return _view(_study(args), only_sums=args.mode == "sums")


def _view(study: ForecastStudy, *, only_sums: bool) -> dict[str, object]:
    told = [
        {
            "homes": each.fleet.homes,
            "slot_seconds": each.fleet.slot_seconds * study.parts,
            "choices": modes_view(one),
        }
        for each, one in zip(study.by_homes, study.modes, strict=False)
    ]
    return ({} if only_sums else study_view(study)) | ({"modes": told} if told else {})


def _study(args: argparse.Namespace) -> ForecastStudy:
    if args.picture is not None and args.picture.suffix not in PICTURES:
        raise ParameterError("--picture", f"a file that ends with one of {', '.join(PICTURES)}")
    if args.parts < 1 or args.slots_a_day % args.parts:
        raise ParameterError("--parts", f"what divides {args.slots_a_day} slots, as 4")
    if args.parts > 1:
        if args.mode == "local":
            raise ParameterError("--mode", "sums with --parts: reports have the window's slots")
        args.mode = "sums"
    law = _law(args)
    questions = QUESTIONS if args.question is None else (args.question,)
    fleets = [_fleet(args, homes) for homes in args.homes]
    others = splits(fleets[0]) if len(fleets) == 1 else ()
    counts = sorted({*CURVE, *args.homes}) if args.picture is not None else []
    curve = [replace(fleets[0], homes=homes, group=None) for homes in counts]
    found = iter(_all([*fleets, *others, *curve], law, args.horizon))
    by_homes = [next(found) for _ in fleets]
    modes = [choices(each, law, questions, args.parts) for each in by_homes if args.mode != "local"]
    splits_of = [next(found) for _ in others]
    return ForecastStudy(law, args.unit, by_homes, splits_of, modes, list(found), args.parts)


def _forecast(args: argparse.Namespace) -> None:
    study, only_sums = _study(args), args.mode == "sums"
    if args.picture is not None:
        drawn = BytesIO()  # the file is written once the picture is whole
        picture = import_module("edge_ldp.sums.picture")
        picture.draw_forecast(study, drawn, args.picture.suffix[1:])
        args.picture.write_bytes(drawn.getvalue())
    if args.json:
        sys.stdout.write(json.dumps(_view(study, only_sums=only_sums)) + "\n")
        return
    parts = [] if only_sums else [study_text(study)]
    if study.parts > 1:
        parts = ["\n".join([*asked_text(study), ""])]
    for each, one in zip(study.by_homes, study.modes, strict=False):
        several = len(study.modes) > 1
        head = f"{each.fleet.homes:,} homes, {each.fleet.days} days; " if several else ""
        parts.append(head + modes_text(one, only_sums=only_sums))
    if study.parts > 1:
        parts.append(OF_A_SHARE)
    sys.stdout.write("\n".join(parts))


def _all(fleets: Sequence[Fleet], law: Law, horizon: str) -> Iterable[Forecast]:
    """Yield the forecasts, telling a terminal how far it is."""
    told = sys.stderr.isatty()
    for at, fleet in enumerate(fleets, start=1):
        if told:
            end = "\r" if at < len(fleets) else "\r\033[K"
            sys.stderr.write(f"forecast {at} of {len(fleets)}{end}")
            sys.stderr.flush()
        yield forecast(fleet, law, horizon=horizon)


def _fleet(args: argparse.Namespace, homes: int) -> Fleet:
    reports, slots = args.window or (args.streams, 1)
    group = GROUP if args.group is None and homes > GROUP else args.group
    return Fleet(
        homes=homes,
        days=args.days,
        epsilon=args.epsilon,
        window=scheduled(reports, slots, args.streams, max(1, DAY_S // max(1, args.slots_a_day))),
        slots_a_day=args.slots_a_day,
        group=group,
    )


def _law(args: argparse.Namespace) -> Law:
    days, name = args.pilot_days, args.values
    if name is None:
        if days is not None:
            raise ParameterError("--pilot-days", "--values beside it")
        return homes_law(args.low, args.ceiling, args.mean)
    if args.mean is not None:
        raise ParameterError("--mean", "no --values beside it, which have a mean of their own")
    found, ends = _readings(name), (args.low, args.ceiling)
    if days is None:
        return law_of(found, *ends, clamp=args.clamp, name=name)
    a_day = args.slots_a_day // args.parts
    slots = days * a_day
    if slots < 1 or found.size % slots:
        raise ParameterError("--pilot-days", f"what divides {found.size} readings into homes")
    homes = found.reshape(-1, slots)
    return law_in_time(homes, *ends, a_day, clamp=args.clamp, name=name)


def _readings(given: str) -> NDArray[np.generic]:
    """Return the readings of FILE.npy or FILE.csv:COLUMN; raises ParameterError, OSError."""
    if given.endswith(".npy"):
        try:
            with Path(given).open("rb") as file:
                found: NDArray[np.generic] = np.load(file, allow_pickle=False).ravel()
        except (ValueError, EOFError) as exc:
            raise ParameterError(given, "numbers as numpy.save writes them") from exc
        return found
    path, colon, column = given.rpartition(":")
    if not colon or not column or not path.endswith(".csv"):
        raise ParameterError("--values", "FILE.csv:COLUMN or FILE.npy")
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as text:
            return np.array(_column(csv.reader(text), path, column))
    except (UnicodeDecodeError, csv.Error) as exc:
        raise ParameterError(path, "a CSV file in UTF-8 with a heading") from exc


def _column(rows: Iterable[list[str]], path: str, column: str) -> list[float]:
    found: list[float] = []
    at = None
    for line, row in enumerate(rows, start=1):
        if at is None:
            heading = [name.strip() for name in row]
            if column not in heading:
                raise ParameterError(f"{path}:{line}", f"a column {column!r} in {heading}")
            at = heading.index(column)
        elif row:
            try:
                found.append(float(row[at]) if row[at].strip() else float("nan"))
            except (IndexError, ValueError) as exc:
                raise ParameterError(f"{path}:{line}, {column}", "a number") from exc
    return found


def _fail(reason: str) -> int:
    sys.stderr.write(f"edge-ldp forecast: {reason}\n")
    return EXIT_USAGE


def _window(given: str) -> tuple[int, int] | None:
    if given == "every":
        return None
    reports, slash, slots = given.partition("/")
    if not slash or not reports.isdecimal() or not slots.isdecimal():
        raise argparse.ArgumentTypeError("expected REPORTS/SLOTS, as in 8/97, or every")
    return int(reports), int(slots)


def _homes(given: str) -> list[int]:
    parts = given.split(",")
    if len(parts) > MOST_COUNTS or not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"expected 1 to {MOST_COUNTS} whole numbers, as in 30,400")
    return list(map(int, parts))


def parser(kind: type[Parser] = Parser) -> argparse.ArgumentParser:
    """Return what the arguments are."""
    shipped = f"{SHIPPED.reports}/{SHIPPED.slots}"
    made = kind(
        prog="edge-ldp forecast",
        description=(__doc__ or "").split("\n\n")[1],
        epilog=f"--json: {study_view.__doc__}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = made.add_argument
    add("--homes", type=_homes, default=[400], metavar="N[,N…]", help="several: a table (400)")
    add("--days", type=int, default=28, metavar="D", help="that are looked at (28)")
    add("--slots-a-day", type=int, default=96, metavar="N", help="values of a home in a day (96)")
    add("--epsilon", default="1", metavar="E", help="of a report, as it is written (1)")
    add(
        "--window",
        type=_window,
        default=(SHIPPED.reports, SHIPPED.slots),
        metavar="K/W",
        help=f"K reports in any W slots, or every ({shipped})",
    )
    add("--streams", type=int, default=1, metavar="N", help="of a home that share the window (1)")
    add(
        "--parts",
        type=int,
        default=1,
        metavar="M",
        help="M of the window's are a slot of a stream that is summed alone: 4 of gas (1)",
    )
    add("--low", type=int, default=0, help="smallest value considered possible (0)")
    add("--ceiling", type=int, default=HOMES_CEILING, help=f"largest value ({HOMES_CEILING})")
    add("--unit", default="W", help="for the text (W)")
    add("--values", metavar="FILE.csv:COLUMN|FILE.npy", help="a sample of readings")
    add(
        "--pilot-days",
        type=int,
        metavar="D",
        help="of --values: in time, home after home, D days each; hours and days then differ so",
    )
    add("--clamp", action="store_true", help="of --values: put those outside on the range's ends")
    add("--mean", type=float, help="without --values: the mean that is guessed (ceiling / 22)")
    add("--horizon", choices=NAMES, default="hour-of-day", help="that θ is best for (hour-of-day)")
    add("--group", type=int, metavar="N", help=f"homes of a group asked about too ({GROUP})")
    add("--mode", choices=("local", "sums"), help="one alone: of reports, or of sums at home")
    add("--question", choices=QUESTIONS, help="which mode is better for it (all of these)")
    add("--picture", type=Path, metavar="FILE.png|FILE.svg", help="draw it")
    add("--json", action="store_true", help="for machines")
    return made
