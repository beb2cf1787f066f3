"""The tables of the study `tops` beside the published code: r = 2^20, m = 65,536."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.continual.smoothers import SMOOTHERS
from studies.evaluate.files import built_in
from studies.evaluate.metrics import query_pairs
from studies.evaluate.report import markdown_table
from studies.evaluate.tops import published
from studies.evaluate.tops.layout import CHUNK, lay_out
from studies.evaluate.tops.measures import ZERO
from studies.evaluate.tops.runs import PUBLISHED, exact
from studies.evaluate.tops.systems import SYSTEMS, counts, noisy_max, structure
from studies.papers import tops_runs as reference
from studies.papers.tops_runs import exact_constant, first_readings, simulated_constant

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from studies.evaluate.study import StudyRow

    Cells = dict[tuple[str, str, str, float, str], list[float]]

NONE = "–"
SEEDS, QUERIES = 10, 500


def tables(rows: Sequence[StudyRow]) -> str:
    """Return every table; of rows at the paper's scale, not of `--quick`."""
    cells = _cells(rows)
    parts = (
        _constants(),
        _scores(),
        _leaves(),
        _compared(cells),
        _plain(cells, "3", (*SYSTEMS, *PUBLISHED, ZERO), "End to end, mean squared errors"),
        _structures(cells),
        _plain(cells, "4", tuple(SMOOTHERS), "Smoothers on Ĥ16c, θ and truth as above"),
        _plain(cells, "7", None, "Rules for θ at budget ε, the stream at 0.05"),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _cells(rows: Iterable[StudyRow]) -> Cells:
    found: Cells = defaultdict(list)
    for row in rows:
        task = row.task
        for name, value in row.measures.items():
            found[task.figure, task.data, task.series, task.x, name].append(value)
    return found


def _constants() -> str:
    lines = []
    for name, known in reference.K_EXACT.items():
        shape, found, simulated = structure(name, CHUNK, Fraction(1)), [], []
        for seed in range(SEEDS):
            rng = np.random.default_rng(seed)
            pairs = query_pairs(CHUNK, rng=rng, count=QUERIES)
            found.append(exact_constant(shape, pairs))
            simulated.append(simulated_constant(shape, pairs, rng))
        off = f"{100 * (fmean(found) / known - 1):+.1f} %"
        theirs = [f"{known:.1f}", str(reference.K_CODE[name]), off]
        lines.append([name, f"{fmean(found):.1f}", _mean(simulated, ".1f"), *theirs])
    head = ["structure", "K, exact", "simulated", "reference, exact", "published code"]
    title = "Noise alone: mean squared error of a range sum is K·θ²/ε²."
    return _table(title, [*head, "exact against exact"], lines)


def _scores() -> str:
    lines = []
    for data, known in reference.SCORE_THETA.items():
        lay = lay_out(built_in(data))
        for x, theirs in zip(reference.EPSILONS, known, strict=True):
            made = noisy_max(lay.ceiling, CHUNK, exact(x), exact(x))
            orders = counts(lay.readings, lay.ceiling), first_readings(data)
            ours = [f"{1 + np.argmax(made.scores(held))}" for held in orders]
            lines.append([data, f"{x:g}", *ours, str(theirs)])
    head = ["data", "ε", "in our order", "in the authors' order", "reference (h = 5, >)"]
    return _table("θ of NM-E's score without noise.", head, lines)


def _leaves() -> str:
    lines = []
    for epsilon, (code, argmin) in reference.LEAVES.items():
        ours = structure("Ĥ16c", CHUNK, exact(epsilon)).block
        again = published.FANOUT ** published.pruning(CHUNK, epsilon)
        lines.append([f"{epsilon:g}", *map(str, (ours, argmin, again, code))])
    head = ["ε", "ours", "reference", "published rule, ours", "published code"]
    return _table("Leaf sizes 16^s: integer argmin of eq 7, and its real one rounded.", head, lines)


def _compared(cells: Cells) -> str:
    """Return what the reference has too: ours, also with its leaf, its behaviour again, and it."""
    lines = []
    for (data, system), known in reference.END_TO_END.items():
        for epsilon, theirs in zip(reference.EPSILONS, known, strict=True):
            ours = cells.get(("3", data, system, epsilon, "mse"), [])
            same = cells.get(("3", data, _same_leaf(system, epsilon), epsilon, "mse"), [])
            again = cells.get(("3", data, f"{system}, published code", epsilon, "mse"), [])
            if ours:
                shares = [_share(found, theirs) for found in (ours, same, again)]
                lines.append([data, system, f"{epsilon:g}", _mean(ours), f"{theirs:.2e}", *shares])
    head = ["data", "system", "ε", "MSE", "published code"]
    head += ["ours / theirs", "with their leaf / theirs", "theirs re-run / theirs"]
    return _table("End to end, beside the published code's 12 runs.", head, lines)


def _same_leaf(system: str, epsilon: float) -> str:
    """Return the series whose leaf is the published code's, "" if none has it."""
    code, argmin = reference.LEAVES[epsilon]
    if system != "ToPS":
        return ""
    return "ToPS" if code == argmin else "ToPS, s=3"


def _share(found: Sequence[float], theirs: float) -> str:
    return f"{fmean(found) / theirs:.2f}" if found else NONE


def _structures(cells: Cells) -> str:
    title = "Structures, θ the 95th percentile, truth cut there, mean squared errors"
    found = [_plain(cells, "5", None, title)]
    lines = []
    for (data, name), known in reference.HIERARCHY.items():
        for epsilon, theirs in zip(reference.HIERARCHY_EPSILONS, known, strict=True):
            ours = cells.get(("5", data, name, epsilon, "mse"), [])
            if ours:
                share = f"{fmean(ours) / theirs:.2f}"
                lines.append([data, name, f"{epsilon:g}", _mean(ours), f"{theirs:.2e}", share])
    head = ["data", "structure", "ε", "MSE", "published code", "ours / theirs"]
    found.append(_table("The same beside the published code's 24 runs.", head, lines))
    return "\n\n".join(part for part in found if part)


def _plain(cells: Cells, figure: str, order: Sequence[str] | None, title: str) -> str:
    """Return a figure's means: a line a data set and series, a column an ε."""
    epsilons = sorted({key[3] for key in cells if key[0] == figure and key[4] == "mse"})
    lines = []
    for data in _names(cells, figure, 1):
        for name in order or _names(cells, figure, 2):
            each = [cells.get((figure, data, name, x, "mse"), []) for x in epsilons]
            if any(each):
                lines.append([data, name, *(_mean(found) for found in each)])
    return _table(f"{title}.", ["data", "series", *(f"ε {x:g}" for x in epsilons)], lines)


def _names(cells: Cells, figure: str, place: int) -> list[str]:
    """Return the data sets (1) or series (2) of a figure, in order."""
    return list(dict.fromkeys(str(key[place]) for key in cells if key[0] == figure))


def _mean(found: Sequence[float], form: str = ".2e") -> str:
    """Return mean and standard error in per cent."""
    if not found:
        return NONE
    mean = fmean(found)
    if len(found) < 2 or not mean:
        return f"{mean:{form}}"
    error = stdev(found) / len(found) ** 0.5 / abs(mean)
    return f"{mean:{form}} ({100 * error:.0f} %)"


def _table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return ""
    return f"{title}\n\n{markdown_table(head, lines)}"
