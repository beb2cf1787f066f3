"""The study `tops`: figures 1 to 7 and 10 of [ToPS], by the exact library, beside published code.

Figure 1: equation 6 beside errors. 2: the stream's means over 120 intervals. 3 and 10: whole
systems. 4: smoothers. 5: structures. 6: true percentiles as θ. 7: rules for θ. Source: [ToPS] §3.3,
§5.1 to 5.4 and Appendix F; DNS and Kosarak are not to be had, retail, web views and a household's
watts stand in.
"""

from __future__ import annotations

from studies.evaluate.study import Panel, Study
from studies.evaluate.tops.layout import PAPER, QUICK
from studies.evaluate.tops.measures import measure
from studies.evaluate.tops.tasks import tasks

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
