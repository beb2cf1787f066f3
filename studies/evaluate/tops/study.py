"""The study `tops`: figures 1 to 7 and 10 of [ToPS], by the exact library, beside published code.

Figure 1: equation 6 beside errors. 2: the stream's means over 120 intervals. 3 and 10: whole
systems. 4: smoothers. 5: structures. 6: true percentiles as θ. 7: rules for θ. Source: [ToPS] §3.3,
§5.1 to 5.4 and Appendix F; DNS and Kosarak are not to be had, retail, web views and a household's
watts stand in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edge_ldp.continual.smoothers import SMOOTHERS
from studies.evaluate.study import Panel, Study, Task
from studies.evaluate.tops import approximation
from studies.evaluate.tops.layout import PAPER, QUICK, lay_out
from studies.evaluate.tops.measures import INTERVALS, ZERO, measure
from studies.evaluate.tops.runs import PUBLISHED
from studies.evaluate.tops.systems import RULES, SYSTEMS, structure_fits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from studies.evaluate.study import Options, Values

SEEDS, QUICK_SEEDS = 10, 2
EPSILONS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1)  # [ToPS] figures 3 to 5, 7 and 10 (the rows of 3)
WIDE = (0.01, 0.03, 0.1, 0.3, 1.0)  # figure 6: its smaller and its larger range together
QUICK_EPSILONS = (0.01, 0.1)
VISUAL = ("truth", "ToPS, ε=0.01", "ToPS, ε=0.05", "PAK, ε=0.1", "PAK, ε=0.5")
SHARES = ("p=85", "p=90", "p=95", "p=99.5", "p=99.9")
NM_SERIES = "NM-E, ε=0.05"
HIERARCHIES = ("H2", "H16", "H16c", "Ĥ16c", "Ĥ16c, s=2", "Ĥ16c, s=3")

_EPSILON = "ε of θ and of the stream"
_ABSOLUTE = "mean absolute error, unit"
_SQUARED = "mean squared error, unit²"

PANELS = (
    Panel(
        "1", "root error", "", "θ, unit", "root error, unit", log_x=True, log_y=True, compared=""
    ),
    Panel("2", "mean", "released", "interval of the stream", "mean of a value, unit"),
    Panel("2", "PAK mean", "PAK", "interval of the stream", "mean of a value, unit"),
    Panel("3", "mse", "range sums", _EPSILON, _SQUARED, log_x=True, log_y=True),
    Panel("3", "theta", "θ", _EPSILON, "θ, unit", log_x=True, log_y=True),
    Panel("4", "mse", "smoothers on Ĥ16c", "ε of the stream", _SQUARED, log_x=True, log_y=True),
    Panel("5", "mse", "structures", "ε of the stream", _SQUARED, log_x=True, log_y=True),
    Panel("6", "mse of few", "θ from m/16", "ε of the stream", _SQUARED, log_x=True, log_y=True),
    Panel("6", "mse of many", "θ from m", "ε of the stream", _SQUARED, log_x=True, log_y=True),
    Panel("7", "mse", "rules for θ", "ε of θ, stream 0.05", _SQUARED, log_x=True, log_y=True),
    Panel("7", "theta", "θ", "ε of θ", "θ, unit", log_x=True, log_y=True),
    Panel("10", "mae", "sums", _EPSILON, _ABSOLUTE, log_x=True, log_y=True, of="3"),
    Panel("10", "mmae", "means", _EPSILON, _ABSOLUTE, log_x=True, log_y=True, of="3"),
    Panel("10", "mmse", "means", _EPSILON, _SQUARED, log_x=True, log_y=True, of="3"),
)


def tasks(sets: Sequence[Values], options: Options) -> list[Task]:
    """Return every task: what needs no repeats first, then repeat by repeat."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    found = [*_visual(sets)]
    for values in sets:
        found += approximation.tasks(values, seeds)
    for seed in range(seeds):
        for values in sets:
            found += _repeat(values, options, seed)
    return found


def _visual(sets: Sequence[Values]) -> Iterator[Task]:
    for values in sets:
        for series in VISUAL:
            for at in range(INTERVALS):
                yield Task("2", values.name, series, float(at), 0)


def _repeat(values: Values, options: Options, seed: int) -> Iterator[Task]:
    usual = options.epsilons or (QUICK_EPSILONS if options.quick else EPSILONS)
    wide = options.epsilons or (QUICK_EPSILONS if options.quick else WIDE)
    chunk = len(lay_out(values).stream)
    for epsilon in usual:
        for series in (*SYSTEMS, *PUBLISHED, ZERO):
            if series in SYSTEMS and not structure_fits(SYSTEMS[series].structure, chunk):
                continue
            yield Task("3", values.name, series, epsilon, seed)
        for series in SMOOTHERS:
            yield Task("4", values.name, series, epsilon, seed)
        for series in (*HIERARCHIES, ZERO):
            if series == ZERO or structure_fits(series, chunk):
                yield Task("5", values.name, series, epsilon, seed)
        for series in (*RULES, ZERO):
            yield Task("7", values.name, series, epsilon, seed)
    for epsilon in wide:
        for series in (*SHARES, NM_SERIES):
            yield Task("6", values.name, series, epsilon, seed)


STUDY = Study(
    name="tops",
    about="streams under central privacy: [ToPS] figures 1-7 and 10, exact beside published",
    version=3,
    data=PAPER,
    tasks=tasks,
    measure=measure,
    panels=PANELS,
    quick_values=QUICK,
)
