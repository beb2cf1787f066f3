"""Whether the 95 % of homes' own sums is 95 %: readings added up once, noise drawn 4,000 times.

Figure: one layout and question of 28 days (28 sums of a day, 4 of a week, one of all of the ε or of
half of it; 6 and 24 cells, the latter also in blocks of 4 hours); x: how many homes. Noise is drawn
by the device's own sampler from the operating system's entropy, so figures differ a little from run
to run. All parts of a day share a seed's noise, so that each is on trial in every seed. A value of
an hour or half an hour stands for its quarter hours. Homes join, leave and miss slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device.laplace import block_laplace, integer_laplace
from edge_ldp.entropy import system_draw
from edge_ldp.period_sums.estimate import PeriodReport, estimate_total
from edge_ldp.period_sums.law import cell_variance
from edge_ldp.period_sums.layout import PeriodLayout
from edge_ldp.period_sums.scale import scale_for
from studies.evaluate.study import Panel, Study, Task
from studies.evaluate.sums.fleet import fleet_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from studies.evaluate.study import Options, Values

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

DAYS, SLOTS_A_DAY, SLOT_S = 28, 96, 900
WINDOW, EPSILON = 97, 8
SEEDS, QUICK_SEEDS = 4_000, 200
HOMES = (30, 100, 400)
MOST_OF_DAYS = 100  # homes that release every day: 28 times the noise of a month
_Z = 1.959963984540054


@dataclass(frozen=True, slots=True)
class Asked:
    """A layout, and which share of the window's ε it has, as 1 / `part`."""

    name: str
    days: int
    cells: int
    block: int = 1
    part: int = 1

    @property
    def layout(self) -> PeriodLayout:
        """The layout, of quarter hours."""
        return PeriodLayout(SLOT_S, self.days, self.cells, 0, self.block)

    def scale(self, span: int) -> int:
        """Return the noise's scale, of that share of ε 8 in any 97 slots."""
        return scale_for(self.layout, WINDOW, span, EPSILON) * self.part


ASKED = (
    Asked("total-days", 1, 1),
    Asked("total-weeks", 7, 1),
    Asked("total-month", 28, 1),
    Asked("total-month-half", 28, 1, part=2),
    Asked("parts", 28, 6),
    Asked("hours", 28, 24),
    Asked("hours-in-blocks", 28, 24, block=4),
)
BY_NAME = {one.name: one for one in ASKED}


def tasks(data: Sequence[Values], options: Options) -> list[Task]:
    """Return the work: each question of each number of homes, once."""
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    return [
        Task(asked.name, values.name, "", float(homes), seeds)
        for values in data
        for asked in ASKED
        for homes in HOMES
        if homes <= MOST_OF_DAYS or asked.days > 1
    ]


def measure(task: Task, values: Values) -> Mapping[str, float]:
    """Return the share of intervals that held, over cells and of the worst and best, and widths.

    `half_width` over the mean; `of_law`: over 1.96·√(Σ 2b²), without folding.
    """
    asked, homes, seeds = BY_NAME[task.figure], int(task.x), task.seed
    sums, counts = summed(values, asked, homes)  # homes × periods × cells
    scale = asked.scale(values.ceiling - values.low)
    noise = drawn(asked, scale, homes * sums.shape[1], seeds).reshape(seeds, homes, -1, asked.block)
    law = _Z * sqrt(homes * sums.shape[1] * cell_variance(scale, asked.block))
    held, halves, errors, ratios = [], [], [], []
    for cell in range(asked.cells):
        truth, slots = float(sums[:, :, cell].sum()), int(counts[:, :, cell].sum())
        y = sums[None, :, :, cell] + noise[:, :, :, cell % asked.block]
        total, variance = folded_sums(y, scale, asked.block)
        half = _Z * np.sqrt(variance)
        if asked.block == 1:
            check(scale, y[0], float(total[0]), float(half[0]))
        ratios.append(float(half.mean()) / law)
        held.append(float((np.abs(total - truth) <= half).mean()))
        mean = truth / slots + values.low
        halves.append(float(half.mean()) / slots / abs(mean))
        errors.append(float((total - truth).mean()) / slots / abs(mean))
    return {
        "coverage": float(np.mean(held)),
        "least": min(held),
        "most": max(held),
        "half_width": float(np.mean(halves)),
        "of_law": float(np.mean(ratios)),
        "error": float(np.mean(errors)),
    }


def summed(values: Values, asked: Asked, homes: int) -> tuple[Ints, Ints]:
    """Return what homes add up over low, and of how many slots: homes × periods × cells."""
    fleet = fleet_of(values, 1.0)
    repeats = SLOTS_A_DAY // values.slots_per_day
    days = min(DAYS, fleet.readings.shape[1] // values.slots_per_day)
    kept = days * values.slots_per_day
    there = fleet.present[:, :kept].astype(np.int64)
    read = (fleet.readings[:, :kept] - values.low) * there
    shape = len(read), days // asked.days, asked.days, asked.cells, -1
    found = (part.reshape(shape).sum(axis=(2, 4)) * repeats for part in (read, there))
    which = np.arange(homes) % len(read)
    sums, counts = (part[which] for part in found)
    return sums, counts


def drawn(asked: Asked, scale: int, many: int, seeds: int) -> Ints:
    """Return noise of a release's one block, by the device's sampler."""
    return _noise(asked.block, scale, many * seeds)


@lru_cache(maxsize=1)
def _noise(block: int, scale: int, many: int) -> Ints:
    draw = system_draw()
    if block == 1:
        return np.fromiter((integer_laplace(scale, draw) for _ in range(many)), np.int64, many)
    found = (one for _ in range(many) for one in block_laplace(scale, block, draw))
    return np.fromiter(found, np.int64, many * block)


def folded_sums(y: Ints, scale: int, block: int) -> tuple[Floats, Floats]:
    """Return each seed's total and its estimated variance, as the library has them."""
    variance = cell_variance(scale, block)
    if block > 1:
        return y.sum(axis=(1, 2)).astype(np.float64), np.full(len(y), variance * y[0].size)
    below = -1 / np.expm1(1 / scale)
    total = np.where(y > 0, y, below).sum(axis=(1, 2))
    return total, variance * (y[0].size - (y <= 0).sum(axis=(1, 2)) / 2)


def check(scale: int, y: Ints, total: float, half: float) -> None:
    """Raise AssertionError where the library's own estimate of a seed is another."""
    law = {"layout": PeriodLayout(SLOT_S, 1), "period": 1, "low": 0, "span": 1, "scale": scale}
    homes = [[PeriodReport(**law, n=(1,), y=(of,)) for of in home] for home in y.tolist()]  # type: ignore[arg-type]
    found = estimate_total(homes)
    assert np.isclose([found.total, found.total_half_width], [total, half]).all()


def _panels() -> tuple[Panel, ...]:
    return tuple(
        Panel(asked.name, metric, "", "homes", label, log_x=True, compared="")
        for asked in ASKED
        for metric, label in (("coverage", "holds"), ("half_width", "half-width over mean"))
    )


STUDY = Study(
    name="period-sums",
    about="totals and parts of the day from homes' own sums: whether their 95 % intervals hold",
    version=1,
    data=("homes",),
    tasks=tasks,
    measure=measure,
    panels=_panels(),
    given=("months",),
    more=("least", "most", "of_law", "error"),
)
