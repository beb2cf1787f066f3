"""`edge-ldp evaluate STUDY`: the papers' figures, on any data.

Runs one of the papers' experiments on built-in data or your own. In --out DIR it writes STUDY.csv
(a row per measurement; started again, the run goes on from there), STUDY-summary.csv, STUDY.md and
each figure as .png and .svg.

Exit codes: 0 done; 2 wrong usage or input; 130 stopped by Ctrl-C, to go on later.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from rich.console import Console

from edge_ldp.arguments import Parser
from edge_ldp.device.errors import EdgeLdpError
from studies.evaluate.files import built_in, user_values
from studies.evaluate.given import InputError, ValueRange, in_homes, parse_epsilons
from studies.evaluate.report import tables, view, write_report
from studies.evaluate.rows import RowStore
from studies.evaluate.run import run
from studies.evaluate.sources import NAMES
from studies.evaluate.study import Options
from studies.evaluate.summary import summarise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from studies.evaluate.study import Panel, Study, StudyRow, Task, Values

STUDIES = {
    "sw": "[SW] figures 2 to 7: densities, ranges, moments; shapes, widths and buckets of waves",
    "topl": "[ToPS] figures 8 and 9: the threshold θ by local reports, and what it costs",
    "sums": "means and their 95 % intervals on laws and homes nobody tuned them to: what holds",
    "tops": "[ToPS] figures 1 to 7 and 10: streams under central privacy, exact beside published",
}
EXIT_USAGE = 2
EXIT_STOPPED = 130


def main(argv: Sequence[str]) -> int:
    """Run a study; return the exit code."""
    args = _parser().parse_args(argv)
    console = Console(stderr=True)
    try:
        return _evaluate(args, f"edge-ldp evaluate {shlex.join(argv)}", console)
    except (EdgeLdpError, OSError) as exc:
        sys.stderr.write(f"edge-ldp evaluate: {exc}\n")
        return EXIT_USAGE
    except KeyboardInterrupt:
        again = "give the same command again to go on"
        sys.stderr.write(f"edge-ldp evaluate: stopped; what was finished is kept, {again}\n")
        return EXIT_STOPPED


def _evaluate(args: argparse.Namespace, command: str, console: Console) -> int:
    if args.mode == "sums" and args.study != "sums":
        raise InputError("--mode", args.mode, "of the study sums alone", "leave it out")
    name = "period_sums" if args.mode == "sums" else args.study
    study = import_module(f"studies.evaluate.{name}").STUDY
    options, sets = _options(args), _sets(args, study)
    drawn = _drawn(study, args.only)
    tasks = _tasks(study, sets, options, drawn)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{study.name}.csv"
    rows = _measured(study, sets, tasks, path, options.jobs, console)
    units = {values.name: values.unit for values in sets}
    written = write_report(study, summarise(rows), args.out, drawn, units)
    if args.json:
        sys.stdout.write(json.dumps(view(study, sets, options, rows, command)) + "\n")
    else:
        files = "\n".join(map(str, (path, *written)))
        sys.stdout.write(f"{tables(drawn, summarise(rows))}\n{files}\n")
    return 0


def _measured(  # noqa: PLR0913, PLR0917 (one call, in the order of the work)
    study: Study,
    sets: list[Values],
    tasks: list[Task],
    path: Path,
    jobs: int,
    console: Console,
) -> list[StudyRow]:
    """Return the rows of all tasks, those of the file as they are, the others measured now."""
    given = {values.name: values for values in sets}
    digests = {name: values.digest() for name, values in given.items()}
    with RowStore(path, study, digests) as store:
        if store.dropped:
            console.print(f"{path}: its last line was damaged; dropped, and its task done again")
        run(tasks, measure=study.measure, sets=given, store=store, jobs=jobs, console=console)
        return [store.rows[task] for task in tasks]


def _options(args: argparse.Namespace) -> Options:
    for name in ("seeds", "jobs"):
        if (given := getattr(args, name)) is not None and given < 1:
            raise InputError(f"--{name}", "its value", "too small", "give 1 or more")
    epsilons = None if args.epsilon is None else parse_epsilons(args.epsilon)
    return Options(epsilons, args.seeds or 0, args.quick, args.jobs)


def _sets(args: argparse.Namespace, study: Study) -> list[Values]:
    """Return the user's values if given, else the sets named, else the study's own."""
    if args.values is not None:
        if args.ceiling is None:
            remedy = "give what no reading exceeds, chosen without looking at them"
            raise InputError("--ceiling", "its value", "needed with --values", remedy)
        values = user_values(args.values, ValueRange(args.low, args.ceiling, args.unit, args.clamp))
        sets = [in_homes(values, args.homes, args.slots_per_day)]
    else:
        own = study.data if args.data is None else (*study.data, *study.given)
        own = study.quick_data if args.quick and study.quick_data else own
        names = own if args.sets is None else args.sets.split(",")
        sets = [built_in(name.strip(), args.data) for name in dict.fromkeys(names)]
    if args.quick and study.quick_values is not None:
        return [_first(values, study.quick_values) for values in sets]
    return sets


def _first(values: Values, count: int) -> Values:
    kept = values.values[:count].copy()
    about = f"the first {len(kept)} of {values.source}"
    return replace(values, values=kept, source=about, homes=1)


def _drawn(study: Study, only: str | None) -> Sequence[Panel]:
    """Return the panels of the figures asked for."""
    if only is None:
        return study.panels
    figures = {figure.strip() for figure in only.split(",")}
    unknown = figures - set(study.figures)
    if unknown:
        remedy = f"give some of {', '.join(study.figures)}"
        raise InputError("--only", ", ".join(sorted(unknown)), "no such figure", remedy)
    return [panel for panel in study.panels if panel.figure in figures]


def _tasks(
    study: Study, sets: list[Values], options: Options, drawn: Sequence[Panel]
) -> list[Task]:
    """Return the tasks behind the panels, each once; all of a study that is drawn whole."""
    tasks = list(dict.fromkeys(study.tasks(sets, options)))
    wanted = {panel.of or panel.figure for panel in drawn}
    return [task for task in tasks if drawn is study.panels or task.figure in wanted]


def _parser() -> argparse.ArgumentParser:
    studies = "\n".join(f"  {name:<6} {about}" for name, about in STUDIES.items())
    parser = Parser(
        prog="edge-ldp evaluate",
        description=(__doc__ or "").split("\n\n", 1)[1],
        epilog=f"studies:\n{studies}\n\n{fill('data sets: ' + ', '.join(NAMES))}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("study", choices=list(STUDIES), metavar="STUDY", help="see below")
    add("--values", metavar="FILE.npz:NAME|FILE.csv:COLUMN", help="your own readings, integers")
    add("--low", type=int, default=0, help="of --values: their least possible value (0)")
    add("--ceiling", type=int, help="of --values: what none exceeds")
    add("--unit", default="", help="of --values: for the figures' labels")
    add("--clamp", action="store_true", help="of --values: put those outside on the range's ends")
    add(
        "--homes", type=int, default=1, metavar="N", help="--values is N homes' blocks in a row (1)"
    )
    add("--slots-per-day", type=int, default=24, metavar="N", help="of --values of homes (24)")
    add("--mode", choices=("local", "sums"), default="local", help="sums: of reports, or at home")
    add("--sets", metavar="NAME[,NAME…]", help="built-in data instead of the study's choice")
    add("--data", type=Path, metavar="DIR", help="files of sets that are not installed")
    add("--epsilon", metavar="E[,E…]", help="budgets of a report instead of the study's")
    add("--seeds", type=int, metavar="N", help="repeats instead of the study's")
    add("--only", metavar="FIGURE[,FIGURE…]", help="some figures")
    add("--quick", action="store_true", help="few repeats, points and values: a minute")
    add("--jobs", type=int, default=1, metavar="N", help="processes (1)")
    add("--out", type=Path, default=Path("results"), metavar="DIR", help="(results)")
    add("--json", action="store_true", help="print one object for machines")
    return parser
