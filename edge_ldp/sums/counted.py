"""Reports of a stream counted by code, each standing for one value or for a weight of them."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edge_ldp.arrays import Floats
from edge_ldp.checks import MECHANISM, a, chance, each, floats, integer_in, optional, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms import Mechanism
from edge_ldp.sums.functionals import FunctionalEstimate, largest_variance


@taking(mechanism=MECHANISM)
@dataclass(frozen=True, slots=True, eq=False)
class CodeCounts:
    """Reports of one mechanism, counted by code: `counts` has mechanism.code_count integers.

    Where reports do not stand for equally many values: `weights` has the sum of what those of each
    code stand for, in any unit, and `squares` that of the squares.
    """

    mechanism: Mechanism
    counts: ArrayLike
    weights: ArrayLike | None = None
    squares: ArrayLike | None = None

    def checked(self) -> Floats:
        """Return the counts as floats; raises ParameterError for what are not counts."""
        return self._row("counts", self.counts)

    def weighed(self) -> "Weighed":
        """Return sums of weights; raises ParameterError."""
        if self.weights is None and self.squares is None:
            counts = self.checked()
            return Weighed(counts, counts)
        if self.weights is None or self.squares is None:
            raise ParameterError("weights, squares", "both, or none")
        return Weighed(self._row("weights", self.weights), self._row("squares", self.squares))

    def _row(self, name: str, given: ArrayLike) -> Floats:
        return _numbers(name, given, self.mechanism.code_count)


def _numbers(name: str, given: ArrayLike, codes: int) -> Floats:
    """Return counts or weights by code as floats; raises ParameterError."""
    found: Floats = floats(name, given)
    if found.shape != (codes,):
        raise ParameterError(name, f"{codes} numbers, one a code")
    if not np.isfinite(found).all() or found.min() < 0:
        raise ParameterError(name, "finite numbers of at least 0")
    return found


class Weighed(NamedTuple):
    """By code: the sum of the reports' weights, and of their squares."""

    sums: Floats
    squares: Floats

    @property
    def total(self) -> float:
        """The weight of all."""
        return float(self.sums.sum())

    @property
    def heaviest(self) -> float:
        """About the largest weight."""
        some = self.sums > 0
        return float((self.squares[some] / self.sums[some]).max(initial=0.0))

    def plus(self, other: "Weighed") -> "Weighed":
        """Return these and those."""
        return Weighed(self.sums + other.sums, self.squares + other.squares)

    def spread_as(self, all_of_them: "Weighed") -> "Weighed":
        """Return as many reports, as heavy together, spread over the codes as all of them are."""
        pairs = zip(self, all_of_them, strict=True)
        return Weighed(*(every * (mine.sum() / every.sum()) for mine, every in pairs))

    def mean(
        self, of: Floats, most: float, share: "WholeShare | None" = None
    ) -> FunctionalEstimate:
        """Return that of a function of the code, of variance `most` at most for one report.

        `share`: what a part takes over from its whole. One more report of the largest weight and
        variance is added to what is read off these.
        """
        size, centre, heaviest = share or (self.total, float(self.sums @ of) / self.total, 0.0)
        off = of - centre
        mean = centre + (float(self.sums @ off) / size if share else 0.0)
        heaviest = max(heaviest, self.heaviest)
        variance = (float(self.squares @ off**2) + heaviest**2 * most) / size**2
        return FunctionalEstimate(mean, variance**0.5, round(self.total))


class WholeShare(NamedTuple):
    """What a part takes over from its whole, so that parts add up to it.

    `size`: the weight that its reports of this kind would have, had the coin given it as many as
    the whole; `mean`: the whole's, in the place of those missing; `heaviest`: of its reports.
    """

    size: float
    mean: float
    heaviest: float


@taking(weights=floats, law=floats, counts=floats)
def estimate(weights: Floats, law: Floats, counts: ArrayLike) -> FunctionalEstimate:
    """Return the unbiased estimate that weights give for counts by code.

    The variance is the empirical one of the weights over the reports, with one more observation of
    the largest variance possible, so that a handful of equal reports does not look certain. Raises
    ParameterError for what are not counts, or none at all.
    """
    if weights.shape != ((len(law) if law.ndim == 2 else 0),):  # noqa: PLR2004
        raise ParameterError("weights, law", "a weight a code")
    c = _numbers("counts", counts, len(weights))
    if not c.any():
        raise ParameterError("counts", "some above 0")
    return Weighed(c, c).mean(weights, largest_variance(weights, law))


def _share(name: str, given: object) -> object:
    """Return a share as it is; as a pair it is a fraction. Raises ParameterError."""
    if given is None or not isinstance(given, tuple):
        return optional(chance)(name, given)
    num, den = each(integer_in(least=0), 2)(name, given)
    if not num <= den != 0:
        raise ParameterError(name, "0..1, or that as (num, den)")
    return given


@taking(
    stream=a("edge_ldp.sums.counted.CodeCounts"),
    survey=a("edge_ldp.sums.counted.CodeCounts"),
    share=_share,
)
@dataclass(frozen=True, slots=True, eq=False)
class Epoch:
    """What came under one plan within a stratum: stream reports up to θ, and surveys.

    `share`: of surveys, as the plan has it. Epochs of the same mechanisms and share are one.
    """

    stream: CodeCounts
    survey: CodeCounts
    share: float | tuple[int, int] | None = None
