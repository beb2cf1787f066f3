"""The methods that [SW] §6 compares, and newer ones, from values to a density; by their names.

SW reports by "randomise before bucketise" as in the paper (§5.4), but for B-R, which is what our
devices do. Every method gets all n values and spends the whole ε on each. Reports of categorical
oracles are drawn by the product's own clients and counted into supports.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import Piecewise, SquareWave, StochasticRounding
from edge_ldp.estimate import ahead, auto, em, ems, hh_admm
from edge_ldp.estimate.hierarchy import hh_levels
from edge_ldp.estimate.pure import olh_counts, supports
from edge_ldp.oracles import Grr, HaarHrr, Hierarchy, Olh, Oue
from edge_ldp.vectorized import decode_many, perturb_many, perturb_oracle_many
from studies.baselines.continuous import continuous_wave
from studies.baselines.grr import cfo
from studies.baselines.haar import haar_frequencies
from studies.evaluate.metrics import Masses

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from edge_ldp.estimate import Density
    from edge_ldp.estimate.pure import Supports
    from studies.evaluate.metrics import Spread
    from studies.evaluate.study import Values
    from studies.evaluate.sw.cells import Cells

    Ints = NDArray[np.int64]
    Method = Callable[[Cells, float, np.random.Generator], Spread]

EMS, EM, ADMM, HH, HAAR = "SW+EMS", "SW+EM", "HH-ADMM", "HH", "HaarHRR"
EMS_BR, AUTO, AHEAD = "SW+EMS, B-R", "SW+auto", "AHEAD"
BINS = (16, 32, 64)
MEANS: dict[str, Callable[..., Mechanism]] = {"SR": StochasticRounding, "PM": Piecewise}
_STEPS = 1 << 20  # integers that squares are put on


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
    levels = _tree(cells.items, cells.size, epsilon, rng)
    return hh_admm(levels, cells.size, edges=cells.edges)


def _hierarchy(cells: Cells, epsilon: float, rng: np.random.Generator) -> Masses:
    levels = _tree(cells.items, cells.size, epsilon, rng)
    leaves = hh_levels(levels, cells.size, weighted=False)[-1]
    return Masses(cells.edges, leaves[: cells.size])


def _haar(cells: Cells, epsilon: float, rng: np.random.Generator) -> Masses:
    counts, own = _haar_counts(cells.items, cells.size, epsilon, rng)
    return Masses(cells.edges, haar_frequencies(counts, cells.size, own=own)[0])


def _binned(bins: int, cells: Cells, epsilon: float, rng: np.random.Generator) -> Density:
    items = cells.items * bins // cells.size
    edges = cells.edges[-(-np.arange(bins + 1) * cells.size // bins)]
    return cfo(_categorical(items, bins, epsilon, rng), edges=edges)


def _ahead(cells: Cells, epsilon: float, rng: np.random.Generator) -> Density:
    """Ask one cohort a round."""
    state = ahead(cells.size)
    for cohort in np.array_split(rng.permutation(cells.items), state.rounds):
        nodes = np.searchsorted(state.frontier, cohort, side="right") - 1
        state = state.grown(_unary(nodes, len(state.frontier) - 1, epsilon, rng))
    return state.density(edges=cells.edges)


def _categorical(items: Ints, size: int, epsilon: float, rng: np.random.Generator) -> Supports:
    """Return supports by GRR or OLH, whichever has the smaller variance ([SW] §2.1)."""
    oracle = Hierarchy(epsilon=epsilon, size=size, fanout=size).levels[0]
    return _counted(oracle, perturb_oracle_many(oracle, items, entropy=rng.bytes))


def _tree(items: Ints, size: int, epsilon: float, rng: np.random.Generator) -> list[Supports]:
    """Return the supports of each level of a 4-ary tree, each device on one level ([SW] §4.2)."""
    oracle = Hierarchy(epsilon=epsilon, size=size)
    made = perturb_oracle_many(oracle, items, entropy=rng.bytes)
    return [
        _counted(level, made[made[:, 0] == at, 1 : 1 + level.report_length])
        for at, level in enumerate(oracle.levels)
    ]


def _haar_counts(
    items: Ints, size: int, epsilon: float, rng: np.random.Generator
) -> tuple[list[Ints], float]:
    """Return HaarHRR's counts of (row, bit) on each level, and the own bit's probability."""
    oracle = HaarHrr(epsilon=epsilon, size=size)
    level, row, bit = perturb_oracle_many(oracle, items, entropy=rng.bytes).T
    counts = [
        np.bincount(2 * row[level == at] + bit[level == at], minlength=2 * nodes).reshape(-1, 2)
        for at, nodes in enumerate(oracle.nodes)
    ]
    ratio = float(oracle.max_ratio)
    return counts, ratio / (ratio + 1)


def _unary(items: Ints, size: int, epsilon: float, rng: np.random.Generator) -> Supports:
    """Return OUE's supports of `size` items from their exact law: bits are independent."""
    oracle = Oue(epsilon=epsilon, size=size)
    own, other = float(oracle.own), float(oracle.other)
    held = np.bincount(items, minlength=size)
    counts = rng.binomial(held, own) + rng.binomial(len(items) - held, other)
    return supports(counts, len(items), own=own, other=other)


def _counted(oracle: Grr | Olh, reports: NDArray[np.generic]) -> Supports:
    if isinstance(oracle, Grr):
        counts = np.bincount(reports[:, 0].astype(np.int64), minlength=oracle.size)
    else:
        counts = olh_counts(reports, oracle.size, oracle.client.channel.d)
    return supports(counts, len(reports), own=oracle.own, other=oracle.other)


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


def moment_errors(
    kind: str, values: Values, epsilon: float, rng: np.random.Generator
) -> dict[str, float]:
    """Return the absolute errors of mean and variance, in the range and its square ([SW] §6.3).

    The mean takes all values; the variance two halves: the first tells the mean, and each of the
    second reports the square of its distance from it.
    """
    span = values.ceiling - values.low
    drawn = rng.permutation(values.values)
    first, second = np.array_split(drawn, 2)
    whole = _mean(kind, drawn, (values.low, values.ceiling), epsilon, rng)
    errors = {"mean": abs(whole - drawn.mean()) / (span + 1)}
    if len(second):
        half = _mean(kind, first, (values.low, values.ceiling), epsilon, rng)
        half = float(np.clip(half, values.low, values.ceiling))
        squares = np.rint(((second - half) / span) ** 2 * _STEPS).astype(np.int64)
        found = _mean(kind, squares, (0, _STEPS), epsilon, rng) / _STEPS * span**2
        errors["variance"] = abs(found - drawn.var()) / (span + 1) ** 2
    return {name: float(error) for name, error in errors.items()}


def _mean(
    kind: str, values: Ints, ends: tuple[int, int], epsilon: float, rng: np.random.Generator
) -> float:
    mechanism = MEANS[kind](epsilon=epsilon, low=ends[0], high=ends[1])
    codes = perturb_many(mechanism, values, entropy=rng.bytes)
    return float(decode_many(mechanism, codes).mean())
