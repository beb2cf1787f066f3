"""The tasks and panels of `sw`, and what one task measures.

Figures 2 to 4 share their estimates: their tasks are of figure "2", and each gives all measures its
method is made for. Figure "new" shows what is not in the paper. Source: [SW] §6; the text decides
where its pictures could not be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from studies.evaluate.metrics import (
    ks,
    mean_error,
    quantile_error,
    range_error,
    variance_error,
    w1,
)
from studies.evaluate.study import Panel, Study, Task, rng
from studies.evaluate.sw.cells import cells_of
from studies.evaluate.sw.methods import (
    ADMM,
    AHEAD,
    AUTO,
    EM,
    EMS,
    EMS_BR,
    MEANS,
    METHODS,
    NEW,
    SIGNED,
    moment_errors,
)
from studies.evaluate.sw.waves import (
    BUDGETS,
    SHAPE_EPSILON,
    SQUARE,
    best_width,
    buckets_of,
    budget_series,
    size_tasks,
    wave_density,
    wave_tasks,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from studies.evaluate.metrics import Spread
    from studies.evaluate.study import Options, Values

EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5)
QUICK_EPSILONS = (0.5, 1.0, 2.0)
SEEDS, QUICK_SEEDS = 20, 2
WAVE_SEEDS = 8  # of figures 5 to 7, unless seeds are given
QUICK_VALUES = 20_000
ALPHAS = (0.1, 0.4)  # [SW] §6.3


def tasks(data: Sequence[Values], options: Options) -> list[Task]:
    """Return the work, seeds outermost."""
    quick = options.quick
    epsilons = options.epsilons or (QUICK_EPSILONS if quick else EPSILONS)
    budgets = options.epsilons or (QUICK_EPSILONS if quick else BUDGETS)
    seeds = options.seeds or (QUICK_SEEDS if quick else SEEDS)
    work: list[Task] = []
    for seed in range(seeds):
        for values in data:
            work += [
                Task("2", values.name, series, epsilon, seed)
                for series in (*METHODS, *MEANS)
                for epsilon in epsilons
            ]
            if options.seeds or quick or seed < WAVE_SEEDS:
                work += wave_tasks(values, seed, budgets, quick=quick)
                work += size_tasks(values, seed, epsilons)
    return work


def measure(task: Task, values: Values) -> Mapping[str, float]:
    """Return the errors of one estimate, in shares of the range; of figures 5 to 7 W1 alone."""
    draws = rng(task)
    if task.series in MEANS:
        return moment_errors(task.series, values, task.x, draws)
    if task.figure == "2":
        cells = cells_of(values)
        found = METHODS[task.series](cells, task.x, draws)
        return _errors(cells.truth, found, signed=task.series in SIGNED)
    if task.figure == "7":
        cells = cells_of(values, buckets_of(task.series))
        return {"w1": w1(cells.truth, METHODS[EMS](cells, task.x, draws))}
    cells = cells_of(values)
    return {"w1": w1(cells.truth, wave_density(task, cells, draws))}


def _errors(truth: Spread, found: Spread, *, signed: bool) -> dict[str, float]:
    ranges = {f"range_{alpha}": range_error(truth, found, alpha) for alpha in ALPHAS}
    if signed:
        return ranges
    return {
        "w1": w1(truth, found),
        "ks": ks(truth, found),
        **ranges,
        "mean": mean_error(truth, found),
        "variance": variance_error(truth, found),
        "quantile": quantile_error(truth, found),
    }


_PAPER = tuple(series for series in (*METHODS, *MEANS) if series not in NEW)
_Y = "share of the range"
_TENTH = "Range queries of a tenth (α = 0.1), mean absolute error"
_W1, _KS = "Wasserstein distance", "Kolmogorov-Smirnov distance"
_NEWER = (EMS, EM, ADMM, EMS_BR, AUTO, AHEAD)


def _panel(figure: str, metric: str, title: str, series: tuple[str, ...] = _PAPER) -> Panel:
    of = "share of the values" if metric == "ks" or metric.startswith("range") else _Y
    return Panel(figure, metric, title, "ε", of, log_y=True, of="2", series=series)


STUDY = Study(
    name="sw",
    about="Square wave ([SW] figures 2 to 7)",
    version=1,
    data=("beta", "pickup", "spiky", "household"),
    tasks=tasks,
    measure=measure,
    panels=(
        _panel("2", "w1", _W1),
        _panel("2", "ks", _KS),
        _panel("3", "range_0.1", _TENTH),
        _panel("3", "range_0.4", "Range queries of α = 0.4, mean absolute error"),
        _panel("4", "mean", "Mean, absolute error"),
        _panel("4", "variance", "Variance, absolute error (share of the range's square)"),
        _panel("4", "quantile", "Deciles, mean absolute error"),
        Panel(
            "5",
            "w1",
            f"{_W1} by the wave's shape, ε = {SHAPE_EPSILON:g}; dotted: the b of [SW] §5.3",
            "b",
            _Y,
            log_y=True,
            marks=((SQUARE, best_width(SHAPE_EPSILON)),),
        ),
        Panel(
            "6",
            "w1",
            f"{_W1} by the square wave's half-width b; dotted: [SW] §5.3",
            "b",
            _Y,
            log_y=True,
            marks=tuple((budget_series(e), best_width(e)) for e in BUDGETS),
            compared="",
        ),
        Panel("7", "w1", f"{_W1} by the number of buckets", "ε", _Y, log_y=True, compared=""),
        _panel("new", "w1", _W1, _NEWER),
        _panel("new", "ks", _KS, _NEWER),
        _panel("new", "range_0.1", _TENTH, _NEWER),
    ),
    quick_values=QUICK_VALUES,
)
