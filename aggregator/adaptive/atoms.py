"""Atoms: single values that a share of all readings has, found one after the other.

A cell is taken to be even, so one value is smeared over it, and the kink of θ's cost at that value
is lost. Where a point mass raises the likelihood most is seen from the likelihood's derivative
towards it, less what the smooth density could do as well (the efficient score). The best place is
taken in while the evidence rises by more than the price of naming one place of them all, and left
out again if the reports do not tell its place: then it is a smear, which hypotheses know already.
The hypotheses are fitted with and without the atoms: with them, an atom's piece of a cell is a cell
of its own, whose mass does not go by what lies around it; draws of the density put it at places by
their probabilities, and leave the rest where it was.
Sources: Lindsay 1983, the directional derivative of mixture likelihoods [recalled]; derived here:
the price, the places' probabilities; measured: docs/adaptive-theta.md.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.special import entr, logsumexp

from aggregator.adaptive.fit import Target, fit
from aggregator.adaptive.likelihood import Reports, reports_of
from aggregator.adaptive.regret import PER_CELL
from aggregator.adaptive.shape import ATOM_SPREAD, Gaussian, Prior
from aggregator.estimate.joint import PER_OCTAVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from aggregator.adaptive.fit import Fit
    from aggregator.adaptive.shape import Shape
    from aggregator.estimate.joint import Evidence

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MOST = 8  # atoms
GROUPS = 256  # of codes: a wave's edges tell an atom's place finer than its window is wide
LOOSE = 2 * (2 ** (1 / PER_OCTAVE) - 1)  # of the distance from low: two cells, not cut
MOST_MASS = 0.5  # of one atom, or it is the law itself
_UNLIKELY = 1e-3  # places with less of the likeliest one's probability are left out


class Atoms(NamedTuple):
    """Where atoms are: `at`, their likeliest places among the pieces between `edges`, rising.

    `chances`: pieces × atoms, the probability of each place; `masses`: of the atoms; `price`: what
    naming the places costs of the evidence.
    """

    edges: Ints
    at: NDArray[np.intp]
    chances: Floats
    masses: Floats
    price: float

    @property
    def starts(self) -> Ints:
        """First value of each atom's likeliest piece."""
        starts: Ints = self.edges[self.at]
        return starts

    def cut(self, edges: Ints) -> Ints:
        """Return the edges with a cell for each atom, at its likeliest place."""
        return np.unique(np.concatenate([edges, self.starts, self.edges[self.at + 1]]))

    def finest(self, edges: Ints) -> Ints:
        """Return the edges with a cell for each place where an atom may be."""
        places = np.flatnonzero(self.chances.any(axis=1))
        return np.unique(np.concatenate([edges, self.edges[places], self.edges[places + 1]]))

    def placed(self, samples: Floats, edges: Ints, rng: np.random.Generator) -> Floats:
        """Return the draws over `edges` (by `finest`), each atom at one of its places at random."""
        moved, columns = samples.copy(), np.arange(samples.shape[1])
        for place, chances in zip(self.at, self.chances.T, strict=True):
            home = np.searchsorted(edges, self.edges[place])
            drawn = rng.choice(len(chances), size=len(columns), p=chances)
            moved[home] -= samples[home]
            moved[np.searchsorted(edges, self.edges[drawn]), columns] += samples[home]
        return np.maximum(moved, 0)


class _Overlaid(Prior):
    """A prior of one shape with atoms behind the cells, each about as heavy as a cell."""

    def __init__(self, prior: Prior, shape: Shape, count: int) -> None:
        plain, size = prior.of(shape), len(prior.log_width)
        mean = np.append(plain.mean, np.full(count, -np.log(size)))
        precision = np.eye(size + count) / ATOM_SPREAD**2
        precision[:size, :size] = plain.precision
        determinant = plain.log_determinant - 2 * count * log(ATOM_SPREAD)
        self._made = {shape: Gaussian(mean, precision, determinant)}
        self.log_width: Floats = np.append(prior.log_width, np.zeros(count))


class _Search:
    """The reports under a smooth density with atoms at some of all places."""

    def __init__(self, evidence: Sequence[Evidence], edges: Ints, smooth: Fit) -> None:
        self.edges, self.smooth = pieces(edges), smooth
        self.reports = reports_of(evidence, edges, GROUPS)
        self.there = reports_of(evidence, self.edges, GROUPS).expected
        self.places = self.there.shape[1]

    def fitted(self, at: Sequence[int], psi: Floats) -> Fit:
        """Return the fit with atoms at these places, from ψ of the cells and then of the atoms."""
        old = self.smooth.target
        both = np.hstack([self.reports.expected, self.there[:, np.array(at, dtype=np.intp)]])
        prior = _Overlaid(old.priors, old.shape, len(at))
        return fit(Target(Reports(both, self.reports.counts), prior, old.shape), psi)

    def gains(self, found: Fit) -> tuple[Floats, Floats]:
        """Return what an atom at each place would gain of the log-likelihood, and its mass."""
        pull, told = found.scores(self.there)
        return np.where(pull > 0, pull * pull / told / 2, 0), np.maximum(pull, 1) / told

    def chances(self, found: Fit, at: Sequence[int], which: int) -> Floats:
        """Return the probabilities of the places around one atom's own, the rest following."""
        mass = float(np.exp(found.psi[len(found.psi) - len(at) + which]))
        pull, told = found.scores(mass * (self.there - self.there[:, [at[which]]]))
        gains = pull - told / 2
        near = _hill(gains, at[which])
        chances = np.zeros_like(gains)
        chances[near] = np.exp(gains[near] - gains[near].max())
        chances /= chances.sum()
        return chances


def atoms_in(evidence: Sequence[Evidence], edges: Ints, smooth: Fit) -> Atoms | None:
    """Return the atoms that the reports ask for beside a smooth density over cells, if any.

    `smooth`: a fit of the same reports over `edges`, without them. Cost: 20 ms if there are none,
    some 20 ms for each.
    """
    search = _Search(evidence, edges, smooth)
    at, best = list[int](), search.fitted([], smooth.psi)
    while len(at) < MOST:
        gains, masses = search.gains(best)
        new = int(gains.argmax())
        price = log(search.places) - float(logsumexp(gains - gains[new]))
        if gains[new] < price:
            break
        tried = search.fitted([*at, new], np.append(best.psi, np.log(masses[new])))
        if tried.evidence < best.evidence + price:
            break
        at, best = [*at, new], tried
    return _placed(search, best, at)


def _placed(search: _Search, best: Fit, at: list[int]) -> Atoms | None:
    """Return the atoms at the likeliest of their places, without those that might be anywhere."""
    for which in range(len(at)):
        new = int(search.chances(best, at, which).argmax())
        if new not in at:
            at[which] = new
            best = search.fitted(at, best.psi)
    while at:
        chances = np.stack([search.chances(best, at, k) for k in range(len(at))], axis=1)
        masses = np.exp(best.psi[len(best.psi) - len(at) :])
        if (gone := _no_atom(search.edges, at, chances, masses)) is None:
            order = np.argsort(at)
            price = float((log(search.places) - entr(chances).sum(axis=0)).sum())
            return Atoms(search.edges, np.array(at)[order], chances[:, order], masses[order], price)
        psi = np.delete(best.psi, len(best.psi) - len(at) + gone)
        del at[gone]
        best = search.fitted(at, psi)
    return None


def _no_atom(edges: Ints, at: list[int], chances: Floats, masses: Floats) -> int | None:
    """Return which is none: it might be anywhere, is beside a heavier one, or is all there is."""
    away = (edges[np.array(at) + 1] - edges[0]).astype(np.float64)
    loose = np.exp(entr(chances).sum(axis=0) + np.log(np.diff(edges)) @ chances) / away
    if loose.max() > LOOSE:
        return int(loose.argmax())
    if masses.max() > MOST_MASS:
        return int(masses.argmax())
    beside = np.abs(np.log(away[:, None] / away)) < LOOSE
    lighter = np.flatnonzero((beside & (masses[:, None] < masses)).any(axis=1))
    return int(lighter[masses[lighter].argmin()]) if len(lighter) else None


def _hill(gains: Floats, home: int) -> NDArray[np.bool_]:
    """Return which places lie on the hill that rises from `home`, down to the unlikely ones."""
    top, last = home, -1
    while top != last:
        last, around = top, np.arange(max(0, top - 1), min(len(gains), top + 2))
        top = int(around[gains[around].argmax()])
    low = np.flatnonzero(gains < gains[top] + log(_UNLIKELY))
    left, right = low[low < top].max(initial=-1), low[low > top].min(initial=len(gains))
    places = np.arange(len(gains))
    hill: NDArray[np.bool_] = (places > left) & (places < right)
    return hill


def pieces(edges: Ints) -> Ints:
    """Return the edges with every cell cut into 8, or into single values: an atom's places."""
    parts = np.linspace(edges[:-1], edges[1:], PER_CELL, endpoint=False).round()
    return np.unique(np.append(parts, edges[-1])).astype(np.int64)


def spread(samples: Floats, edges: Ints, finer: Ints) -> Floats:
    """Return the masses over `finer` edges of densities that are even in the cells of `edges`."""
    cell = np.searchsorted(edges, finer[:-1], side="right") - 1
    masses: Floats = samples[cell] * (np.diff(finer) / np.diff(edges)[cell])[:, None]
    return masses
