"""Has the distribution shifted? A test between what was reported before and what came now.

Is there one density, however rough, that explains both? The density of the old reports alone and
that of all of them are fitted without any prior; the fit's loss, twice the log-likelihood that the
old reports lose plus the deviance of the new ones (up to 16 groups of codes), is chi-squared with
groups − 1 degrees of freedom if nothing has changed (Chow's predictive test, in likelihoods). The
fits are by Fisher scoring, each step a least-squares fit with no mass below 0: two or three steps,
where EM is unfinished after thousands, and an unfinished fit looks like a shift. A value that many
share is not even within its cell, which is no change either: before a shift is told, cells are cut
into an atom's places. What the old surveys could not tell apart is free, so it is no surprise when
a new one does. A slow drift is seen when it has added up; one where the new survey does not look,
later.
Sources: Chow 1960 [recalled]; derived here; false alarms and power: docs/adaptive-theta.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import nnls
from scipy.special import chdtrc

from aggregator.adaptive.atoms import pieces
from aggregator.adaptive.likelihood import Reports, reports_of
from aggregator.errors import NoReportsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from aggregator.estimate.joint import Evidence

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

GROUPS = 16
_CALM = 0.05  # below it the cells are cut: where they are not even, that looks like a shift
_STEPS = 50  # 3 are common
_SHORTEST = 1e-4  # of a step
_PRECISE = 1e-3  # of the log-likelihood
_PATIENCE = 50  # steps of the least squares for each cell
_TINY = 1e-300  # keeps log() finite on the way


def surprise(old: Sequence[Evidence], new: Sequence[Evidence], edges: Ints) -> float:
    """Return the probability of a loss of fit at least this large if nothing has changed, 0..1.

    1 where there is nothing to compare, or where the least squares give up (never seen). Cost:
    10 ms, 0.2 s where a shift is suspected. Raises CountsError.
    """
    chance = _chance(old, new, edges)
    return chance if chance > _CALM else _chance(old, new, pieces(edges))


def _chance(old: Sequence[Evidence], new: Sequence[Evidence], edges: Ints) -> float:
    try:
        before, now = reports_of(old, edges), reports_of(new, edges, GROUPS)
    except NoReportsError:
        return 1.0
    groups = max(1, len(now.counts) - len({part.mechanism for part in new}))
    try:
        lost = _lost(before, now)
    except RuntimeError:  # of nnls: out of patience
        return 1.0
    return float(chdtrc(groups, max(0.0, 2 * lost)))


def _lost(before: Reports, now: Reports) -> float:
    """Return the log-likelihood that one density for both loses against the best for each."""
    both = Reports(
        np.vstack([before.expected, now.expected]), np.concatenate([before.counts, now.counts])
    )
    apart, together = _fitted(before), _fitted(both)
    old = before.counts @ np.log(before.expected @ apart / (before.expected @ together))
    seen = now.counts > 0
    new = now.counts[seen] @ np.log(now.counts[seen] / (now.expected[seen] @ together))
    return float(old + new)


def _fitted(reports: Reports) -> Floats:
    """Return the likeliest masses of the cells."""

    def value(mass: Floats) -> float:
        law = np.maximum(reports.expected @ mass, _TINY)
        return float(reports.counts @ np.log(law) - law.sum())

    cells = reports.expected.shape[1]
    mass = np.full(cells, 1 / cells)
    best = value(mass)
    for _ in range(_STEPS):
        root, patience = np.sqrt(np.maximum(reports.expected @ mass, _TINY)), _PATIENCE * cells
        there, _ = nnls(reports.expected / root[:, None], reports.counts / root, maxiter=patience)
        way, length = there - mass, 1.0
        while (reached := value(mass + length * way)) < best and length > _SHORTEST:
            length /= 2
        if reached <= best + _PRECISE:
            break
        mass, best = mass + length * way, reached
    fitted: Floats = mass / mass.sum()
    return fitted
