"""Intervals where homes report at the same time of day for weeks: wider, by what that costs.

Where a window's schedule walks badly (`edge_ldp.protocol.schedule`), a home's reports repeat each
other: which slots they are in makes the mean vary by the design effect times what independent slots
would. Of that, `edge_ldp.sums.means` counts once; the rest is added here. It goes by the variance
of the values, of which surveys tell without a bias; its upper end counts, and never more than a
mean between its ends and the range allow (Bhatia and Davis 2000). What each mechanism adds is
independent, whatever the schedule. Source: docs/methods.md, Windows.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import hypot
from statistics import NormalDist

import numpy as np

from edge_ldp.sums.counted import Epoch, estimate
from edge_ldp.sums.functionals import design_of
from edge_ldp.sums.means import MeanEstimate


def widened(
    found: MeanEstimate, epochs: Sequence[Epoch], *, effect: float, ceiling: int
) -> MeanEstimate:
    """Return the mean of these epochs with an interval that counts a design effect above 1.

    `ceiling`: the largest value considered possible. Cost: O(codes).
    """
    if effect <= 1 or not epochs:
        return found
    z = NormalDist().inv_cdf((1 + found.level) / 2)
    low = min(epoch.survey.mechanism.low for epoch in epochs)
    variance = _most(found, epochs, low, ceiling, z)
    more = z * ((effect - 1) * variance / (found.n + found.surveys)) ** 0.5
    return replace(
        found,
        low=max(low, found.mean - hypot(max(0.0, found.mean - found.low), more)),
        high=min(ceiling, found.mean + hypot(max(0.0, found.high - found.mean), more)),
    )


def _most(found: MeanEstimate, epochs: Sequence[Epoch], low: int, ceiling: int, z: float) -> float:
    """Return the upper end of the values' variance."""
    middle = float(np.clip((low + ceiling) / 2, found.low, found.high))
    most = max(0.0, (middle - low) * (ceiling - middle))
    value = square = total = 0.0  # epochs are independent
    for survey in (epoch.survey for epoch in epochs):
        mechanism, counts = survey.mechanism, survey.checked()
        if (mechanism.low, mechanism.high) == (low, ceiling) and counts.any():
            design = design_of(mechanism)
            squares = (design.centres - found.mean) ** 2 + (np.diff(design.edges) ** 2 - 1) / 12
            one = estimate(design.weights(squares), design.law, counts)
            total += one.n
            value += one.n * one.value
            square += (one.n * one.se) ** 2
    return float(np.clip((value + z * square**0.5) / total, 0.0, most)) if total else most
