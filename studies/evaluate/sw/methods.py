"""The methods that [SW] §6 compares, and newer ones, from values to a density; by their names.

SW reports by "randomise before bucketise" as in the paper (§5.4), but for B-R, which is what our
devices do. Every method gets all n values and spends the whole ε on each.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import SquareWave
from edge_ldp.estimate import ahead, auto, em, ems, hh_admm
from edge_ldp.estimate.hierarchy import hh_levels
from edge_ldp.vectorized import perturb_many
from studies.baselines.continuous import continuous_wave
from studies.baselines.grr import cfo
from studies.baselines.haar import haar_frequencies
from studies.evaluate.metrics import Masses
from studies.evaluate.sw import reports

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from edge_ldp.estimate import Density
    from studies.evaluate.metrics import Spread
    from studies.evaluate.sw.cells import Cells

    Ints = NDArray[np.int64]
    Method = Callable[[Cells, float, np.random.Generator], Spread]

EMS, EM, ADMM, HH, HAAR = "SW+EMS", "SW+EM", "HH-ADMM", "HH", "HaarHRR"
EMS_BR, AUTO, AHEAD = "SW+EMS, B-R", "SW+auto", "AHEAD"
BINS = (16, 32, 64)


def counts_of(mechanism: Mechanism, values: Ints, rng: np.random.Generator) -> Ints:
    """Return how many reports of the values have each code."""
    codes = perturb_many(mechanism, values, entropy=rng.bytes)
    return np.bincount(codes, minlength=mechanism.code_count)


def wave_counts(cells: Cells, epsilon: float, rng: np.random.Generator) -> Ints:
    """Return R-B's counts: continuous reports in as many bins as there are buckets."""
    wave, shares = continuous_wave(epsilon), cells.shares
    return wave.count(wave.perturb(shares, rng.random(len(shares))), cells.size)


def _smoothed(cells: Cells, epsilon: float, rng: np.random.Generator) -> Density:
    model = continuous_wave(epsilon).model(cells.size, edges=cells.edges)
    return ems(model, wave_counts(cells, epsilon, rng))


def _likeliest(cells: Cells, epsilon: float, rng: np.random.Generator) -> Density:
    model = continuous_wave(epsilon).model(cells.size, edges=cells.edges)
    return em(model, wave_counts(cells, epsilon, rng))


def _square_wave(cells: Cells, epsilon: float) -> SquareWave:
    values = cells.values
    return SquareWave(epsilon=epsilon, low=values.low, high=values.ceiling, size=cells.size)


def _on_device(cells: Cells, epsilon: float, rng: np.random.Generator) -> Density:
    mechanism = _square_wave(cells, epsilon)
    return ems(mechanism, counts_of(mechanism, cells.values.values, rng))


def _chosen(cells: Cells, epsilon: float, rng: np.random.Generator) -> Density:
    mechanism = _square_wave(cells, epsilon)
    return auto(mechanism, counts_of(mechanism, cells.values.values, rng), rng=rng).density


def _admm(cells: Cells, epsilon: float, rng: np.random.Generator) -> Density:
    levels = reports.tree(cells.items, cells.size, epsilon, rng)
    return hh_admm(levels, cells.size, edges=cells.edges)


def _hierarchy(cells: Cells, epsilon: float, rng: np.random.Generator) -> Masses:
    levels = reports.tree(cells.items, cells.size, epsilon, rng)
    leaves = hh_levels(levels, cells.size, weighted=False)[-1]
    return Masses(cells.edges, leaves[: cells.size])


def _haar(cells: Cells, epsilon: float, rng: np.random.Generator) -> Masses:
    counts, own = reports.haar(cells.items, cells.size, epsilon, rng)
    return Masses(cells.edges, haar_frequencies(counts, cells.size, own=own)[0])


def _binned(bins: int, cells: Cells, epsilon: float, rng: np.random.Generator) -> Density:
    items = cells.items * bins // cells.size
    edges = cells.edges[-(-np.arange(bins + 1) * cells.size // bins)]
    return cfo(reports.categorical(items, bins, epsilon, rng), edges=edges)


def _ahead(cells: Cells, epsilon: float, rng: np.random.Generator) -> Density:
    """Ask one cohort a round."""
    state = ahead(cells.size)
    for cohort in np.array_split(rng.permutation(cells.items), state.rounds):
        nodes = np.searchsorted(state.frontier, cohort, side="right") - 1
        state = state.grown(reports.unary(nodes, len(state.frontier) - 1, epsilon, rng))
    return state.density(edges=cells.edges)


METHODS: dict[str, Method] = {
    EMS: _smoothed,
    EM: _likeliest,
    ADMM: _admm,
    **{f"CFO-{bins}": partial(_binned, bins) for bins in BINS},
    HH: _hierarchy,
    HAAR: _haar,
    EMS_BR: _on_device,
    AUTO: _chosen,
    AHEAD: _ahead,
}
NEW = (EMS_BR, AUTO, AHEAD)  # not in the paper's figures
SIGNED = (HH, HAAR)  # some frequencies below 0: no densities, so for range queries only
