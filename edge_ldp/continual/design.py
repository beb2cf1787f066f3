"""Everything public about a curated stream, checked once: its shape, budgets, θ rule, smoother.

And what it has spent, in words that a ledger can print. Event-level: per reading.
"""

from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Final

from edge_ldp.checks import a, exact_integer, integer_in, taking, word
from edge_ldp.continual.chunk import MEMORIES
from edge_ldp.continual.noise import MAX_SCALE
from edge_ldp.continual.shape import Shape
from edge_ldp.continual.smoothers import SMOOTHERS, Smoother
from edge_ldp.continual.threshold import MAX_THETA, Fixed, Optimiser, check_epsilon
from edge_ldp.device.errors import ParameterError

MAX_READINGS = 1 << 26
MISSING: Final = ("gap", "zero")
MODES: Final = ("parallel", "sequential")


@taking(every=integer_in(least=1), mode=word(*MODES))
@dataclass(frozen=True, slots=True)
class Renewal:
    """θ is chosen anew after every `every` chunks.

    "parallel": from the next m readings, which are not released, so each reading pays once;
    "sequential": from the last m readings of the chunk, which pay for both.
    """

    every: int
    mode: str = "parallel"


@taking(
    shape=a("edge_ldp.continual.shape.Shape"),
    ceiling=integer_in(1, MAX_THETA),
    readings=exact_integer,
    smoother=word(*SMOOTHERS),
    missing=word(*MISSING),
    memory=word(*MEMORIES),
)
@dataclass(frozen=True, slots=True)
class Design:
    """How a stream is released; all of it may be published.

    epsilon: of the released stream; the optimiser has its own. readings: m, 0 with a fixed θ only.
    smoother: a name of SMOOTHERS, used when levels are pruned. missing: "gap" or "zero". memory:
    as in `block_noise`; no part of the fingerprint, as releases do not depend on it.
    """

    optimiser: Optimiser
    shape: Shape
    epsilon: Fraction
    ceiling: int
    readings: int
    smoother: str = "recent"
    renewal: Renewal | None = None
    missing: str = "gap"
    memory: str = "subtree"

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if self.shape.scale(self.ceiling, self.epsilon) > MAX_SCALE:
            raise ParameterError("epsilon", "large enough for integer noise: θ·levels/ε ≤ 2**40")
        self._check_readings()

    def _check_readings(self) -> None:
        is_fixed = isinstance(self.optimiser, Fixed)
        low = 0 if is_fixed else 1
        if not low <= self.readings <= MAX_READINGS * (not is_fixed):
            raise ParameterError("readings", f"0 for a fixed θ, else 1..{MAX_READINGS}")
        if isinstance(self.optimiser, Fixed) and self.optimiser.theta > self.ceiling:
            raise ParameterError("theta", "at most the ceiling")
        if self.renewal and is_fixed:
            raise ParameterError("renewal", "None for a fixed θ")
        if self.renewal and self.renewal.mode == "sequential" and self.readings > self.shape.chunk:
            raise ParameterError("readings", "at most a chunk when θ is renewed from it")

    @property
    def epsilon_per_reading(self) -> Fraction:
        """The largest ε that any one reading is released under."""
        if self.renewal and self.renewal.mode == "sequential":
            return self.epsilon + self.optimiser.epsilon
        return max(self.epsilon, self.optimiser.epsilon)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of all parameters that releases depend on."""
        parts = (
            type(self.optimiser).__name__,
            self.optimiser,
            self.shape,
            self.epsilon,
            self.ceiling,
            self.readings,
            self.smoother,
            self.renewal,
            True,  # θ is capped: stored streams' fingerprints say so
            self.missing,
        )
        return sha256(repr(parts).encode()).hexdigest()

    def limit(self, theta: int) -> int:
        """Return θ in 1..ceiling, and never above what integer noise can have."""
        return max(1, min(theta, self.ceiling, int(MAX_SCALE * self.epsilon / self.shape.levels)))

    def make_smoother(self) -> Smoother:
        """Return a smoother at its beginning."""
        return SMOOTHERS[self.smoother]()


@dataclass(frozen=True, slots=True)
class Charge:
    """One rule of spending: so many readings at (epsilon, delta) each, in so many runs."""

    what: str
    epsilon: Fraction
    delta: Fraction
    runs: int
    readings: int


@dataclass(frozen=True, slots=True)
class Account:
    """Spending of a stream: θ's choices, chunks begun, values released."""

    design: Design
    choices: int
    chunks: int
    released: int

    @property
    def charges(self) -> tuple[Charge, ...]:
        """θ's choices, then the chunks: a chunk is charged when it begins, for what it releases."""
        optimiser, readings = self.design.optimiser, self.design.readings
        theta = Charge(
            "theta", optimiser.epsilon, optimiser.delta, self.choices, self.choices * readings
        )
        stream = Charge("stream", self.design.epsilon, Fraction(0), self.chunks, self.released)
        return (theta, stream) if readings else (stream,)

    @property
    def epsilon_per_reading(self) -> Fraction:
        """The most that any reading so far has paid: what its owner should know."""
        return self._worst([charge.epsilon for charge in self.charges if charge.runs])

    @property
    def delta_per_reading(self) -> Fraction:
        """The same for δ; 0 is pure ε."""
        return self._worst([charge.delta for charge in self.charges if charge.runs])

    @property
    def composition(self) -> str:
        """How the charges combine, for people."""
        renewal = self.design.renewal
        if not self.design.readings:
            return "θ is public; every reading is in one chunk"
        if renewal and renewal.mode == "sequential":
            return "readings that θ is renewed from pay for θ and stream; all others once"
        return "parallel: every reading is in one choice of θ or in one chunk, and pays once"

    def _worst(self, paid: list[Fraction]) -> Fraction:
        """Return what a reading pays that is in every run it can be in: one, or θ's and a chunk."""
        renewal = self.design.renewal
        both = renewal and renewal.mode == "sequential" and self.choices > 1
        return sum(paid, Fraction(0)) if both else max(paid, default=Fraction(0))
