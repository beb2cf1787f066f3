"""Figures 5 to 7: other shapes of wave, other widths, other numbers of buckets; all with EMS.

Sources: [SW] §6.4 (shapes, b, granularity), §5.2 (general waves), §5.3 (the square wave's b).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edge_ldp import GeneralWave
from edge_ldp.estimate import ems
from edge_ldp.mechanisms.waved import square_wave_width
from studies.evaluate.study import Task
from studies.evaluate.sw.methods import counts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from edge_ldp.estimate import Density
    from studies.evaluate.study import Values
    from studies.evaluate.sw.cells import Cells

SHAPE_EPSILON = 1.0  # [SW] §6.4
SQUARE = "square"
TOPS = {
    SQUARE: "1",
    "trapezoid 0.8": "0.8",
    "trapezoid 0.6": "0.6",
    "trapezoid 0.4": "0.4",
    "trapezoid 0.2": "0.2",
    "triangle": "0",
}
WIDTHS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4)
QUICK_WIDTHS = (0.1, 0.2, 0.3)
BUDGETS = (0.5, 1.0, 1.5, 2.0)
SIZES = (256, 512, 1024, 2048)
_EPSILON, _BUCKETS = "ε = ", " buckets"


def best_width(epsilon: float) -> float:
    """Return the square wave's b as it is drawn, to four digits."""
    return round(float(square_wave_width(epsilon)), 4)


def budget_series(epsilon: float) -> str:
    """Return the name of figure 6's line."""
    return f"{_EPSILON}{epsilon:g}"


def wave_tasks(values: Values, seed: int, epsilons: Sequence[float], *, quick: bool) -> list[Task]:
    """Return one data set's tasks of figures 5 and 6; the square wave's own b is always there."""
    widths = QUICK_WIDTHS if quick else WIDTHS
    at_once = sorted({*widths, best_width(SHAPE_EPSILON)})
    work = [Task("5", values.name, shape, b, seed) for shape in TOPS for b in at_once]
    for epsilon in epsilons:
        line, at = budget_series(epsilon), sorted({*widths, best_width(epsilon)})
        work += [Task("6", values.name, line, b, seed) for b in at]
    return work


def size_tasks(values: Values, seed: int, epsilons: Sequence[float]) -> list[Task]:
    """Return one data set's tasks of figure 7; no more buckets than integers."""
    span = values.ceiling - values.low + 1
    sizes = [size for size in SIZES if size <= span] or [span]
    return [
        Task("7", values.name, f"{size}{_BUCKETS}", epsilon, seed)
        for epsilon in epsilons
        for size in sizes
    ]


def buckets_of(series: str) -> int:
    """Return how many buckets a line of figure 7 stands for."""
    return int(series.removesuffix(_BUCKETS))


def wave_density(task: Task, cells: Cells, rng: np.random.Generator) -> Density:
    """Return the estimate of a task of figure 5 or 6: general waves on the integer kernel."""
    shaped = task.figure == "5"
    values = cells.values
    mechanism = GeneralWave(
        epsilon=SHAPE_EPSILON if shaped else float(task.series.removeprefix(_EPSILON)),
        low=values.low,
        high=values.ceiling,
        size=cells.size,
        top=TOPS[task.series] if shaped else "1",
        b=task.x,
    )
    return ems(mechanism, counts_of(mechanism, values.values, rng))
