"""Has the distribution shifted? A test between what was reported before and what came now.

Is there one density, however rough, that explains both? The density of the old reports alone and
that of all of them are fitted by EM without any prior; the fit's loss, twice the log-likelihood
that the old reports lose plus the deviance of the new ones (up to 16 groups of codes), is
chi-squared with groups − 1 degrees of freedom if nothing has changed (Chow's predictive test, in
likelihoods). A value that many share is not even within its cell, which is no change either: before
a shift is told, cells are cut into an atom's places. What the old surveys could not tell apart is
free, so it is no surprise when a new one does. A slow drift is seen when it has added up; one where
the new survey does not look, later.
Sources: Chow 1960 [recalled]; derived here; false alarms and power: docs/adaptive-theta.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
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
# EM steps, and whether cells are cut: an unfinished or uneven fit looks like a shift, so go on
_LOOKS = ((300, False), (3000, False), (3000, True))
_CALM = 0.05


def surprise(old: Sequence[Evidence], new: Sequence[Evidence], edges: Ints) -> float:
    """Return the probability of a loss of fit at least this large if nothing has changed, 0..1.

    1 where there is nothing to compare; above 0.05 a lower bound. Cost: 30 ms, a second or
    two where a shift is suspected. Raises CountsError.
    """
    chance = 1.0
    for iterations, is_cut in _LOOKS:
        cells = pieces(edges) if is_cut else edges
        try:
            before, now = reports_of(old, cells), reports_of(new, cells, GROUPS)
        except NoReportsError:
            return 1.0
        groups = max(1, len(now.counts) - len({part.mechanism for part in new}))
        chance = float(chdtrc(groups, max(0.0, 2 * _lost(before, now, iterations))))
        if chance > _CALM:
            break
    return chance


def _lost(before: Reports, now: Reports, iterations: int) -> float:
    """Return the log-likelihood that one density for both loses against the best for each."""
    both = Reports(
        np.vstack([before.expected, now.expected]), np.concatenate([before.counts, now.counts])
    )
    even = np.full(before.expected.shape[1], 1 / before.expected.shape[1])
    apart = _fitted(before, even, iterations)
    together = _fitted(both, (apart + even / 100) / 1.01, iterations)
    apart = _fitted(before, apart, iterations)  # as far as the other
    old = before.counts @ np.log(before.expected @ apart / (before.expected @ together))
    seen = now.counts > 0
    new = now.counts[seen] @ np.log(now.counts[seen] / (now.expected[seen] @ together))
    return float(old + new)


def _fitted(reports: Reports, mass: Floats, iterations: int) -> Floats:
    sums = reports.expected.sum(axis=0)
    for _ in range(iterations):
        mass = mass * (reports.expected.T @ (reports.counts / (reports.expected @ mass))) / sums
        mass = np.maximum(mass, 1e-300)
    fitted: Floats = mass / mass.sum()
    return fitted
