"""What a replay tells: JSON with documented keys for machines, plain lines for people."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from aggregator.replay.comparison import Compared

SHOWN = 20
JSON_KEYS = """\
--json: fleet; archive; complete (it began with the store); engine; compacted: reports taken from
the spool, repeats, conflicts, files written, releases (homes' sums, new); reports; digest: the same
for the same counts, whatever counted them; days, resumed (days); without: devices[] and reports
that are left out of the answer, never of what is compared; compared: cells, equal, moving, differ,
and the first of those that differ: stream, epoch, group, bucket, code, archive, store; erased:
devices that were, their reports, explains (no more than these are missing in it); sums (homes'
sums of a period): releases, differ, totals_differ (periods that do not add up in the store);
seconds: compact, count, compare; answer: as of `edge-ldp aggregator query --json`, from the
archive's counts, without curated_beside, warnings, sums and mode (with --stream, else null), and
with --estimator estimated: estimator, edges, probabilities, n (surveys), iterations, warnings;
curve: as of `edge-ldp aggregator load-curve --json`, from the archive's counts (with --curve, else
null). With --compact only reports, repeats, conflicts and files.
"""


def compared_view(compared: Compared) -> dict[str, Any]:
    """Return how many cells are equal, and the first that are not."""
    return {
        "cells": compared.cells,
        "equal": compared.equal,
        "moving": compared.moving,
        "differ": len(compared.differ),
        "first": [asdict(one) for one in compared.differ[:SHOWN]],
    }


def compacted_text(compacted: Mapping[str, int]) -> str:
    """Return what was taken from the spool in a line."""
    line = "{reports} reports into {files} files, {repeats} there before, {conflicts} in conflict"
    return f"spool: {line.format(**compacted)}\n"


def replay_text(view: dict[str, Any]) -> str:
    """Return a replay's view in lines."""
    compared = view["compared"]
    found = "{cells}, {equal} equal, {differ} differ, {moving} moving"
    cell = "stream {stream} epoch {epoch} group {group} bucket {bucket} code {code}"
    sums = view["sums"]
    lines = [
        compacted_text(view["compacted"]).rstrip(),
        f"archive: {view['reports']} reports in {view['days']} days, counted by {view['engine']}",
        f"counts: {found.format(**compared)}",
    ]
    line = f"  {cell}: {{archive}} in the archive, {{store}} in the store"
    lines += [line.format(**one) for one in compared["first"]]
    if sums["releases"]:
        told = "homes' sums: {releases} releases, {differ} differ, {totals_differ} totals"
        lines.append(told.format(**sums) + " that do not add up")
    if compared["differ"] and view["erased"]["devices"]:
        line = "{devices} devices were erased: of their {reports} reports counts alone are kept"
        lines.append(line.format(**view["erased"]))
    if (compared["differ"] or sums["differ"]) and not view["complete"]:
        lines.append("the archive began after the store: what was counted before is not in it")
    if view["without"]["devices"]:
        left, names = view["without"]["reports"], ", ".join(view["without"]["devices"])
        lines.append(f"left out of the answer: {left} reports of {names}")
        lines.append("their time is not: totals are the mean of the others × the time of all")
    return "\n".join([*lines, ""])
