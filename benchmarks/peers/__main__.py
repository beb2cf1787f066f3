"""Measure, then print a table, or JSON with `--json`: reports per second of CPU time, and ratios.

Nothing is asserted: figures belong into docs/results.md, with the command and the machine.
"""

from __future__ import annotations

import json
import platform
import sys
from argparse import ArgumentParser
from importlib.metadata import version
from pathlib import Path
from typing import TypedDict

from benchmarks.peers import ours, theirs
from benchmarks.peers.timing import Case, best_of

PACKAGES = (
    *("edge-ldp", "opendp", "pure-ldp", "multi-freq-ldpy", "diffprivlib"),
    *("numpy", "numba", "scikit-learn", "xxhash"),
)


class Row(TypedDict):
    """One line of the table; ratios are None where they would compare unlike things."""

    library: str
    what: str
    reports_per_s: float
    times_opendp: float | None
    times_olh: float | None
    times_naive: float | None


def main() -> None:
    """Measure everything once; `--rounds` of it, the best counts."""
    parser = ArgumentParser(prog="benchmarks.peers", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--rounds", type=int, default=9, help="the best of so many counts")
    asked = parser.parse_args()
    cases = [
        *ours.scalar_cases(),
        *theirs.scalar_cases(),
        *ours.array_cases(),
        *theirs.array_cases(),
    ]
    rows = _rows(cases, best_of(cases, asked.rounds))
    about = _about(asked.rounds)
    if asked.json:
        sys.stdout.write(json.dumps({**about, "cases": rows}, indent=2, ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(_text(about, rows))


def _rows(cases: list[Case], speeds: list[float]) -> list[Row]:
    """Return the rows; OpenDP's and the naive wave's figures are their faster variants'."""
    measured = list(zip(cases, speeds, strict=True))
    opendp = max(speed for case, speed in measured if case.library == theirs.OPENDP)
    olh = next(
        speed
        for case, speed in measured
        if (case.library, case.what) == (theirs.PURE_LDP, theirs.OLH)
    )
    naive = max(speed for case, speed in measured if case.what.startswith(theirs.SQUARE_WAVE))
    return [
        Row(
            library=case.library,
            what=case.what,
            reports_per_s=speed,
            times_opendp=None if case.at_once else speed / opendp,
            times_olh=None if case.at_once else speed / olh,
            times_naive=speed / naive if case.at_once else None,
        )
        for case, speed in measured
    ]


def _about(rounds: int) -> dict[str, object]:
    return {
        "machine": f"{_cpu()}, {platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "versions": {name: version(name) for name in PACKAGES},
        "method": f"CPU time of the process, best of {rounds} rounds, ε = {ours.EPSILON}",
        "absent": ours.absent(),
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:  # not Linux
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.processor()


def _text(about: dict[str, object], rows: list[Row]) -> str:
    """Return two tables in Markdown, ready for README.md."""
    lines = [f"{key}: {_plain(told)}" for key, told in about.items() if told]
    lines += _header("scalar calls", "reports/s", "× OpenDP RR", "× pure-ldp OLH")
    lines += [
        _line(row, f"{row['times_opendp']:.3g}", f"{row['times_olh']:.3g}")
        for row in rows
        if row["times_opendp"] is not None
    ]
    lines += _header(f"arrays of {ours.AT_ONCE:,}", "reports/s", "× faster naive square wave")
    lines += [
        _line(row, f"{row['times_naive']:.3g}") for row in rows if row["times_naive"] is not None
    ]
    return "\n".join(lines) + "\n"


def _plain(told: object) -> str:
    if isinstance(told, dict):
        return ", ".join(f"{name} {number}" for name, number in told.items())
    return ", ".join(told) + ": not there" if isinstance(told, list) else str(told)


def _header(*titles: str) -> list[str]:
    first, *others = titles
    return ["", f"| {first} | | {' | '.join(others)} |", "| --- | --- |" + " ---: |" * len(others)]


def _line(row: Row, *ratios: str) -> str:
    cells = (row["library"], row["what"], f"{row['reports_per_s']:,.0f}", *ratios)
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
