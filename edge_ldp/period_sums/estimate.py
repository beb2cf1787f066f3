"""What the sums of many homes say: a total and a mean, with an interval that holds.

Homes are added up unweighted: weights by their noise would favour small connections, which use
less. An interval leans on nothing but the noise of honest homes. Source: docs/methods.md, Period
sums.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import exp, expm1, sqrt
from statistics import NormalDist

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.sums_frame import MOST
from edge_ldp.period_sums.law import FEW, Noise, cell_variance, noise_half_width, reach
from edge_ldp.period_sums.layout import PeriodLayout


@dataclass(frozen=True, slots=True)
class PeriodReport:
    """What a home released of one period: for each cell y = S + noise, and n, the slots in S.

    S is the sum of min(max(v, low), low + span) - low over the cell's slots that had a value v.
    Raises ParameterError where the numbers do not fit the layout; whether they are plausible of an
    honest home is asked of `is_plausible`.
    """

    layout: PeriodLayout
    period: int
    low: int
    span: int
    scale: int
    n: tuple[int, ...]
    y: tuple[int, ...]

    def __post_init__(self) -> None:
        cells = self.layout.cells
        if len(self.n) != cells or len(self.y) != cells:
            raise ParameterError("cells", f"{cells} of each: n and y")
        numbers = (self.period, self.low, self.span, self.scale, *self.n, *self.y)
        if any(type(one) is not int or not -MOST <= one <= MOST for one in numbers):
            raise ParameterError("report", "integers of at most 2**62")
        if self.span < 1 or self.scale < 1:
            raise ParameterError("report", "a span and a scale above 0")
        if not all(0 <= one <= self.layout.slots_in_cell for one in self.n):
            raise ParameterError("n", f"0 to {self.layout.slots_in_cell} slots in each cell")

    @property
    def is_plausible(self) -> bool:
        """Whether every cell lies where an honest one does, but for one in 2^40."""
        beyond = reach(self.layout.block) * self.scale
        pairs = zip(self.n, self.y, strict=True)
        return all(-beyond <= y <= n * self.span + beyond for n, y in pairs)


@dataclass(frozen=True, slots=True)
class SumAnswer:
    """A total in unit · slots, and a mean in the unit; `low` and `high` are the mean's interval.

    `homes` that sent something, `slots` that had a value; `is_exact`: the interval is of the exact
    law of the noise, not of the normal one. `sway`: how far one lying home can move the total.
    """

    total: float
    total_half_width: float
    slots: int
    homes: int
    is_exact: bool
    sway: int

    @property
    def mean(self) -> float:
        """The mean over slots."""
        return self.total / self.slots

    @property
    def low(self) -> float:
        """Lower end of the mean's interval."""
        return (self.total - self.total_half_width) / self.slots

    @property
    def high(self) -> float:
        """Upper end of the mean's interval."""
        return (self.total + self.total_half_width) / self.slots


def estimate_total(
    homes: Sequence[Iterable[PeriodReport]],
    cells: Collection[int] | None = None,
    level: float = 0.95,
) -> SumAnswer:
    """Return the total over all homes, each with the reports of its periods; `cells`: None for all.

    Cells without a slot are left out with their noise. Raises ParameterError where no slot is left.
    """
    noises: list[Noise] = []
    plain = total = variance = 0.0
    slots = heard = sway = 0
    for home in homes:
        before, moves = slots, 0
        for report in home:
            picked = _picked(report, cells)
            slots += sum(report.n[at] for at in picked)
            moves += sum(_sway(report, at) for at in picked)
            base = float(report.low * sum(report.n[at] for at in picked))
            plain += base + sum(report.y[at] for at in picked)
            values = [report.y[at] for at in picked]
            value, spread = folded(values, report.scale, report.layout.block)
            total, variance = total + base + value, variance + spread
            noises += _noises(report, picked)
        heard += slots > before
        sway = max(sway, moves)
    if not slots:
        raise ParameterError("cells", "at least one slot with a value")
    if len(noises) <= FEW:
        return SumAnswer(plain, noise_half_width(noises, level), slots, heard, True, sway)
    width = sqrt(variance) * NormalDist().inv_cdf((1 + level) / 2)
    return SumAnswer(total, width, slots, heard, False, sway)


def folded(values: Iterable[int], scale: int, block: int = 1) -> tuple[float, float]:
    """Return the sum of these cells, and an unbiased estimate of its variance.

    A sum S ≥ 0, so a cell y ≤ 0 says no more than that it is not above 0: of it -y is geometric
    whatever S is, and its mean -q/(1-q), q = e^(-1/b), stands for it. Unbiased for every S, with
    q/(1-q)² less variance whenever it happens. Cells that share a noise are left as they are.
    """
    of_cell = cell_variance(scale, block)
    if block > 1:
        listed = list(values)
        return float(sum(listed)), len(listed) * of_cell
    below = -exp(-1 / scale) / -expm1(-1 / scale)
    total = variance = 0.0
    for y in values:
        total += y if y > 0 else below
        variance += of_cell if y > 0 else of_cell / 2
    return total, variance


def _picked(report: PeriodReport, cells: Collection[int] | None) -> list[int]:
    wanted = range(report.layout.cells) if cells is None else cells
    return [at for at in wanted if report.n[at]]


def _noises(report: PeriodReport, picked: Iterable[int]) -> list[Noise]:
    block = report.layout.block
    of_blocks: dict[int, int] = {}
    for at in picked:
        of_blocks[at // block] = of_blocks.get(at // block, 0) + 1
    return [Noise(report.scale, block, taken) for taken in of_blocks.values()]


def _sway(report: PeriodReport, at: int) -> int:
    return report.n[at] * report.span + 2 * reach(report.layout.block) * report.scale
