"""`edge-ldp estimate`: a density from counted codes.

Estimates the distribution behind counted survey codes, with nothing but Python. Exit codes: 0 an
estimate; 2 wrong usage, a file that cannot be read, or counts that cannot be a survey's.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from edge_ldp.arguments import Parser
from edge_ldp.device.errors import EdgeLdpError, ParameterError
from edge_ldp.gateway.ems import Estimate, ems
from edge_ldp.mechanisms import Mechanism, SquareWave

EXIT_USAGE = 2
SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
MAX_DIGITS = 16  # 2^53 has as many
MAX_BYTES = 1 << 21  # every code there can be, and a count for each


def main(argv: Sequence[str]) -> int:
    """Estimate from a file of counts; return the exit code."""
    args = _parser().parse_args(argv)
    try:
        survey = SquareWave(epsilon=args.epsilon, low=args.low, high=args.high, size=args.size)
        found = ems(survey, read_counts(args.counts, survey))
    except EdgeLdpError as exc:
        return _fail(str(exc))
    except OSError as exc:
        return _fail(f"{exc.filename}: {exc.strerror}")
    sys.stdout.write(json.dumps(view(found)) + "\n" if args.json else text(found))
    return 0


def read_counts(path: Path, survey: Mechanism) -> list[int]:
    """Return reports per code from lines `code,count`, a heading allowed; codes left out are 0.

    Raises ParameterError naming file and line, OSError.
    """
    with path.open("rb") as file:
        lines = file.read(MAX_BYTES).decode("ascii", "replace").splitlines()
    counts: dict[int, int] = {}
    for at, line in enumerate(lines, start=1):
        fields = [field.strip() for field in line.split(",")]
        if not any(fields) or (at == 1 and fields == ["code", "count"]):
            continue
        if len(fields) != 2 or not all(map(_is_number, fields)):  # noqa: PLR2004 (code, count)
            raise ParameterError(f"{path}:{at}", "two integers: code,count")
        code, count = map(int, fields)
        if code >= survey.code_count or code in counts:
            raise ParameterError(f"{path}:{at}", f"a code of 0..{survey.code_count - 1}, once")
        counts[code] = count
    return [counts.get(code, 0) for code in range(survey.code_count)]


def view(found: Estimate) -> dict[str, object]:
    """Keys: n, mean, quantiles by share, probabilities of the buckets between edges, warnings."""
    return {
        "n": found.n,
        "mean": found.mean(),
        "quantiles": {f"{share:g}": found.quantile(share) for share in SHARES},
        "edges": found.edges,
        "probabilities": found.probabilities,
        "iterations": found.iterations,
        "log_likelihood": found.log_likelihood,
        "warnings": found.warnings,
    }


def text(found: Estimate) -> str:
    """Return what a person wants to know, one figure a line."""
    lines = [f"reports  {found.n}", f"mean     {found.mean():.1f}"]
    lines += [f"{share:>5.0%}    {found.quantile(share):.1f}" for share in SHARES]
    lines += [f"warning: {warning}" for warning in found.warnings]
    return "\n".join(lines) + "\n"


def _is_number(field: str) -> bool:
    return field.isascii() and field.isdecimal() and len(field) <= MAX_DIGITS


def _fail(reason: str) -> int:
    sys.stderr.write(f"edge-ldp estimate: {reason}\n")
    return EXIT_USAGE


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="edge-ldp estimate",
        description=(__doc__ or "").split("\n\n")[1],
        epilog=f"--json: {view.__doc__}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("counts", type=Path, metavar="COUNTS.csv", help="lines code,count")
    parser.add_argument(
        "--epsilon", required=True, metavar="E", help="of the survey's square wave, as written"
    )
    parser.add_argument("--low", type=int, default=0, help="smallest value (0)")
    parser.add_argument("--high", type=int, required=True, help="largest value, the stream's unit")
    parser.add_argument("--size", type=int, default=256, help="buckets of the survey (256)")
    parser.add_argument("--json", action="store_true", help="for machines")
    return parser
