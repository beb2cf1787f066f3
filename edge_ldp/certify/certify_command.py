"""`edge-ldp certify`: a proof, printed, saved or checked again.

Proves, from integers, that no report tells more than the ε asked for, and no window of a home's
sums. Exit codes: 0 every claim holds; 1 a claim fails; 2 wrong usage, or a file that cannot be
read.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from edge_ldp.arguments import Parser
from edge_ldp.certify.build import CATEGORIES, KINDS, SPAN, build
from edge_ldp.certify.sums import OPTIONS, SUBJECT, certify_sums_of
from edge_ldp.certify.text import verdict_text, verdict_view
from edge_ldp.certify.verdict import Verdict, certify, judge_file, judge_plan
from edge_ldp.device.errors import EdgeLdpError, ParameterError
from edge_ldp.protocol.strict_json import MAX_BYTES, MessageError
from edge_ldp.ratio import exact_epsilon

EXIT_FAILS = 1
EXIT_USAGE = 2
_OPTIONS = ("size", "low", "high", "bits", "top", "fanout")
_OF_SUMS = {  # what OPTIONS of sums are
    "span": "range of a value, ceiling − low, in its unit",
    "scale": "b of the noise, in the same unit",
    "window": "slots",
    "days": "of a period",
    "cells": "parts of a day, a sum each",
    "block": "neighbouring parts that share one noise; 1: none do",
    "offset": "seconds past midnight UTC that a period begins",
    "slot_seconds": "length of a slot of the stream",
    "parts": "slots of the window in one of the stream",
    "reports": "that leave in a window besides",
    "report_epsilon": "ε of each of them",
}


def main(argv: Sequence[str]) -> int:
    """Certify a mechanism, a plan or a saved certificate; return the exit code."""
    parser = _parser()
    args = parser.parse_args(argv)
    given = {name: value for name in _OPTIONS if (value := getattr(args, name)) is not None}
    sums = {name: value for name in OPTIONS if (value := getattr(args, name)) is not None}
    if sums and args.name != SUBJECT:
        parser.error(f"--{next(iter(sums)).replace('_', '-')}: only with {SUBJECT}")
    if sum(source is not None for source in (args.name, args.plan, args.check)) != 1:
        parser.error("expected one of NAME, --plan FILE, --check FILE")
    if args.name is None and given:
        parser.error(f"--{next(iter(given))}: only with NAME")
    if (args.name is not None and args.epsilon is None) or (args.check and args.epsilon):
        parser.error("--epsilon: expected with NAME, possible with --plan")
    try:
        verdict = _verdict(args, given, sums)
        if args.save is not None and verdict.certificate is not None and verdict.holds:
            args.save.write_bytes(verdict.certificate.to_json())
    except MessageError as exc:
        return _fail(f"{args.plan or args.check}: {exc}")
    except EdgeLdpError as exc:
        return _fail(str(exc))
    except OSError as exc:
        return _fail(f"{exc.filename}: {exc.strerror}")
    view = json.dumps(verdict_view(verdict)) + "\n" if args.json else verdict_text(verdict)
    sys.stdout.write(view)
    if not verdict.holds and args.save is not None:
        sys.stderr.write("edge-ldp certify: nothing was saved\n")
    return 0 if verdict.holds else EXIT_FAILS


def _verdict(
    args: argparse.Namespace, given: dict[str, int | str], sums: dict[str, int | str]
) -> Verdict:
    epsilon = None if args.epsilon is None else exact_epsilon(args.epsilon)
    if args.plan is not None:
        return judge_plan(_read(args.plan), epsilon)
    if args.check is not None:
        return judge_file(_read(args.check))
    if args.name == SUBJECT:
        if given:
            raise ParameterError(next(iter(given)), f"nothing with {SUBJECT}")
        return Verdict(certify_sums_of(sums, epsilon), bound=epsilon)
    return Verdict(certify(build(args.name, args.epsilon, given), epsilon), bound=epsilon)


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _fail(reason: str) -> int:
    sys.stderr.write(f"edge-ldp certify: {reason}\n")
    return EXIT_USAGE


def _parser() -> argparse.ArgumentParser:
    names = fill("names: " + ", ".join([*KINDS, SUBJECT]))
    parser = Parser(
        prog="edge-ldp certify",
        description=(__doc__ or "").split("\n\n")[1],
        epilog=f"{names}\n\n--json: {verdict_view.__doc__}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", choices=[*KINDS, SUBJECT], help="see below"
    )
    parser.add_argument(
        "--epsilon", metavar="E", help="nominal ε of a report, or of a window, as it is written"
    )
    parser.add_argument(
        "--size",
        type=int,
        help=f"buckets (1024), lattice points (256) or categories ({CATEGORIES}), up to 65536",
    )
    parser.add_argument("--low", type=int, help="smallest value, 0 unless given")
    parser.add_argument("--high", type=int, help=f"largest value, low + {SPAN} unless given")
    parser.add_argument("--bits", type=int, help="of tuned: 3 or 4 (4)")
    parser.add_argument("--top", help="of general-wave: 0 triangle, 1 square wave (0)")
    parser.add_argument("--fanout", type=int, help="of hh (4)")
    parser.add_argument(
        "--plan", type=Path, metavar="FILE", help="a plan message as published, signed too"
    )
    parser.add_argument(
        "--check", type=Path, metavar="FILE", help="a saved certificate, or a plan with a digest"
    )
    of_sums = parser.add_argument_group(f"of {SUBJECT}, as `edge-ldp agent check` shows them")
    for name, default in OPTIONS.items():
        of_sums.add_argument(
            f"--{name.replace('_', '-')}",
            type=str if isinstance(default, str) else int,
            help=_OF_SUMS[name] + ("" if default is None else f" ({default})"),
        )
    parser.add_argument("--json", action="store_true", help="for machines")
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the certificate")
    return parser
