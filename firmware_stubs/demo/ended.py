"""How every scenario of the demo ends: figures as JSON, a table, a report, a verdict."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rich.console import Console

EXIT_FAILED = 1


class Ended(NamedTuple):
    """A scenario that was played: its name and JSON, its report's files, how it prints itself."""

    name: str
    fields: dict[str, Any]
    report: Mapping[str, str]
    show: Callable[[Console], None]
    passed: str
    look: Callable[[], None] | None = None  # serves the console on what was counted


def verdict(reasons: list[str], passed: str) -> str:
    """Return in one line that a demo did what it promises, or why not."""
    return "Failed: " + "; ".join(reasons) if reasons else passed


def tell(one: Ended, args: argparse.Namespace, begun_s: float) -> int:
    """Write the JSON beside the report, print it or the table, and return the exit code."""
    wall_s = time.monotonic() - begun_s
    fields = {**one.fields, "report": dict(one.report)}
    fields["run"]["wall_s"] = round(wall_s, 1)
    (args.output / f"{one.name}.json").write_text(json.dumps(fields, indent=1) + "\n")
    reasons = fields["reasons"]
    if args.json:
        sys.stdout.write(json.dumps(fields) + "\n")
    else:
        console = Console()
        one.show(console)
        console.print(f"Report: {' and '.join(one.report.values())}")
        told = f"{verdict(reasons, one.passed)} ({wall_s:.0f} s)"
        console.print(told, style="red" if reasons else "green")
    if one.look is not None and args.stay:
        one.look()
    elif one.look is not None and not args.json:
        sys.stdout.write("To look around in a browser: make demo KEEP=1\n")
    return EXIT_FAILED if reasons else 0
