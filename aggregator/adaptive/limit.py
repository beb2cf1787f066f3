"""What information allows: the least expected excess of the cost that any rule can reach.

The bound is a Bayes risk. Let the density be the true one times a broken line, on a log scale, with
a knot every half octave and the knots' heights independent normal with mean 0 (`doubt`: their
standard deviation). A rule that knew all this, the finer shape and the true density included, would
still be left with the doubt that the surveys leave; no rule has a smaller expected excess on
average over these densities, whatever it assumes. What surveys tell about the heights is their
Fisher information at the true density (a normal approximation: the likelihood's curvature there
stands for all of them), so after them the heights are normal again; costs are exact. With little
doubt the bound goes with (√(r/2m)·range/θ)² times what a bias weighs at θ (DESIGN §7).
Sources: Bayes risk as a bound (van Trees' inequality is its local form); derived here; measured:
docs/adaptive-theta.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from aggregator.adaptive.likelihood import rows_of
from aggregator.adaptive.regret import costs_on

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from aggregator.adaptive.regret import Aim
    from edge_ldp import Mechanism

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Surveys = Sequence[tuple[Mechanism, float]]

BLOCK = 4  # cells: half an octave
DOUBT = float(np.log(4))  # a factor of 4 either way
CENTRES, DRAWS = 64, 256


def excess(  # noqa: PLR0913 (the quantities of one statement)
    masses: Floats,
    edges: Ints,
    aim: Aim,
    surveys: Surveys,
    *,
    rng: np.random.Generator,
    doubt: float = DOUBT,
) -> float:
    """Return the least expected excess of the cost over the best, relative (0.1: 10 % dearer).

    `masses`: true ones of the cells; `surveys`: mechanisms and numbers of reports, taken as given
    (none: what is lost without any); `doubt`: standard deviation of ln density at each knot before
    the surveys, > 0. `rng` draws densities. Cost: 0.1 s; Monte Carlo error some 5 % of the result.
    """
    costs = costs_on(edges, aim)
    hats = _hats(len(masses))
    inwards = hats - masses @ hats  # heights change a density that still adds up to 1
    told = inwards.T @ _information(masses, edges, surveys) @ inwards
    before = np.eye(len(told)) * doubt**2
    after = np.linalg.inv(told + np.linalg.inv(before))
    learnt, axes = np.linalg.eigh(before - after)
    reach, left = axes * np.sqrt(np.maximum(learnt, 0)), np.linalg.cholesky(after)
    total = 0.0
    for _ in range(CENTRES):
        centre = reach @ rng.standard_normal(len(told))
        heights = centre[:, None] + left @ rng.standard_normal((len(told), DRAWS))
        others = masses[:, None] * np.exp(hats @ heights)
        dear = costs.of(others / others.sum(axis=0))
        total += float((dear / dear.min(axis=0) - 1).mean(axis=1).min())
    return total / CENTRES


def _hats(cells: int) -> Floats:
    """Return the broken lines with one knot raised by 1, cells × knots."""
    knots = np.append(np.arange(0, cells - 1, BLOCK), cells - 1)
    lines = [np.interp(np.arange(cells), knots, raised) for raised in np.eye(len(knots))]
    return np.stack(lines, axis=1)


def _information(masses: Floats, edges: Ints, surveys: Surveys) -> Floats:
    """Return the Fisher information about relative changes of the cells' masses."""
    total = np.zeros((len(masses), len(masses)))
    for mechanism, reports in surveys:
        rows = rows_of(mechanism, edges).matrix * masses
        law = rows.sum(axis=1)
        rows, law = rows[law > 0], law[law > 0]
        total += reports * (rows.T / law) @ rows
    return total
