"""Whether the 95 % of homes' own sums is 95 %: readings added up once, noise drawn 4,000 times.

Figure: one layout and question of 28 days (28 sums of a day as shipped, together and each alone; 4
of a week, one of all of the ε or of half of it; 6 and 24 cells, the latter also in blocks of 4
hours); x: how many homes. Noise is drawn by the device's own sampler from the operating system's
entropy, so figures differ a little from run to run. Parts of a day, data sets and questions one
after the other that need as much noise share it: each is on trial in every seed. A value of an hour
or half an hour stands for its quarter hours. Homes join, leave and miss slots.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
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
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from studies.evaluate.study import Options, Values

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

DAYS, SLOTS_A_DAY, SLOT_S = 28, 96, 900
WINDOW, EPSILON = 97, 8
SEEDS, QUICK_SEEDS = 4_000, 200
HOMES = (30, 100, 400)
SHIPPED = 6  # ε of the daily sums that invitations ask for; 2 reports have the rest
_Z = 1.959963984540054
_AT_ONCE = 1 << 22  # noises that are added and folded at a time


@dataclass(frozen=True, slots=True)
class Asked:
    """A layout and its ε in any 97 slots; `apart`: of each period alone, not of all together."""

    name: str
    days: int
    cells: int
    block: int = 1
    epsilon: int = EPSILON
    apart: bool = False

    @property
    def layout(self) -> PeriodLayout:
        """The layout, of quarter hours."""
        return PeriodLayout(SLOT_S, self.days, self.cells, 0, self.block)

    def scale(self, span: int) -> int:
        """Return the noise's scale."""
        return scale_for(self.layout, WINDOW, span, self.epsilon)

    def questions(self, periods: int) -> Iterator[tuple[slice, int]]:
        """Return which periods and which cell each question adds up."""
        each = [slice(at, at + 1) for at in range(periods)] if self.apart else [slice(periods)]
        return product(each, range(self.cells))


ASKED = (
    Asked("shipped-days", 1, 1, epsilon=SHIPPED),
    Asked("shipped-a-day", 1, 1, epsilon=SHIPPED, apart=True),
    Asked("total-weeks", 7, 1),
    Asked("total-month-half", 28, 1, epsilon=EPSILON // 2),
    Asked("total-month", 28, 1),
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
        for homes in HOMES
        for asked in ASKED
        for values in data
    ]


def measure(task: Task, values: Values) -> Mapping[str, float]:
    """Return the share of intervals that held, over questions, of the worst and best, and widths.

    `half_width` over the mean; `of_law`: over 1.96·√(Σ 2b²), without folding.
    """
    asked, homes, seeds = BY_NAME[task.figure], int(task.x), task.seed
    sums, counts = summed(values, asked, homes)  # homes × periods × cells
    scale = asked.scale(values.ceiling - values.low)
    noise = drawn(scale, (seeds, *sums.shape[:2], asked.block))
    law = _Z * sqrt(cell_variance(scale, asked.block))
    held, halves, errors, ratios = [], [], [], []
    for periods, cell in asked.questions(sums.shape[1]):
        true = sums[:, periods, cell]
        slots = int(counts[:, periods, cell].sum())
        size = abs(float(true.sum()) + values.low * slots)  # slots times the mean
        if not size:
            continue  # nobody was there, or used anything: no share of it
        total, half = _answers(true, noise[:, :, periods, cell % asked.block], scale, asked.block)
        ratios.append(float(half.mean()) / law / sqrt(true.size))
        held.append(float((np.abs(total - true.sum()) <= half).mean()))
        halves.append(float(half.mean()) / size)
        errors.append(float((total - true.sum()).mean()) / size)
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


@lru_cache(maxsize=1)
def drawn(scale: int, shape: tuple[int, int, int, int]) -> Ints:
    """Return noise of seeds × homes × periods × the cells of a block, by the device's sampler."""
    seeds, homes, periods, block = shape
    draw, many = system_draw(), seeds * homes * periods
    if block == 1:
        each = (integer_laplace(scale, draw) for _ in range(many))
    else:
        each = (one for _ in range(many) for one in block_laplace(scale, block, draw))
    return np.fromiter(each, np.int64, many * block).reshape(shape)


def _answers(true: Ints, noise: Ints, scale: int, block: int) -> tuple[Floats, Floats]:
    """Return each seed's total and half-width of what homes × periods release, one checked."""
    step = max(1, _AT_ONCE // true.size)
    parts = [true + noise[at : at + step] for at in range(0, len(noise), step)]
    folded = [folded_sums(y, scale, block) for y in parts]
    total, variance = (np.concatenate(each) for each in zip(*folded, strict=True))
    half = _Z * np.sqrt(variance)
    if block == 1:
        check(scale, parts[0][0], float(total[0]), float(half[0]))
    return total, half


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
    version=3,
    data=("homes",),
    tasks=tasks,
    measure=measure,
    panels=_panels(),
    given=("months",),
    more=("least", "most", "of_law", "error"),
)
