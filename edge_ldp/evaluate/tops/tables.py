"""The tables of the study `tops`, in Markdown, from its rows; reference columns where it has any.

Reference columns are of r = 2^20 and m = 65,536, so they stand only beside rows of that size.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from edge_ldp.continual.design import SMOOTHERS
from edge_ldp.evaluate.tops import reference
from edge_ldp.evaluate.tops.layout import CHUNK
from edge_ldp.evaluate.tops.measures import ZERO
from edge_ldp.evaluate.tops.runs import PUBLISHED
from edge_ldp.evaluate.tops.systems import STRUCTURES, SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from edge_ldp.evaluate.study import StudyRow

    Cells = dict[tuple[str, str, str, float, str], list[float]]

NONE = "–"


def tables(rows: Sequence[StudyRow]) -> str:
    """Return every table that the rows are enough for."""
    cells = _cells(rows)
    whole = any(one == CHUNK for key, found in cells.items() if key[4] == "r" for one in found)
    parts = (
        _constants(cells, whole=whole),
        _scores(cells, whole=whole),
        _compared(cells, whole=whole),
        _systems(cells),
        _structures(cells, whole=whole),
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


def _constants(cells: Cells, *, whole: bool) -> str:
    lines = []
    for name in STRUCTURES:
        exact = _pooled(cells, "K", name, "K")
        simulated = _pooled(cells, "K", name, "K simulated")
        if exact:
            known = [f"{reference.K_EXACT[name]:.1f}", str(reference.K_CODE[name])]
            off = f"{100 * (fmean(exact) / reference.K_EXACT[name] - 1):+.1f} %"
            lines.append(
                [
                    name,
                    f"{fmean(exact):.1f}",
                    _mean(simulated, ".1f"),
                    *([*known, off] if whole else []),
                ]
            )
    head = ["structure", "K, exact", "simulated"]
    head += ["reference, exact", "published code", "exact against exact"] if whole else []
    return _table("Noise alone: mean squared error of a range sum is K·θ²/ε².", head, lines)


def _scores(cells: Cells, *, whole: bool) -> str:
    lines = []
    for data in _names(cells, "score", 1):
        for at, epsilon in enumerate(reference.EPSILONS):
            mine, shipped = (
                cells.get(("score", data, "NM-E", epsilon, name), [])
                for name in ("theta", "theta shipped")
            )
            known = reference.SCORE_THETA.get(data)
            if mine and whole:
                last = [f"{shipped[0]:.0f}", str(known[at])] if known and shipped else [NONE, NONE]
                lines.append([data, f"{epsilon:g}", f"{mine[0]:.0f}", *last])
    head = ["data", "ε", "in our order", "in the authors' order", "reference (h = 5, >)"]
    first = _table("θ of NM-E's score without noise.", head, lines)
    return "\n\n".join(part for part in (first, _leaves(cells) if whole else "") if part)


def _leaves(cells: Cells) -> str:
    data = next(iter(_names(cells, "score", 1)), "")
    lines = []
    for epsilon, (code, argmin) in reference.LEAVES.items():
        mine = cells.get(("score", data, "NM-E", epsilon, "leaf"), [])
        rounded = cells.get(("score", data, "NM-E", epsilon, "leaf published"), [])
        if mine and rounded:
            own = [f"{mine[0]:.0f}", str(argmin), f"{rounded[0]:.0f}", str(code)]
            lines.append([f"{epsilon:g}", *own])
    head = ["ε", "ours", "reference", "published rule, ours", "published code"]
    return _table("Leaf sizes 16^s: integer argmin of eq 7, and its real one rounded.", head, lines)


def _compared(cells: Cells, *, whole: bool) -> str:
    """Return what the reference has too: ours, also with its leaf, its behaviour again, and it."""
    lines = []
    for (data, system), known in reference.END_TO_END.items() if whole else ():
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


def _systems(cells: Cells) -> str:
    return _plain(cells, "3", (*SYSTEMS, *PUBLISHED, ZERO), "End to end, mean squared errors")


def _structures(cells: Cells, *, whole: bool) -> str:
    title = "Structures, θ the 95th percentile, truth cut there, mean squared errors"
    found = [_plain(cells, "5", None, title)]
    lines = []
    for (data, name), known in reference.HIERARCHY.items() if whole else ():
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


def _pooled(cells: Cells, figure: str, series: str, name: str) -> list[float]:
    """Return a measure's values of all data sets: they do not depend on data."""
    return [
        one
        for key, found in cells.items()
        if (key[0], key[2], key[4]) == (figure, series, name)
        for one in found
    ]


def _mean(found: Sequence[float], form: str = ".2e") -> str:
    """Return mean and standard error in per cent."""
    if not found:
        return NONE
    mean = fmean(found)
    if len(found) < 2 or not mean:  # noqa: PLR2004
        return f"{mean:{form}}"
    error = stdev(found) / len(found) ** 0.5 / abs(mean)
    return f"{mean:{form}} ({100 * error:.0f} %)"


def _table(title: str, head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return ""
    rows = [head, ["---"] * len(head), *lines]
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{title}\n\n{body}"
