"""A study of a moment, for tests of the harness; other processes import its measure."""

from collections.abc import Mapping, Sequence

import numpy as np

from studies.evaluate.study import Options, Panel, Study, Task, Values, rng


def values(name: str = "some", count: int = 50) -> Values:
    return Values(name, np.arange(count, dtype=np.int64), 0, 99, "W", "counting")


def tasks(data: Sequence[Values], options: Options) -> list[Task]:
    return [
        Task("1", one.name, series, x, seed)
        for seed in range(options.seeds or 2)
        for one in data
        for series in ("a", "b")
        for x in (1.0, 2.0)
    ]


def measure(task: Task, given: Values) -> Mapping[str, float]:
    noise = float(rng(task).normal())
    told = {"error": abs(noise) / task.x + float(given.values.mean())}
    return told if task.series == "b" else {**told, "other": noise}


STUDY = Study(
    name="small",
    about="A small study",
    version=3,
    data=("some",),
    tasks=tasks,
    measure=measure,
    panels=(
        Panel("1", "error", "Errors", "x", "error", log_y=True, marks=(("a", 1.5),)),
        Panel("1b", "error", "", "x", "error", of="1", series=("b",)),
    ),
    more=("other",),
)
