"""θ and the share of surveys, chosen together: what makes an operator's interval narrowest.

The half-width that will be printed for the stream's horizon is forecast for every θ and share. It
is mostly decided by mechanisms and numbers of reports, so a wide valley of choices is about as
good; among those within SLACK of the least, the one is taken whose truncated sums err least. For
that, and for how much tails may differ between strata, an estimated density is needed. It is made
twice, from two disjoint halves of the reports, and a tail counts only as far as both halves show
it: a phantom in one of them moves nothing. Surveys always span the whole range, as an interval that
assumes nothing needs to know what lies anywhere up to the ceiling.
Sources: docs/design.md, The threshold, docs/sums.md; measured: docs/adaptive-theta.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from edge_ldp import Mechanism
from edge_ldp.arrays import Floats, Ints
from edge_ldp.checks import GENERATOR, MECHANISM, a, mapping, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.estimate import Density
from edge_ldp.estimate.density import bias, cut_off, empty_runs, mean_square
from edge_ldp.estimate.joint import Evidence, cells, checked_counts_of, joint
from edge_ldp.sums import Question, half_width, tail_sds
from edge_ldp.sums.forecast import SHARES
from edge_ldp.threshold.published import PRUNE_RUN

SLACK = 0.05  # of the half-width: how much of it is given for truncated sums that err less
PER_OCTAVE = 8  # thresholds each time the distance from low doubles
LOWEST = 2**13  # the lowest threshold is this fraction of the range above low
PRUNE_BELOW = 1e-5
SURE = 20.0  # of log-likelihood, in both halves: phantoms gained at most 18, from ε 4 on
NOTHING = 1e-3  # of the mean: a tail that is


@dataclass(frozen=True, slots=True)
class Aim:
    """A stream and what its operator asks: values in the stream's unit.

    `lowest`: the lowest θ that devices admit, if they bound it. `unit_variance`: V of the stream
    mechanism on [−1, 1]; `survey`: over the whole range; `shares`: of surveys that may be chosen;
    `effect`: the design effect of the schedule, by which a sample's variance counts.
    """

    low: int
    ceiling: int
    unit_variance: float
    survey: Mechanism
    question: Question
    shares: tuple[float, ...] = SHARES
    lowest: int | None = None
    effect: float = 1.0


class Choice(NamedTuple):
    """What to ask next, the half-width that is expected for it, and the least there is."""

    theta: int
    share: float
    half: float
    least: float


@dataclass(frozen=True, slots=True, eq=False)
class Outlook:
    """The forecast of every candidate: half-widths thetas × shares, unit; `tails` both halves show.

    `variances`: of values truncated at each;
    `missed`: squared error of the whole horizon's truncated mean, tail included, same shape.
    """

    thetas: Ints
    shares: tuple[float, ...]
    halves: Floats
    missed: Floats
    tails: Floats
    variances: Floats

    def best(self) -> Choice:
        """Return the choice: nearly the narrowest interval, least error of truncated sums."""
        least = float(self.halves.min())
        near = self.halves <= (1 + SLACK) * least
        at, of = np.unravel_index(
            int(np.where(near, self.missed, np.inf).argmin()), self.missed.shape
        )
        return Choice(int(self.thetas[at]), self.shares[of], float(self.halves[at, of]), least)

    def keeps(self, theta: int, share: float, hysteresis: float) -> bool:
        """Say whether a θ and share in force are about as good as the best choice.

        Neither the half-width nor the truncated sums' error is larger by more than `hysteresis`.
        What is outside of all that was compared, as an operator may order it, is not.
        """
        if theta < self.thetas[0] or not self.shares[0] <= share <= self.shares[-1]:
            return False
        best = self.best()
        at, of = list(self.thetas).index(best.theta), self.shares.index(best.share)
        half, missed = self.half(theta, share), self.half(theta, share, self.missed)
        narrow = half <= (1 + hysteresis) * (1 + SLACK) * best.least
        return narrow and missed <= (1 + hysteresis) ** 2 * float(self.missed[at, of])

    def reach(self) -> int:
        """Return the lowest threshold above which both halves show next to nothing."""
        shown = self.tails > NOTHING * self.tails[0]
        return int(self.thetas[min(int(shown.sum()), len(self.thetas) - 1)])

    def asked(self, aim: Aim, question: Question, theta: int, share: float) -> float:
        """Return the half-width to expect of another question under a θ and share."""
        tail = float(np.interp(theta, self.thetas, self.tails))
        variance = float(np.interp(theta, self.thetas, self.variances))
        return half_width(
            question,
            unit_variance=aim.unit_variance,
            span=float(theta - aim.low),
            share=share,
            tail_sd=float(tail_sds(aim.survey, [theta])[0]),
            reach=float(aim.ceiling - theta),
            tail=tail,
            variance=variance,
        ).half

    def half(self, theta: int, share: float, of: Floats | None = None) -> float:
        """Return the half-width of any θ within the range and share, between the candidates.

        `of`: what else is wanted of each candidate.
        """
        columns = (self.halves if of is None else of).T
        rows = [np.interp(theta, self.thetas, column) for column in columns]
        return float(np.interp(share, self.shares, rows))


@taking(aim=a("edge_ldp.threshold.choice.Aim"), counts=mapping(MECHANISM), rng=GENERATOR)
def outlook(aim: Aim, counts: Mapping[Mechanism, Floats], rng: "np.random.Generator") -> Outlook:
    """Return the forecast by the reports there are, counted by mechanism and code.

    `rng` halves the reports; never privacy noise. Cost: some 0.3 s. Raises NoReportsError where a
    half has none, CountsError, ParameterError.
    """
    if not aim.low < aim.ceiling:
        raise ParameterError("low", "below the ceiling")
    thetas = candidates(aim.low, aim.ceiling, aim.lowest)
    tails, variances = _shown(aim, thetas, counts, rng)
    return compared(aim, thetas, tails, max(1.0, aim.effect) * variances)


def compared(aim: Aim, thetas: Ints, tails: Floats, variances: Floats) -> Outlook:
    """Return the forecast for thresholds above which `tails` lie (unit): at every share.

    `variances`: of values truncated at each θ, unit², as often as the schedule's effect says.
    """
    sds = tail_sds(aim.survey, thetas.tolist())
    halves = np.empty((len(thetas), len(aim.shares)))
    missed = np.empty_like(halves)
    for of, share in enumerate(aim.shares):
        for at, theta in enumerate(thetas):
            width = half_width(
                aim.question,
                unit_variance=aim.unit_variance,
                span=float(theta - aim.low),
                share=share,
                tail_sd=float(sds[at]),
                reach=float(aim.ceiling - theta),
                tail=float(tails[at]),
                variance=float(variances[at]),
            )
            halves[at, of] = width.half
            missed[at, of] = width.noise / aim.question.strata + tails[at] ** 2
    return Outlook(thetas, aim.shares, halves, missed, tails, variances)


def candidates(low: int, ceiling: int, lowest: int | None = None) -> Ints:
    """Return the thresholds that are compared: evenly by the logarithm of their distance."""
    span = ceiling - low
    first = max(1.0, span / LOWEST) if lowest is None else min(lowest - low, span - 1)
    steps = max(2, int(np.ceil(np.log2(span / first) * PER_OCTAVE)) + 1)
    return np.unique((low + np.geomspace(first, span, steps)).round().astype(np.int64))


def _shown(
    aim: Aim, thetas: Ints, counts: Mapping[Mechanism, Floats], rng: "np.random.Generator"
) -> tuple[Floats, Floats]:
    """Return the tail above each θ and the variance of truncated values that both halves show."""
    densities = [_density(aim, half) for half in _halves(counts, rng)]
    tails = np.min([bias(density, thetas) for density in densities], axis=0)
    means = [density.mean() - bias(density, thetas) for density in densities]
    squares = [mean_square(density, thetas) for density in densities]
    spread = [square - mean**2 for square, mean in zip(squares, means, strict=True)]
    return np.maximum(tails, 0), np.maximum(np.min(spread, axis=0), 0)


def _density(aim: Aim, half: Sequence[Evidence]) -> Density:
    """Return the density of a half, up to the empty cells behind which it surely shows nothing.

    Other empty cells are a gap: with nothing above them the reports would be far less likely.
    """
    edges = cells(aim.low, aim.ceiling)
    found = joint(half, edges, smoothing=0)
    for start in empty_runs(found.probabilities, PRUNE_BELOW, PRUNE_RUN).tolist():
        alone = joint(half, edges[: max(start, 2) + 1], smoothing=0)
        if found.log_likelihood - alone.log_likelihood < SURE:
            return cut_off(found, start)
    return found


def _halves(
    counts: Mapping[Mechanism, Floats], rng: "np.random.Generator"
) -> tuple[list[Evidence], list[Evidence]]:
    """Return the reports in two halves: a fair coin says into which each falls."""
    first, second = [], []
    for mechanism, counted in counts.items():
        checked = checked_counts_of(Evidence(mechanism, counted))
        whole = checked.round().astype(np.int64)
        part = rng.binomial(whole, 0.5)
        first.append(Evidence(mechanism, part))
        second.append(Evidence(mechanism, whole - part))
    return first, second
