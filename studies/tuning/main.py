"""`edge-ldp tune`: the best table of responses for an ε that has no ready one.

Solves a linear programme and certifies its integers. With --density the least variance expected
under it is looked for, instead of the least in the worst case; it must be public: an estimate from
reports, never readings. --json prints the mechanism as a plan carries it.

Exit codes: 0 done; 2 wrong usage, or no table found.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from edge_ldp import Hybrid
from edge_ldp.arguments import Parser
from edge_ldp.device.errors import EdgeLdpError
from studies.evaluate.given import InputError, numbers
from studies.tuning.tables import tune

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from edge_ldp import Tuned

EXIT_USAGE = 2


def main(argv: Sequence[str]) -> int:
    """Make a table and print it; return the exit code."""
    args = _parser().parse_args(argv)
    try:
        found = tune(
            epsilon=args.epsilon,
            low=args.low,
            high=args.high,
            bits=args.bits,
            density=None if args.density is None else _density(args.density),
        )
        hybrid = Hybrid(epsilon=args.epsilon, low=args.low, high=args.high)
    except (EdgeLdpError, OSError) as exc:
        sys.stderr.write(f"edge-ldp tune: {exc}\n")
        return EXIT_USAGE
    sys.stdout.write(json.dumps(found.to_plan()) + "\n" if args.json else _text(found, hybrid))
    return 0


def _density(given: str) -> NDArray[np.float64]:
    """Return the probabilities of FILE.csv:COLUMN; raises InputError, OSError."""
    file, colon, column = given.rpartition(":")
    if not colon or not column:
        raise InputError("--density", given, "not a file and a column", "give FILE.csv:COLUMN")
    with Path(file).open(encoding="utf-8-sig", newline="") as text:
        return numbers(csv.reader(text), file, column)


def _text(found: Tuned, hybrid: Hybrid) -> str:
    ratio = found.max_ratio
    share = float(found.worst_variance / hybrid.worst_variance)
    return (
        f"{len(found.response.weights)} knots, {found.code_count} codes\n"
        f"largest ratio   {ratio.numerator}/{ratio.denominator} = {float(ratio):.6f}\n"
        f"worst variance  {float(found.worst_variance):.6g}, {share:.3f} of the hybrid's\n"
        "--json prints the table\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="edge-ldp tune",
        description=(__doc__ or "").split("\n\n", 1)[1],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--epsilon", required=True, metavar="E", help="of a report, as it is written")
    add("--low", type=int, default=0, help="smallest value (0)")
    add("--high", type=int, required=True, help="largest value: θ")
    add("--bits", type=int, default=4, choices=(3, 4), help="of a code (4)")
    add("--density", metavar="FILE.csv:COLUMN", help="probabilities of equal cells of the range")
    add("--json", action="store_true", help="print the mechanism for machines")
    return parser
