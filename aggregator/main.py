"""Counts what devices report, answers with sums and intervals, and sends plans back."""

# A command imports its own part alone: half of what a question takes would be importing the rest.

import argparse
import gc
import logging
import sys
from collections.abc import Sequence
from types import ModuleType

from aggregator.commands import asking
from aggregator.commands.asking import Commands, Shown, option
from aggregator.commands.common import EXITS, make_clock
from aggregator.config import load_config
from edge_ldp.arguments import Parser

ASKING = ("query", "load-curve")  # what commands.figures adds
READING = ("check", "status", "completeness", "released", "theta", "announced", "audit")


def main(argv: Sequence[str]) -> int:
    """Run one aggregator command; return its exit code."""
    args = parser(argv[:1]).parse_args(argv, argparse.Namespace(argv=argv))
    gc.freeze()  # what is imported stays: to look through it for garbage takes a question longer
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    return asking.run(args)


def run(args: argparse.Namespace) -> Shown:
    """Collect reports, give receipts and plans, until told to stop (SIGTERM, SIGINT)."""
    from aggregator.running.process import run_service  # noqa: PLC0415 (time: no question needs it)

    config = load_config(args.config)
    run_service(config, str(args.config), args.worker, make_clock(config))
    return Shown()


def _parts(words: Sequence[str]) -> list[ModuleType]:
    """Return what adds commands, all of it unless the first word is known to be of one part."""
    if words and words[0] in ASKING:
        from aggregator.commands import figures  # noqa: PLC0415 (time: only who needs it)

        return [figures]
    from aggregator.commands import read  # noqa: PLC0415 (time: only who needs it)

    if words and words[0] in READING:
        return [read]
    from aggregator.commands import (  # noqa: PLC0415 (time: only who needs it)
        backup,
        devices,
        export,
        figures,
        plan,
        renew,
        setup,
        streams,
    )

    return [setup, read, figures, devices, streams, plan, backup, renew, export]


def parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return the parser of the command that `words` begin with, or of all commands."""
    parser = Parser(
        prog="edge-ldp aggregator",
        description=__doc__,
        epilog=EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = Commands(parser)
    worker = option("--worker", help="its name among several on one database")
    commands.add(run, None, worker)
    for part in _parts(words):
        part.add(commands)
    return parser
