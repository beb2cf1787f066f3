"""What a study of `edge-ldp evaluate` is: measurements, each a pure function of a task and values.

A study lists its tasks, measures one and says which panels to draw; files, processes, progress,
tables and pictures are the harness's. A new study is a package
`studies.evaluate.<name>` whose `__init__` exports one `Study` value, `STUDY`.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, order=True, slots=True)
class Task:
    """One measurement: the point `x` of the line `series` on the data set `data` in one figure.

    `seed` counts the repeats from 0. All names are written into the CSV, so keep them short.
    """

    figure: str
    data: str
    series: str
    x: float
    seed: int


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """A data set: true readings in their order, for experiments only.

    `values` is int64 of shape (n,), n ≥ 1, each in low..ceiling in `unit`s; raises ParameterError
    otherwise. `source` is one sentence: where they come from. `homes`: the values are so many
    blocks of one home each, of `slots_per_day` values a day and the same length.
    """

    name: str
    values: NDArray[np.int64]
    low: int
    ceiling: int
    unit: str
    source: str
    homes: int = 1
    slots_per_day: int = 24

    def __post_init__(self) -> None:
        """Refuse what no measure could work on."""
        if self.values.ndim != 1 or self.values.dtype != np.int64 or not len(self.values):
            raise ParameterError(f"values of {self.name}", "int64, one or more, in one row")
        if not self.low < self.ceiling:
            raise ParameterError(f"low, ceiling of {self.name}", "low < ceiling")
        if self.values.min() < self.low or self.values.max() > self.ceiling:
            raise ParameterError(f"values of {self.name}", f"in {self.low}..{self.ceiling}")
        if self.homes < 1 or len(self.values) % self.homes or self.slots_per_day < 1:
            raise ParameterError(
                f"homes of {self.name}", "blocks of the same length, 1 slot or more"
            )

    def digest(self) -> str:
        """Return 12 hexadecimal digits that change with the values, their order or their range."""
        shape = self.homes, self.slots_per_day
        blocks = "" if shape == (1, 24) else f"{self.homes} {self.slots_per_day} "
        head = f"{self.name} {self.low} {self.ceiling} {blocks}".encode()
        return sha256(head + self.values.astype("<i8").tobytes()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for; None and 0 stand for the study's own choice.

    `epsilons`: budgets, each > 0. `seeds`: repeats of every measurement. `quick`: a small run that
    shows the shape of the figures in a minute of CPU. `jobs`: processes (the harness's business).
    """

    epsilons: tuple[float, ...] | None = None
    seeds: int = 0
    quick: bool = False
    jobs: int = 1


@dataclass(frozen=True, slots=True)
class StudyRow:
    """One finished task: its measures by name; a measure may be missing, none is NaN.

    `cpu_s`: what drawing, counting and estimating took together, in CPU seconds.
    """

    task: Task
    measures: Mapping[str, float]
    cpu_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Panel:
    """One row of axes in a figure's file: a measure against x, one axes per data set.

    Lines are the means over seeds, one per series, bands two standard errors of the mean.
    `of`: the `Task.figure` whose rows are drawn, where several figures share them; `figure` itself
    unless given. `series`: only these lines (all unless given). `marks`: vertical lines,
    (series, x), in the series' colour. `compared`: the line drawn thick ("": none), the first
    unless given.
    """

    figure: str
    metric: str
    title: str
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    of: str = ""
    marks: tuple[tuple[str, float], ...] = ()
    series: tuple[str, ...] = ()
    compared: str | None = None


@dataclass(frozen=True, slots=True)
class Study:
    """A study: what it measures on which data, and what becomes of the rows.

    `data` names built-in sets (studies.evaluate.sources). `tasks(data_sets, options)` lists the
    work in the order in which it should be done; seeds outermost gives early pictures. `measure`
    must be a module's function (it is sent to other processes), pure given its task: all its
    randomness comes from `rng(task)`.
    `version`: raise it when `measure` changes; rows of another version are refused.
    `more`: measures that no panel draws. With --quick only the first `quick_values` of each set
    are used (None: all), and of sets only `quick_data` (none: all). `given`: sets that are run too
    where --data is given.
    """

    name: str
    about: str
    version: int
    data: tuple[str, ...]
    tasks: Callable[[Sequence[Values], Options], list[Task]]
    measure: Callable[[Task, Values], Mapping[str, float]]
    panels: tuple[Panel, ...]
    more: tuple[str, ...] = ()
    quick_values: int | None = None
    quick_data: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    figures: tuple[str, ...] = field(init=False)
    metrics: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """List figures and measures once, in the panels' order."""
        names = [panel.metric for panel in self.panels] + list(self.more)
        object.__setattr__(self, "figures", tuple(dict.fromkeys(p.figure for p in self.panels)))
        object.__setattr__(self, "metrics", tuple(dict.fromkeys(names)))


def rng(task: Task, purpose: str = "") -> np.random.Generator:
    """Return the task's own generator: equal tasks and purposes give equal draws, others none.

    For experiments on known data only: never privacy noise of a device.
    """
    return np.random.default_rng(list(sha256(repr((astuple(task), purpose)).encode()).digest()))
