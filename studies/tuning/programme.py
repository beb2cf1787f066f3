"""The linear programme of an optimal unbiased table, and the descent to good outputs.

For fixed outputs the best probabilities are one linear programme (SciPy HiGHS). It is solved again
with small shifts of the outputs as further unknowns, products linearised, for as long as that
helps. Floats only: `studies.tuning.tables` makes certified integers of the result. Sources:
docs/methods.md, Optimal tables; Chaudhuri, Guo, Rabbat, UAI 2022 (arXiv 2203.08134); the descent is
ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_PER_CELL = 8  # points of a cell whose variance is bounded; the top may lie h²/256 above
_LEAST = 2.0**-16  # smallest probability of a code, in units of 1/(E+1): none is impossible
_LEAST_GAP = 0.01  # between outputs, in units of (E+1)/(E−1)
_TIE = 1e-6  # weight added to every knot: rows that the density leaves out are decided too
_TRUST, _LEAST_TRUST, _GAIN = 0.05, 1e-3, 1e-5  # of outputs, in their units; of cost
_TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-9}


@dataclass(frozen=True, slots=True, eq=False)
class DualPoint:
    """A solution: P = least/(E+1) + g·excess for outputs/g on [-1, 1], g = (E−1)/(E+1).

    So scaled, every number is about 1 whatever ε is. Shapes: outputs, least (codes,), excess
    (rows, codes). `cost`: variance · g² (worst case), or expected square · g² (with weights).
    """

    cost: float
    outputs: Floats
    least: Floats
    excess: Floats


@dataclass(frozen=True, eq=False)
class Programme:
    """The programme of one ratio E > 1 and size; build it with `programme()`.

    By symmetry only the first `rows` knots and the first codes have unknowns: `mirror` (knots,)
    and `fold` (codes,) say which one stands for each, `sign` whether its shift is turned round.
    Unknowns: least, excess row by row, second moments, worst variance, shifts of the outputs.
    """

    ratio: float
    weights: Floats | None
    mirror: NDArray[np.intp]
    fold: NDArray[np.intp]
    sign: Floats

    @property
    def rows(self) -> int:
        """Knots that have unknowns of their own."""
        return int(self.mirror.max()) + 1

    @property
    def own(self) -> int:
        """Codes that have unknowns of their own."""
        return int(self.fold.max()) + 1

    @property
    def gain(self) -> float:
        """The factor g = (E−1)/(E+1)."""
        return (self.ratio - 1) / (self.ratio + 1)

    def probabilities(self, point: DualPoint) -> Floats:
        """Return P of the first `rows` knots, shape (rows, codes)."""
        law: Floats = point.least / (self.ratio + 1) + self.gain * point.excess
        return law

    def at(self, outputs: Floats) -> DualPoint | None:
        """Return the best table with exactly these outputs; None if there is none."""
        none = np.zeros(len(outputs))
        return self._solve(DualPoint(0, outputs, none, np.zeros((self.rows, len(none)))), 0)

    def descend(self, outputs: Floats) -> DualPoint | None:
        """Return the best table that small steps from these outputs lead to.

        A step moves no output by more than the trust, and is taken only if the programme at the
        new outputs is better. Cost: about 30 programmes.
        """
        here, trust = self.at(outputs), _TRUST
        while here and trust >= _LEAST_TRUST:
            step = self._solve(here, trust)
            there = self.at(step.outputs) if step else None
            if step and there and there.cost < here.cost * (1 - _GAIN):
                as_promised = here.cost - there.cost > (here.cost - step.cost) / 2
                here, trust = there, trust * (1.5 if as_promised else 1)
            else:
                trust /= 3
        return here

    def _solve(self, around: DualPoint, trust: float) -> DualPoint | None:
        """Solve with outputs shifted by at most `trust`, their products linear about a point."""
        own, rows, codes = self.own, self.rows, len(self.fold)
        ends = np.cumsum([own, rows * codes, rows, 1, own])
        equal, wanted = self._equations(around)
        apart = np.maximum(np.diff(around.outputs) - _LEAST_GAP, 0)
        _, at = self._between()
        most = np.concatenate([np.zeros(rows * codes), apart, (self.gain * at) ** 2])
        cost = np.zeros(ends[-1])
        if self.weights is None:
            cost[ends[2]] = 1
        else:
            cost[ends[1] : ends[2]] = np.bincount(self.mirror, self.weights + _TIE)
        bounds = np.column_stack([np.zeros(ends[-1]), np.full(ends[-1], np.inf)])
        bounds[:own, 0] = _LEAST
        bounds[ends[3] :] = -trust, trust
        done = scipy.optimize.linprog(
            cost, self.limits, most, equal, wanted, bounds, options=_TOLERANCES
        )
        if done.status != 0:
            return None
        least, excess, _, _, shifts = np.split(done.x, ends[:-1])
        outputs = around.outputs + self.sign * shifts[self.fold]
        return DualPoint(done.fun, outputs, least[self.fold], excess.reshape(rows, codes))

    def _equations(self, around: DualPoint) -> tuple[scipy.sparse.csr_array, Floats]:
        """Each row's total is 1, its mean the knot, its square the unknown that stands for it."""
        y, e, g, rows = around.outputs, self.ratio, self.gain, self.rows
        law, ones = self.probabilities(around), np.ones(len(y))

        def block(by_law: Floats, squares: Floats, shifts: Floats) -> Floats:
            least = np.tile(np.bincount(self.fold, by_law) / (e + 1), (rows, 1))
            excess = np.kron(np.eye(rows), by_law * g)
            return np.hstack([least, excess, squares, np.zeros((rows, 1)), shifts])

        none, turned = np.zeros((rows, rows)), self._turned
        total = block(ones, none, np.zeros((rows, self.own)))
        mean = block(y / g, none, law / g @ turned)
        square = block(y * y, -np.eye(rows), 2 * law * y @ turned)
        places = np.linspace(-1, 1, len(self.mirror))[:rows]
        wanted = np.concatenate([np.ones(rows), places, np.zeros(rows)])
        return scipy.sparse.csr_array(np.vstack([total, mean, square])), wanted

    @cached_property
    def limits(self) -> scipy.sparse.csr_array:
        """Excess ≤ least; outputs stay apart; variance below the worst at points of every cell."""
        codes, columns = len(self.fold), self.rows * len(self.fold)
        unfold = np.eye(self.own)[self.fold]
        least = scipy.sparse.csr_array(np.tile(-unfold, (self.rows, 1)))
        gaps = scipy.sparse.csr_array(-np.diff(self._turned, axis=0))
        squares, at = self._between()
        worst = scipy.sparse.csr_array(np.full((len(at), 1), -1.0))
        blocks = [
            [least, scipy.sparse.eye_array(columns), None, None, None],
            [None, scipy.sparse.csr_array((codes - 1, columns)), None, None, gaps],
            [None, None, squares, worst, None],
        ]
        return scipy.sparse.csr_array(scipy.sparse.block_array(blocks))

    @property
    def _turned(self) -> Floats:
        """What a shift of each own output does to each output, shape (codes, own)."""
        shifts: Floats = self.sign[:, None] * np.eye(self.own)[self.fold]
        return shifts

    def _between(self) -> tuple[scipy.sparse.csr_array, Floats]:
        """Interpolation of second moments at several points of every cell, and their places."""
        last = len(self.mirror) - 1
        points = np.arange(last * _PER_CELL + 1)
        cell = np.minimum(points // _PER_CELL, last - 1)
        share = points / _PER_CELL - cell
        rows = np.tile(np.arange(len(points)), 2)
        ends = self.mirror[np.concatenate([cell, cell + 1])]
        weights = (np.concatenate([1 - share, share]), (rows, ends))
        return scipy.sparse.csr_array(weights, (len(points), self.rows)), points * 2 / points[
            -1
        ] - 1


def programme(ratio: float, knots: int, codes: int, weights: Floats | None) -> Programme:
    """Return the programme for a ratio E > 1: least worst variance, or expected under weights.

    Weights: (knots,). Symmetric, P(y|x) = P(−y|−x), unless the weights are not.
    """
    knot, code = np.arange(knots), np.arange(codes)
    if weights is not None and not np.allclose(weights, weights[::-1], rtol=1e-9, atol=1e-12):
        return Programme(ratio, weights, knot, code, np.ones(codes))
    sign = np.where(code < codes - 1 - code, 1.0, -1.0)
    mirror, fold = np.minimum(knot, knot[::-1]), np.minimum(code, code[::-1])
    return Programme(ratio, weights, mirror, fold, sign)
