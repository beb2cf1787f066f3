"""What densities of readings look like before any report: smooth at a scale the reports choose.

ψ, the logarithm of the density, is a Gaussian process over the cells: linear in a bent coordinate z
of the distance from low, plus a random walk of its slope. Bent coordinates make straight lines of
the usual tails: exponential (bend 1), stretched exponential (½, ¼; a log-normal lies between), and
nearly Pareto (towards 0). No constant has a unit: z is measured in the estimate's own mean, and how
much a density may bend is one of several hypotheses, weighed by how well they predict the reports.
Values that huddle far from low have a place of their own: then hypotheses whose z starts at the
median, in units of the spread about it, are weighed too (a scale family alone would call a narrow
hump impossible, and smooth it).
The random walk is the cubic smoothing spline's prior on uneven knots, its integral lumped per knot.
Sources: METHODS §3 (monotone or parametric tails, smoothing chosen by the data, not a constant);
derived here: the hypotheses and their weights; measured: docs/adaptive-theta.md.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

LEVEL_SPREAD = 100.0  # of ψ: says nothing
_LOOSE = 100 * LEVEL_SPREAD  # of an atom: leaves the level of the rest as it was
ATOM_SPREAD = 2.0  # of the logarithm of an atom's mass about that of an average cell
_STEEPEST, _LESS = 4.0, 3.0  # expected slope −(4 − 3·bend): a tail with a variance, e⁻ᶻ for bend 1


class Shape(NamedTuple):
    """One hypothesis about a density.

    `bend`: exponent of the coordinate; `until`: share of the mass below which the density may bend
    freely; `bulk`, `tail`: standard deviation of the slope's random walk over one unit of z, below
    and above that point; `nugget`: standard deviation of ψ from cell to cell (spikes); `centred`:
    z counts both ways from the median, not from low.
    """

    bend: float
    until: float
    bulk: float
    tail: float
    nugget: float
    centred: bool = False

    @property
    def log_weight(self) -> float:
        """Logarithm of its weight before any report: the looser the tail, the less, in proportion.

        Of tails that fit alike the one that bends less is right more often; with equal weights,
        noise heaped up far out owned some posteriors (docs/adaptive-theta.md).
        """
        return -log(self.tail)


class Gaussian(NamedTuple):
    """A prior of ψ: its mean, precision matrix and the precision's log-determinant."""

    mean: Floats
    precision: Floats
    log_determinant: float


class _Atom(NamedTuple):
    """A cell of free mass: its first value, mean and standard deviation of its mass's logarithm."""

    start: int
    level: float
    spread: float


BENDS = (0.25, 0.5, 1.0)
UNTILS = (0.5, 0.97)
TAILS = (0.3, 1.0, 3.0, 10.0)
BULKS = ((3.0, 0.0), (15.0, 0.0), (50.0, 0.0), (15.0, 0.7), (3.0, 2.0))  # (bulk, nugget)
MIDDLE = 0.5
FAR = 4.0  # a normal law's mean over its standard deviation is then above 3


def hypotheses(bend: float, *, far: bool = False) -> tuple[Shape, ...]:
    """Return every shape of one bend, from stiff to loose; a tail bends no more than the bulk.

    `far`: add the centred ones, without nuggets: a hump is no spike.
    """
    return tuple(
        Shape(bend, until, bulk, tail, nugget, centred)
        for centred in ((False, True) if far else (False,))
        for until in UNTILS
        for bulk, nugget in BULKS
        for tail in TAILS
        if tail <= bulk and not (centred and nugget)
    )


class Prior:
    """The Gaussian priors of all shapes over one grid, made when asked for, once.

    `edges`: of the cells, integers; `scale`: mean distance from low, > 0; `points`: for each
    `until` the distance from low below which that share of the mass lies (0.5: the median);
    `spread`: mean distance from the median, > 0, `scale` unless given.
    """

    def __init__(
        self, edges: Ints, scale: float, points: dict[float, float], spread: float | None = None
    ) -> None:
        """Keep what the shapes share. Cost of each shape: O(cells³), some 0.3 ms."""
        self.edges = edges
        self.log_width: Floats = np.log(np.diff(edges))
        self._away: Floats = (edges[:-1] + edges[1:] - 1) / 2 - edges[0]
        self._scale, self._spread = scale, spread or scale
        self._points = points
        self._made: dict[Shape, Gaussian] = {}
        self._atoms = list[_Atom]()

    def cut(self, edges: Ints, atoms: Ints, level: float, spread: float = ATOM_SPREAD) -> Prior:
        """Return the priors over finer cells, of which those that start at `atoms` hold one each.

        `level`, `spread`: mean and standard deviation of the logarithm of an atom's mass, whatever
        lies around it. Atoms that these priors have already stay what they are.
        """
        finer = Prior(edges, self._scale, self._points, self._spread)
        finer._atoms = self._atoms + [_Atom(int(start), level, spread) for start in atoms]
        return finer

    @property
    def atoms(self) -> Ints:
        """First values of the cells that hold an atom each."""
        return np.array([atom.start for atom in self._atoms], np.int64)

    @property
    def far(self) -> bool:
        """Whether the median lies far from low: 4 times the spread about it."""
        return self._points[MIDDLE] > FAR * self._spread

    def of(self, shape: Shape) -> Gaussian:
        """Return the prior of one shape."""
        if shape not in self._made:
            self._made[shape] = self._make(shape)
        return self._made[shape]

    def _make(self, shape: Shape) -> Gaussian:
        size = len(self._away)
        start, scale = 0.0, self._scale
        if shape.centred:
            start, scale = self._points[MIDDLE], self._spread
        z = ((1 + np.abs(self._away - start) / scale) ** shape.bend - 1) / shape.bend
        step = np.diff(np.copysign(z, self._away - start))
        point = self._points[shape.until]
        slope = _STEEPEST - _LESS * shape.bend
        rows = np.zeros((size + 1, size))
        inner = np.arange(size - 2)
        stiff = np.where(self._away[1:-1] > point, float(shape.tail), float(shape.bulk))
        stiff *= ((step[:-1] + step[1:]) / 2) ** 0.5
        rows[inner, inner] = 1 / step[:-1] / stiff
        rows[inner, inner + 1] = -(1 / step[:-1] + 1 / step[1:]) / stiff
        rows[inner, inner + 2] = 1 / step[1:] / stiff
        at = int(np.clip(np.searchsorted(self._away, max(point, start + scale)), 1, size - 2))
        falls = np.array([-1.0, 1.0]) / (slope / 2)
        rows[-3, at : at + 2] = falls / step[at]
        rows[-2, -2:] = falls / step[-1]  # or a tail that noise turns up would stay so
        rows[-1, at] = 1 / LEVEL_SPREAD
        triangle = np.diag(np.linalg.qr(rows, mode="r"))
        determinant = 2 * float(np.log(np.abs(triangle)).sum())
        plain = Gaussian(-slope * z, rows.T @ rows, determinant)
        rough = self._away <= (point if shape.until > MIDDLE else np.inf)
        if shape.nugget:
            plain = _roughened(plain, shape.nugget, np.flatnonzero(rough))
        return self._with_atoms(plain)

    def _with_atoms(self, plain: Gaussian) -> Gaussian:
        if not self._atoms:
            return plain
        at = np.searchsorted(self.edges, self.atoms)
        level = np.array([atom.level for atom in self._atoms]) - self.log_width[at]
        return _freed(plain, at, level, np.array([atom.spread for atom in self._atoms]))


def _roughened(plain: Gaussian, nugget: float, rough: NDArray[np.intp]) -> Gaussian:
    """Return the prior with independent noise of the rough cells' ψ added (Woodbury's identity).

    e^noise has the mean 1, so that the tail beyond continues the rough cells' average.
    """
    variance, eye, mean = nugget**2, np.eye(len(rough)), plain.mean.copy()
    mean[rough] -= variance / 2
    across = plain.precision[rough]
    lower = cholesky(across[:, rough] + eye / variance, lower=True, check_finite=False)
    explained = solve_triangular(lower, across, lower=True, check_finite=False)
    precision = plain.precision - explained.T @ explained
    bigger = 2 * float(np.log(np.diag(lower)).sum()) + len(eye) * np.log(variance)
    return Gaussian(mean, precision, plain.log_determinant - float(bigger))


def _freed(plain: Gaussian, at: NDArray[np.intp], level: Floats, spread: Floats) -> Gaussian:
    """Return the prior with the ψ of some cells about a level of their own instead.

    Its determinant needs no factor of the precision, which rounding may leave without one: by the
    determinant lemma, as if _LOOSE were without end.
    """
    mean, loose = plain.mean.copy(), _roughened(plain, _LOOSE, at)
    mean[at] = level
    loose.precision[at, at] += spread**-2
    determinant = loose.log_determinant + float(np.log1p((_LOOSE / spread) ** 2).sum())
    return Gaussian(mean, loose.precision, determinant)
