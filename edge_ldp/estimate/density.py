"""An estimated density of a stream's values, and what an operator asks of it.

Values are integers. Mass is uniform over the integers of a bucket; an integer v stands for the
readings that round to it, [v − ½, v + ½).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from edge_ldp.checks import DENSITY, MAX_EXACT, MECHANISM, chance, floats, ints, real, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from edge_ldp import Mechanism
    from edge_ldp.arrays import Floats, Ints


_SUM_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Density:
    """Probabilities of cells between edges, in the stream's unit; build it with `density()`.

    Buckets (surveys): cell k holds the integers edges[k] ≤ v < edges[k+1]. Lattice (stream
    reports): cell k holds the mass rounded to lattice point k, edges are the points' midpoints and
    the two ends; moments take the points as atoms, so the mean is unbiased by the rounding.
    `n`: reports it was estimated from; `log_likelihood`: at the estimate, natural log (NaN where
    the estimator has none); `warnings`: what a reader should know before relying on it.
    """

    probabilities: Floats
    edges: Floats
    lattice: bool = False
    n: int = 0
    iterations: int = 0
    log_likelihood: float = float("nan")
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is no density, so that no plan can come from one; raises ParameterError."""
        mass, at = self.probabilities, self.edges
        if mass.ndim != 1 or not mass.size or not np.isfinite(mass).all() or mass.min() < 0:
            raise ParameterError("probabilities", "a list of finite numbers of at least 0")
        if abs(mass.sum() - 1) > _SUM_TOLERANCE:
            raise ParameterError("probabilities", "a sum of 1")
        if at.shape != (len(mass) + 1,) or not np.isfinite(at).all() or (np.diff(at) <= 0).any():
            raise ParameterError("edges", "rising numbers, one more than probabilities")

    def __repr__(self) -> str:
        cells = f"{len(self.probabilities)} {'points' if self.lattice else 'buckets'}"
        first, last = self.edges[0], self.edges[-1]
        return f"<Density [{first:g}, {last:g}) {cells} n {self.n} mean {self.mean():.6g}>"

    @property
    def centres(self) -> Floats:
        """Mean value of each cell."""
        if self.lattice:
            return np.linspace(self.edges[0], self.edges[-1], len(self.probabilities))
        middle: Floats = (self.edges[:-1] + self.edges[1:] - 1) / 2
        return middle

    def mean(self) -> float:
        """Mean, in the stream's unit."""
        return float(self.probabilities @ self.centres)

    def variance(self) -> float:
        """Variance, unit²; of the lattice's points where the density has a lattice."""
        away = self.centres - self.mean()
        within = 0.0 if self.lattice else (np.diff(self.edges) ** 2 - 1) / 12
        return float(self.probabilities @ (away * away + within))

    @taking(p=chance)
    def quantile(self, p: float) -> float:
        """Value below which a share p of the mass lies, linear inside a cell; p in [0, 1]."""
        edges = self._real_edges()
        below = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        k = int(np.clip(np.searchsorted(below, p, side="left") - 1, 0, len(edges) - 2))
        mass = below[k + 1] - below[k]
        inside = (p - below[k]) / mass if mass > 0 else 0.0
        at = edges[k] + min(inside, 1.0) * (edges[k + 1] - edges[k])
        last = self.edges[-1] if self.lattice else self.edges[-1] - 1
        return float(np.clip(at, self.edges[0], last))

    @taking(at=floats)
    def cdf(self, at: ArrayLike) -> Floats:
        """Return the share of the mass below each of `at`, as `range` cuts it: linear in a cell.

        Raises ParameterError for NaN.
        """
        below = np.concatenate([[0.0], np.cumsum(self.probabilities)])
        return np.asarray(np.interp(np.asarray(at), self.edges, below / below[-1]))

    @taking(lo=real, hi=real)
    def range(self, lo: float, hi: float) -> float:
        """Share of the values v with lo ≤ v < hi (half-open), uniform inside a cell."""
        if not lo <= hi:
            raise ParameterError("lo, hi", "lo <= hi")
        overlap = np.minimum(self.edges[1:], hi) - np.maximum(self.edges[:-1], lo)
        share = np.maximum(overlap, 0) / np.diff(self.edges)
        return float(min(self.probabilities @ share, 1.0))

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each cell: its edges `left` and `right`, `centre`, and `probability`.

        Raises ImportError without pandas.
        """
        try:
            import pandas as pd  # noqa: PLC0415 (for those who have it)
        except ImportError as exc:
            raise ImportError("Density.to_frame needs pandas: pip install pandas") from exc
        columns = {
            "left": self.edges[:-1],
            "right": self.edges[1:],
            "centre": self.centres,
            "probability": self.probabilities,
        }
        return pd.DataFrame(columns)

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draw the probability of a unit's width over the stream's unit; return the axes.

        `ax`: where to draw, a new figure unless given; `style`: as for Axes.stairs. Raises
        ImportError without Matplotlib.
        """
        if ax is None:
            try:
                from matplotlib import pyplot as plt  # noqa: PLC0415 (for those who have it)
            except ImportError as exc:
                raise ImportError("Density.plot needs Matplotlib: pip install matplotlib") from exc
            ax = plt.subplots()[1]
        ax.stairs(self.probabilities / np.diff(self.edges), self.edges, **style)
        ax.set(xlabel="value", ylabel="probability per unit")
        return ax

    def _real_edges(self) -> Floats:
        """Edges on the real line: an integer v covers [v − ½, v + ½)."""
        return self.edges if self.lattice else self.edges - 0.5


@taking(probabilities=floats, edges=floats)
def density(  # noqa: PLR0913 (one value object's fields)
    probabilities: ArrayLike,
    edges: ArrayLike,
    *,
    lattice: bool = False,
    n: int = 0,
    iterations: int = 0,
    log_likelihood: float = float("nan"),
    warnings: tuple[str, ...] = (),
) -> Density:
    """Return the Density, its arrays frozen copies.

    Raises ParameterError unless probabilities are finite, not negative and add up to 1 (to 1e-6;
    the rest is divided out), and edges rise and are one more.
    """
    mass = np.array(probabilities, dtype=np.float64)
    at = np.array(edges, dtype=np.float64)
    made = Density(mass, at, lattice, n, iterations, log_likelihood, warnings)
    mass /= mass.sum()
    mass.setflags(write=False)
    at.setflags(write=False)
    return made


def category_edges(size: int, edges: ArrayLike | None = None) -> Floats:
    """Return `edges` as size + 1 floats, or those of the categories 0..size−1; checks the number.

    Raises ParameterError.
    """
    if edges is None:
        return np.arange(size + 1, dtype=np.float64)
    at: Floats = floats("edges", edges)
    if at.shape != (size + 1,):
        raise ParameterError("edges", f"{size + 1} rising numbers")
    return at


@taking(mechanism=MECHANISM)
def edges_of(mechanism: Mechanism) -> Floats:
    """Return the edges of the cells that a mechanism's inputs stand for, length size + 1."""
    low, high, size = mechanism.low, mechanism.high, mechanism.size
    if mechanism.encoder == BUCKETS:
        whole, rest = divmod(high - low + 1, size)  # apart, so that no product wraps
        at = np.arange(size + 1, dtype=np.int64)
        return (low + at * whole - (-at * rest // size)).astype(np.float64)
    points = np.linspace(low, high, size)
    return np.concatenate([points[:1], (points[:-1] + points[1:]) / 2, points[-1:]])


def empty_runs(mass: Floats, below: float, run: int) -> Ints:
    """Return where the runs of `run` or more estimates under `below` start, above the mode."""
    mode = int(np.argmax(mass))
    small = np.concatenate([[0], np.cumsum(mass[mode + 1 :] < below)])
    empty = small[run:] - small[:-run] == run
    starts: Ints = mode + 1 + np.flatnonzero(empty & ~np.append(False, empty)[:-1])
    return starts


def cut_off(density: Density, start: int) -> Density:
    """Return the density without its buckets from `start` on, renormalised by a factor."""
    kept = density.probabilities.copy()
    kept[start:] = 0
    kept /= kept.sum()
    kept.setflags(write=False)
    return replace(density, probabilities=kept)


@taking(density=DENSITY, thetas=ints)
def bias(density: Density, thetas: ArrayLike) -> Floats:
    """Return b̂(θ) = Σ_{t>θ} f_t·(t − θ), what truncation at each integer θ takes off the mean."""
    check_buckets(density)
    theta = np.asarray(thetas, np.int64)
    f, edges = density.probabilities, density.edges
    k = _bucket(edges, theta)
    mass = _suffix(f)[k + 1]
    first = _suffix(f * density.centres)[k + 1]
    above = np.clip(edges[k + 1] - 1 - theta, 0, edges[k + 1] - edges[k])  # its integers above θ
    inside = f[k] * above * (above + 1) / 2 / (edges[k + 1] - edges[k])
    cut: Floats = np.where(theta < edges[0], density.mean() - theta, first - theta * mass + inside)
    return cut


@taking(density=DENSITY, thetas=ints)
def mean_square(density: Density, thetas: ArrayLike) -> Floats:
    """Return E(min(value, θ)²) for each integer θ, unit²."""
    theta = np.asarray(thetas, np.int64)
    f, edges = density.probabilities, density.edges
    width = edges[1:] - edges[:-1]
    whole = np.concatenate([[0.0], np.cumsum(f * _squares(edges[:-1], width) / width)])
    k = _bucket(edges, theta)
    kept = np.clip(theta + 1 - edges[k], 0, width[k])  # its integers up to θ
    inside = f[k] / width[k] * (_squares(edges[k], kept) + (width[k] - kept) * theta**2.0)
    above = _suffix(f)[k + 1]
    square: Floats = whole[k] + inside + above * theta**2.0
    return square


def check_buckets(density: Density) -> None:
    """Refuse a density that θ is not chosen by; raises ParameterError."""
    if density.lattice or max(-density.edges[0], density.edges[-1]) > MAX_EXACT:
        raise ParameterError(
            "density", "buckets over the whole range, from survey reports, within 2**53"
        )


def _bucket(edges: Floats, theta: Ints) -> Ints:
    return np.clip(np.searchsorted(edges, theta, side="right") - 1, 0, len(edges) - 2)


def _suffix(x: Floats) -> Floats:
    """Return Σ_{k ≥ i} x_k for i = 0..len(x)."""
    return np.concatenate([np.cumsum(x[::-1])[::-1], [0.0]])


def _squares(start: Floats, count: Floats) -> Floats:
    """Return Σ t² over the `count` integers from `start` on."""
    sums = count * (count - 1) / 2
    squares: Floats = start * start * count + 2 * start * sums + sums * (2 * count - 1) / 3
    return squares
