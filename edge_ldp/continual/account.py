"""What a curated stream has spent, in words that a ledger can print. Event-level: per reading."""

from dataclasses import dataclass
from fractions import Fraction

from edge_ldp.continual.design import Design


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
