"""The study `topl`: figures 8 and 9 of [ToPS], and the adaptive rule beside them.

Figure 8: thresholds from one survey of 65,536 values and the expected error of range sums over the
2^20 values after it, stream ε = 1. Figure "epochs": the service's rule after each of five epochs.
Figure 9: moving averages of the stream as the aggregator sees it, beside the truth.
Source: [ToPS] §5.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edge_ldp import Hybrid
from edge_ldp.vectorized import decode_many, perturb_many
from studies.evaluate.study import Panel, Study, Task, rng
from studies.evaluate.topl.rules import ADAPTIVE, EPOCHS, ONE_SURVEY, SW_W, adaptive, theta
from studies.evaluate.topl.stream import HORIZON, STREAM_EPSILON, SURVEYED, best, least, stream_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from studies.evaluate.study import Options, Values
    from studies.evaluate.topl.stream import Stream

EPSILONS = (0.2, 0.4, 0.6, 1.0, 1.6, 2.0)
SEEDS = 20
QUICK_EPSILONS, QUICK_SEEDS = (0.6, 2.0), 1
POINTS = 64  # of figure 9
WIDTH = HORIZON // POINTS  # values that each of its points is the mean of
QUICK_STEP = 4  # points
BEST, ZERO, TRUTH = "least possible", "always 0", "truth"
_EPSILON = "ε = "


def tasks(data: Sequence[Values], options: Options) -> list[Task]:
    """Return the work: seeds outermost, and next to each other what shares a survey."""
    epsilons = options.epsilons or (QUICK_EPSILONS if options.quick else EPSILONS)
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    work = [task for values in data for task in _stream_tasks(values.name, quick=options.quick)]
    for seed in range(seeds):
        for values in data:
            for epsilon in epsilons:
                work += _threshold_tasks(values.name, epsilon, seed)
    return work


def measure(task: Task, values: Values) -> Mapping[str, float]:
    """Return theta, mse and its ratio to the least possible; of figure 9 the average."""
    stream = stream_of(values)
    if task.figure == "9":
        return {"average": _average(task, stream)}
    if task.series == ZERO:
        return {"mse": stream.zero_mse()}
    if task.series == BEST:
        found = best(stream)
    elif task.figure == "epochs":
        epsilon = float(task.series.removeprefix(_EPSILON))
        found = adaptive(stream, epsilon, task.seed)[round(task.x) - 1]
    else:
        found = theta(task.series, stream, task.x, task.seed)
    mse = stream.mse(found)
    return {"theta": float(found), "mse": mse, "ratio": mse / least(stream)}


def _threshold_tasks(data: str, epsilon: float, seed: int) -> list[Task]:
    rules = (ADAPTIVE, *ONE_SURVEY) if seed else (ADAPTIVE, *ONE_SURVEY, BEST, ZERO)
    work = [Task("8", data, rule, epsilon, seed) for rule in rules]
    series = f"{_EPSILON}{epsilon:g}"
    return work + [Task("epochs", data, series, at, seed) for at in range(1, EPOCHS + 1)]


def _stream_tasks(data: str, *, quick: bool) -> list[Task]:
    return [
        Task("9", data, series, at * WIDTH / 1000, 0)
        for series in (TRUTH, SW_W, ADAPTIVE)
        for at in range(1, POINTS + 1, QUICK_STEP if quick else 1)
    ]


def _average(task: Task, stream: Stream) -> float:
    """Return the mean of the values up to x thousand: true, or as reported with a rule's θ."""
    end = SURVEYED + round(1000 * task.x)
    values = stream.part(end - WIDTH, end)
    if task.series == TRUTH:
        return float(values.mean())
    high = theta(task.series, stream, float(STREAM_EPSILON), task.seed)
    mechanism = Hybrid(epsilon=STREAM_EPSILON, low=stream.low, high=high)
    codes = perturb_many(mechanism, values, entropy=rng(task).bytes)
    return float(decode_many(mechanism, codes).mean())


STUDY = Study(
    name="topl",
    about="thresholds by local differential privacy: [ToPS] figures 8-9, and the adaptive rule",
    version=2,
    data=("pos", "retail", "webview", "fares", "household"),
    quick_data=("pos", "household"),
    tasks=tasks,
    measure=measure,
    panels=(
        Panel(
            "8",
            "mse",
            "Range sums with θ from one survey of 65,536 reports (adaptive: five epochs)",
            "ε of a survey report",
            "expected squared error, unit²",
            log_y=True,
        ),
        Panel(
            "8",
            "theta",
            "The threshold",
            "ε of a survey report",
            "θ, unit",
            log_y=True,
        ),
        Panel(
            "epochs",
            "ratio",
            "The service's rule: error over the least possible, after each epoch",
            "epochs of 65,536 reports",
            "ratio",
            log_y=True,
        ),
        Panel(
            "9",
            "average",
            "The stream at ε = 1: means of 16,384 values, true and as reported",
            "thousand values after the survey",
            "average, unit",
        ),
    ),
)
