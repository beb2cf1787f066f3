"""ToPS as a stream, and a design for one that nobody knows yet; ε counts as the decimal written.

tops = Tops(epsilon=0.1, ceiling=10_000)
release = tops.push(reading)
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from edge_ldp.checks import exact_integer, optional, taking
from edge_ldp.continual.curator import Curator, CuratorState
from edge_ldp.continual.design import Design, Renewal
from edge_ldp.continual.noise import MAX_SCALE
from edge_ldp.continual.shape import Shape, best_pruning
from edge_ldp.continual.threshold import TUNING, Fixed, NoisyMax, Optimiser, Quantile
from edge_ldp.ratio import Epsilon, exact_epsilon

READINGS = 1 << 16
CHUNK = 1 << 20
FANOUT = 16


@taking(chunk=exact_integer, fanout=exact_integer, pruned=optional(exact_integer))
def tops_design(  # noqa: PLR0913 - the system's parameters, all named
    *,
    epsilon: Epsilon,
    ceiling: int,
    readings: int = READINGS,
    chunk: int = CHUNK,
    fanout: int = FANOUT,
    pruned: int | None = None,
    smoother: str = "recent",
    noise: str = "exponential",
    tuning: int = TUNING,
    theta: int | None = None,
    theta_epsilon: "Epsilon | None" = None,
    renewal: Renewal | None = None,
    missing: str = "gap",
    memory: str = "subtree",
    kind: str = "consistent",
) -> Design:
    """Return ToPS: NM-E (or a public theta), consistent tree, s by eq 7 unless given, smoother.

    theta_epsilon: the choice's own ε, else the stream's. tuning: c of the score, about what a
    reading above θ exceeds it by, in its unit: 60 suits baskets, a thousand suits watts. kind
    "causal": for readings that may react to what was released. Raises ParameterError.
    """
    exact = exact_epsilon(epsilon)
    if pruned is None:
        pruned = best_pruning(fanout, chunk, exact)
    shape = Shape(kind, fanout, chunk, pruned)
    optimiser: Optimiser
    if theta is None:
        own = exact if theta_epsilon is None else exact_epsilon(theta_epsilon)
        optimiser = NoisyMax(ceiling, shape, exact, own, noise, tuning)
    else:
        optimiser = Fixed(theta)
        readings = 0
    return Design(
        optimiser=optimiser,
        shape=shape,
        epsilon=exact,
        ceiling=ceiling,
        readings=readings,
        smoother=smoother,
        renewal=renewal,
        missing=missing,
        memory=memory,
    )


@taking(chunk=exact_integer)
def cold_design(
    *,
    epsilon: Epsilon,
    readings: int,
    ceiling: int | None = None,
    chunk: int = CHUNK,
    share: Fraction = Fraction(995, 1000),
) -> Design:
    """Return ToPS with θ from the unbounded quantile, for a stream that nobody knows yet.

    ceiling: only a bound on what integers can hold, unless one is given. Raises ParameterError.
    """
    exact = exact_epsilon(epsilon)
    shape = Shape("consistent", FANOUT, chunk, best_pruning(FANOUT, chunk, exact))
    most = int(MAX_SCALE * exact / shape.levels)
    return Design(
        optimiser=Quantile(exact, share),
        shape=shape,
        epsilon=exact,
        ceiling=most if ceiling is None else ceiling,
        readings=readings,
    )


class Tops(Curator):
    """ToPS; options as `tops_design`, `draw` and `state` as `Curator`."""

    def __init__(
        self,
        *,
        draw: "Callable[[int], int] | None" = None,
        state: "CuratorState | None" = None,
        **options: Any,
    ) -> None:
        super().__init__(tops_design(**options), draw=draw, state=state)
