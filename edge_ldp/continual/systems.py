"""The published systems as streams: ToPS, PAK, and what lies between.

    tops = Tops(epsilon=0.1, ceiling=10_000)
    release = tops.push(reading)

Each takes `draw=` and `state=` of `Curator`. ε and δ count as the decimals that are written.
"""

from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from edge_ldp.checks import exact_integer, inner_chance, optional, taking
from edge_ldp.continual.columns import MAX_SCALE
from edge_ldp.continual.curator import Curator
from edge_ldp.continual.design import Design, Renewal
from edge_ldp.continual.sensitivity import PAK_BETA, PAK_SHARE, SmoothPercentile
from edge_ldp.continual.shape import Shape, best_pruning
from edge_ldp.continual.threshold import TUNING, Fixed, NoisyMax, Optimiser, Quantile
from edge_ldp.device.errors import ParameterError
from edge_ldp.ratio import Epsilon, exact_epsilon

if TYPE_CHECKING:
    from collections.abc import Callable

    from edge_ldp.continual.state import CuratorState

READINGS = 1 << 16
CHUNK = 1 << 20
FANOUT = 16


Draw: TypeAlias = "Callable[[int], int] | None"
State: TypeAlias = "CuratorState | None"


def _delta(name: str, given: "Epsilon") -> Fraction:
    """Return δ as the rational that was written; raises ParameterError."""
    try:
        number = float(Fraction(given)) if isinstance(given, str) and "/" in given else given
        inner_chance(name, float(number) if isinstance(number, str) else number)
        return Fraction(str(given))
    except (ValueError, ArithmeticError):
        raise ParameterError(name, "a number above 0 and below 1") from None


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


@taking(chunk=exact_integer, fanout=exact_integer, delta=optional(_delta))
def pak_design(  # noqa: PLR0913 - the system's parameters, all named
    *,
    epsilon: Epsilon,
    ceiling: int,
    delta: "Epsilon | None" = None,
    readings: int = READINGS,
    chunk: int = CHUNK,
    fanout: int = 2,
    kind: str = "tree",
    pruned: int = 0,
    noise: str = "laplace",
    is_capped: bool = False,
    missing: str = "gap",
    memory: str = "subtree",
) -> Design:
    """Return PAK: S-PAK's θ, binary tree; (ε, δ) on θ's readings, ε on the stream.

    delta: 1/chunk² unless given. As published θ may exceed the ceiling; is_capped lowers it, which
    costs nothing and helps. Raises ParameterError.
    """
    exact = exact_epsilon(epsilon)
    small = Fraction(1, chunk * chunk) if delta is None else Fraction(delta)
    return Design(
        optimiser=SmoothPercentile(ceiling, exact, small, PAK_SHARE, PAK_BETA, noise),
        shape=Shape(kind, fanout, chunk, pruned),
        epsilon=exact,
        ceiling=ceiling,
        readings=readings,
        is_capped=is_capped,
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
    """ToPS; options as `tops_design`."""

    def __init__(self, *, draw: Draw = None, state: State = None, **options: Any) -> None:
        super().__init__(tops_design(**options), draw=draw, state=state)


class Pak(Curator):
    """PAK; options as `pak_design`."""

    def __init__(self, *, draw: Draw = None, state: State = None, **options: Any) -> None:
        super().__init__(pak_design(**options), draw=draw, state=state)


class NoisyMaxBinary(Curator):
    """NM-E's θ and PAK's binary tree; options as `tops_design`."""

    def __init__(self, *, draw: Draw = None, state: State = None, **options: Any) -> None:
        binary: dict[str, Any] = {"fanout": 2, "pruned": 0, "kind": "tree"}
        super().__init__(tops_design(**{**options, **binary}), draw=draw, state=state)


class PakConsistent(Curator):
    """PAK's θ and ToPS's pruned consistent tree; options as `pak_design`."""

    def __init__(self, *, draw: Draw = None, state: State = None, **options: Any) -> None:
        chunk = options.get("chunk", CHUNK)
        s = best_pruning(FANOUT, chunk, exact_epsilon(options["epsilon"]))
        tree: dict[str, Any] = {"fanout": FANOUT, "pruned": s, "kind": "consistent"}
        super().__init__(pak_design(**{**tree, **options}), draw=draw, state=state)
