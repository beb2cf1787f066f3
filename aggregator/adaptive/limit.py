"""What information allows: how near to the best cost a choice of θ can be expected to come.

θ̂ solves cost′(θ) = 0, and cost′ depends on the density through b(θ)·S(θ) alone (S: share above θ).
To second order the expected excess is Var(cost′)/(2·cost″), and Cramér and Rao bound that variance
from below by gᵀJ⁻¹g, J the joint Fisher information of all surveys at the true density about how
much it is higher or lower in each block of cells (`block`; the shape inside a block is taken for
known, as finer detail can hardly be told apart from reports). With equal ranges R the bound goes
with (√(r/2m)·R/θ)², DESIGN §7. A procedure that knows more is not bound by it: with a prior, J
grows by the prior's precision (van Trees), and the bound says what smoothness may buy.
Sources: Cramér–Rao and van Trees inequalities; DESIGN §7 (cost); derived here.
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

BLOCK = 4  # cells: half an octave
_RIDGE = 1e-12  # of the information: the result stays a lower bound where there is none


def excess(  # noqa: PLR0913 (the quantities of one formula)
    masses: Floats,
    edges: Ints,
    aim: Aim,
    surveys: Sequence[tuple[Mechanism, float]],
    *,
    prior: Floats | None = None,
    block: int = BLOCK,
) -> float:
    """Return the least expected excess of the cost over the best, relative, to second order.

    `masses`: true ones of the cells; `surveys`: mechanisms and numbers of reports; `prior`:
    precision of ψ (log-density), cells × cells, or None: nothing but the blocks is assumed. Above
    about 1 the expansion fails: then it only says that reports alone do not settle θ.
    """
    costs = costs_on(edges, aim)
    values = costs.of(masses)
    at = int(np.clip(values.argmin(), 1, len(values) - 2))
    theta = costs.thetas[at - 1 : at + 2].astype(float)
    curvature = 2 * np.polyfit(theta - theta[1], values[at - 1 : at + 2], 2)[0]
    above = np.clip(edges[1:] - 1 - theta[1], 0, np.diff(edges)) / np.diff(edges)
    cut = costs.cut[at]
    slope = 2 * costs.weights[1] * (above * (cut @ masses) + cut * (above @ masses))
    outward = (slope - slope @ masses) * masses  # along a relative change of each cell
    information = _information(masses, edges, surveys)
    if prior is None:
        starts = np.arange(0, len(masses), block)
        outward = np.add.reduceat(outward, starts)
        information = np.add.reduceat(np.add.reduceat(information, starts, 0), starts, 1)
    else:
        information = information + prior
    information += _RIDGE * np.trace(information) / len(information) * np.eye(len(information))
    variance = outward @ np.linalg.solve(information, outward)
    return float(variance / (2 * curvature * values[at]))


def _information(masses: Floats, edges: Ints, surveys: Sequence[tuple[Mechanism, float]]) -> Floats:
    """Return the Fisher information about relative changes of the cells' masses."""
    total = np.zeros((len(masses), len(masses)))
    for mechanism, reports in surveys:
        rows = rows_of(mechanism, edges).matrix * masses
        law = rows.sum(axis=1)
        rows, law = rows[law > 0], law[law > 0]
        total += reports * (rows.T / law) @ rows
    return total
