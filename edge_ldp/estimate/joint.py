"""One density from many mechanisms: surveys of several epochs and ranges, and stream reports.

All of them see the same values, each through its own clamping, buckets or lattice, and channel. The
density lives on cells of its own, widths doubling outwards; a mechanism's input is a known mixture
of cells (its end inputs hold "at or below" and "at or above"), so likelihoods add up in one EM. An
iteration costs O(cells + codes): a sparse encoding, then the operator's cumulative sums. Sources:
docs/methods.md, Densities (joint estimation), docs/design.md, The kernel, Estimation, [SW] §5.5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import checks
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS
from edge_ldp.errors import NoReportsError
from edge_ldp.estimate.density import edges_of
from edge_ldp.estimate.em import checked_counts, ems
from edge_ldp.estimate.operator import Branch, Model, Operator, operator_of
from edge_ldp.gateway.ems import MAX_ITERATIONS, TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Sequence

    import scipy
    from numpy.typing import ArrayLike

    from edge_ldp import Mechanism
    from edge_ldp.arrays import Floats, Ints
    from edge_ldp.estimate.density import Density

PER_OCTAVE = 8  # cells each time the distance from low doubles: θ within 9 % of its cell's edges
FINEST = 2**13  # the finest cells are this fraction of the range, or one unit


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Reports of one mechanism, counted by code: `counts` has mechanism.code_count numbers."""

    mechanism: Mechanism
    counts: ArrayLike


@dataclass(frozen=True, slots=True, eq=False)
class MechanismView(Branch):
    """How one mechanism sees a density over cells: P(code | cell), never made dense.

    It is a branch of the operator of several, whose codes stand one after another.

    `encoding`: share of each cell's integers (mean of its rounding) that falls to each input,
    inputs × cells; its columns add up to 1.
    """

    operator: Operator
    encoding: scipy.sparse.csr_matrix
    spread: scipy.sparse.csr_matrix

    def apply(self, x: Floats, out: Floats | None = None) -> Floats:
        """Return the law of the codes when cell k holds the mass x[k]."""
        return self.operator.apply(np.asarray(self.encoding @ x), out)

    def adjoint(self, y: Floats, out: Floats | None = None) -> Floats:
        """Return Σ_j P(j | cell)·y_j for every cell, from one number a code."""
        back = np.asarray(self.spread @ self.operator.adjoint(y))
        if out is not None:
            out[:] = back
        return back

    def unscaled(self) -> MechanismView:
        """Return it without impossible codes: a branch that is never taken (HM below ε 0.61)."""
        return replace(self, operator=self.operator.unscaled())


@checks.taking(
    low=checks.COUNTABLE,
    high=checks.COUNTABLE,
    per_octave=checks.integer_in(1, 1 << 10),
    finest=checks.optional(checks.integer_in(least=1)),
)
def cells(low: int, high: int, *, per_octave: int = PER_OCTAVE, finest: int | None = None) -> Ints:
    """Return integer edges from low to high + 1, `finest` wide at first, widening with v − low.

    About per_octave·log2((high − low)/finest) cells. `finest`: 1/8192 of the range, at least 1,
    unless given. Raises ParameterError.
    """
    span = high - low + 1
    if span < 2:  # noqa: PLR2004
        raise ParameterError("low, high", "low < high")
    step = finest or max(1, span // FINEST)
    growth = 2 ** (1 / per_octave) - 1
    at = [0]
    while at[-1] < span:
        at.append(at[-1] + max(step, round(at[-1] * growth)))
    at[-1] = span
    if len(at) > 2 and at[-1] - at[-2] < (at[-2] - at[-3]) / 2:  # noqa: PLR2004
        del at[-2]
    return low + np.array(at, dtype=np.int64)


def view_of(mechanism: Mechanism, edges: Ints) -> MechanismView:
    """Return how `mechanism` sees cells between `edges`, whose values may lie beyond its range."""
    encode = _buckets if mechanism.encoder == BUCKETS else _lattice
    encoding = encode(mechanism, edges)
    return MechanismView(operator_of(mechanism), encoding, encoding.T.tocsr())


def jointly(evidence: Sequence[Evidence], edges: Ints) -> tuple[Model, Floats]:
    """Return the likelihood of all reports at once over cells between `edges`, and their counts.

    For `em`, `ems`, `held_out`, `auto`. Mechanisms without reports are left out. Raises
    NoReportsError, CountsError, ParameterError.
    """
    if len(edges) < 3 or not (np.diff(edges) > 0).all():  # noqa: PLR2004
        raise ParameterError("edges", "three or more rising integers")
    parts = [(e.mechanism, counts) for e in evidence if (counts := checked_counts_of(e)).any()]
    if not parts:
        raise NoReportsError
    views = [view_of(mechanism, edges) for mechanism, _ in parts]
    together = Operator(
        inputs=len(edges) - 1,
        codes=sum(view.operator.codes for view in views),
        possible=np.concatenate([view.operator.possible for view in views]),
        branches=tuple(views),
        cuts=(0, *np.cumsum([view.operator.codes for view in views]).tolist()),
    )
    ratio = max(float(mechanism.max_ratio) for mechanism, _ in parts)
    model = Model(together, edges.astype(np.float64), lattice=False, max_ratio=ratio, uneven=True)
    return model, np.concatenate([counts for _, counts in parts])


@checks.taking(
    evidence=checks.each(checks.a("edge_ldp.estimate.joint.Evidence")),
    edges=checks.row(checks.ints),
    smoothing=checks.chance,
    tolerance=checks.finite(least=0),
    max_iterations=checks.integer_in(least=1),
)
def joint(
    evidence: Sequence[Evidence],
    edges: Ints,
    *,
    smoothing: float = 0.5,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Density:
    """Return the EMS estimate over cells between `edges` from all reports at once, as `ems` does.

    `smoothing` l in [0, 1] of mass / width, so that uneven cells stay even densities; 0 is plain
    EM. Raises NoReportsError, CountsError, ParameterError.
    """
    model, counts = jointly(evidence, edges)
    return ems(
        model, counts, strength=smoothing, tolerance=tolerance, max_iterations=max_iterations
    )


def checked_counts_of(evidence: Evidence) -> Floats:
    """Return the counts as floats, zeros where nothing was reported. Raises CountsError."""
    operator = operator_of(evidence.mechanism)
    try:
        return checked_counts(operator, evidence.counts)
    except NoReportsError:
        return np.zeros(operator.codes)


def _buckets(mechanism: Mechanism, edges: Ints) -> scipy.sparse.csr_matrix:
    import scipy  # noqa: PLC0415 (time: only who joins evidence)

    starts = edges_of(mechanism).astype(np.int64)[:-1]
    at = _pieces(edges, starts)
    cell, bucket = _inside(edges, at), np.maximum(_inside(starts, at), 0)
    share = np.diff(np.append(at, edges[-1])) / np.diff(edges)[cell]
    return scipy.sparse.csr_matrix((share, (bucket, cell)), shape=(len(starts), len(edges) - 1))


def _lattice(mechanism: Mechanism, edges: Ints) -> scipy.sparse.csr_matrix:
    """Return the mean of the rounding over each cell's integers, exactly.

    Between two knots an integer t at distance s from low falls to the right one with share
    (s·(d − 1) mod span)/span; beyond the range it counts as the end.
    """
    import scipy  # noqa: PLC0415 (same)

    span, knots = mechanism.high - mechanism.low, mechanism.size
    first = -(-np.arange(knots - 1, dtype=np.int64) * span // (knots - 1))  # of each segment
    at = _pieces(edges, np.append(mechanism.low + first, mechanism.high + 1))
    end = np.append(at[1:], edges[-1])
    cell = _inside(edges, at)
    share = (end - at) / np.diff(edges)[cell]
    middle = np.clip((at + end - 1) / 2 - mechanism.low, 0, span)  # mean of a piece's integers
    left = np.clip(_inside(first, at - mechanism.low), 0, knots - 2)
    right = np.clip(middle * (knots - 1) / span - left, 0, 1)
    rows, columns = np.concatenate([left, left + 1]), np.concatenate([cell, cell])
    parts = np.concatenate([share * (1 - right), share * right])
    return scipy.sparse.csr_matrix((parts, (rows, columns)), shape=(knots, len(edges) - 1))


def _pieces(edges: Ints, starts: Ints) -> Ints:
    """Return where the runs of integers start that lie in one cell and in one input's piece."""
    between = starts[(starts > edges[0]) & (starts < edges[-1])]
    return np.unique(np.concatenate([edges[:-1], between]))


def _inside(starts: Ints, at: Ints) -> Ints:
    return np.searchsorted(starts, at, side="right") - 1
