"""How wide a fleet's sums will be, before anybody reports. Source: docs/methods.md, Period sums."""

from __future__ import annotations

from math import exp, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from edge_ldp.device.errors import ParameterError
from edge_ldp.period_sums.law import FEW, Noise, cell_variance, noise_half_width

if TYPE_CHECKING:
    from edge_ldp.period_sums.layout import PeriodLayout


def forecast_total(  # noqa: PLR0913 (a question: how many of whom, of what)
    layout: PeriodLayout,
    scale: int,
    *,
    homes: int,
    periods: int,
    cells: int | None = None,
    cell_sum: float = float("inf"),
    level: float = 0.95,
) -> float:
    """Return the half-width of a total over so many neighbouring cells, in unit · slots.

    `cell_sum`: what one home's cell holds in a period, about; folding saves most where it is small
    against the noise. Half-widths of means: divide by the slots. Raises ParameterError.
    """
    wanted = layout.cells if cells is None else cells
    if homes < 1 or periods < 1 or not 1 <= wanted <= layout.cells:
        raise ParameterError("homes, periods, cells", f"above 0, and {layout.cells} cells at most")
    full, rest = divmod(wanted, layout.block)
    of_home = [Noise(scale, layout.block, layout.block)] * full
    of_home += [Noise(scale, layout.block, rest)] * (rest > 0)
    if len(of_home) * homes * periods <= FEW:
        return noise_half_width(of_home * (homes * periods), level)
    one = cell_variance(scale, layout.block)
    if layout.block == 1:
        one *= 1 - _below(cell_sum, scale) / 2
    return sqrt(homes * periods * wanted * one) * NormalDist().inv_cdf((1 + level) / 2)


def _below(cell_sum: float, scale: int) -> float:
    """Return the probability that a cell is not above 0: q^S/(1+q)."""
    return exp(-cell_sum / scale) / (1 + exp(-1 / scale))
