"""Whether a crowd's counts are such as honest devices can give, at a known false-alarm rate.

Two figures at the maximum-likelihood density: `misfit`, G² = 2 Σ c·ln(c / (n·(M x̂))) over all
codes, and `excess`, the largest surplus of a run of neighbouring codes in standard deviations. Both
are held against counts drawn from the estimate (parametric bootstrap), each compared with the law
it was drawn from. No density is fitted to the draws: that would lower their figures, most where the
estimate has gaps, and then false alarms came up to twice as often as stated (docs/poisoning.md).

A liar may send one code, the few highest or any stretch, so excess is looked for in blocks of
neighbouring codes of all sizes 1, 2, 4, …, and in as many of the lowest and highest, branch by
branch.

What no such figure sees: devices that follow the protocol with invented values give counts that
some density explains, and so does every output attack that a density can imitate (all of them where
a mechanism has two codes). Source: docs/methods.md, Poisoned reports.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edge_ldp import Mechanism
from edge_ldp.arrays import Floats
from edge_ldp.checks import GENERATOR, MECHANISM, MODELLED, chance, finite, taking
from edge_ldp.estimate.density import Density
from edge_ldp.estimate.em import checked_counts, ems
from edge_ldp.estimate.operator import Model, Modelled, Operator, model_of

FALSE_ALARM = 0.01
TOLERANCE = 1e-4  # of the fit, in mass an iteration would still move; at most
MAX_ITERATIONS = 500  # of them: G² is then within a tenth of its own spread of the least
TESTS = 2  # misfit and excess share the false-alarm rate
Run = tuple[int, int]  # codes first..stop−1
_DRAWS = 4  # of honest counts for each one that may beat the figures


@dataclass(frozen=True, slots=True)
class Alarm:
    """The verdict on one histogram.

    `misfit`: G²; `excess`: standard deviations, in the worst run of codes; each with its p-value.
    `limit`: the excess that honest counts exceed with half of `false_alarm`.
    """

    misfit: float
    misfit_p: float
    excess: float
    excess_p: float
    limit: float
    false_alarm: float

    @property
    def rings(self) -> bool:
        """Say whether honest devices would have given this with at most `false_alarm`."""
        return min(self.misfit_p, self.excess_p) <= self.false_alarm / TESTS


@taking(mechanism=MODELLED, rng=GENERATOR, false_alarm=finite(1e-6, 1, inner=True))
def alarm(
    mechanism: Modelled,
    counts: ArrayLike,
    *,
    rng: "np.random.Generator",
    false_alarm: float = FALSE_ALARM,
) -> Alarm:
    """Return whether `counts` (reports per code) can come from honest devices of one mechanism.

    `rng` draws sampling noise, never privacy noise; same state, same result. Cost: one fit, and
    4·⌈2/false_alarm⌉ (800) draws of counts. Raises CountsError, NoReportsError, ParameterError.
    """
    model = model_of(mechanism)
    n = checked_counts(model.operator, counts)
    runs = runs_of(model.operator)
    law = code_law(model, fit(model, n))
    allowed = _DRAWS
    honest = _honest(runs, round(n.sum()), law, rng, allowed * ceil(TESTS / false_alarm) - 1)
    observed = np.array([misfit(n, law), runs.excess(n, law).max()])
    p = ((honest >= observed).sum(axis=0) + 1) / (len(honest) + 1)
    return Alarm(
        misfit=float(observed[0]),
        misfit_p=float(p[0]),
        excess=float(observed[1]),
        excess_p=float(p[1]),
        limit=float(np.sort(honest[:, 1])[-allowed]),
        false_alarm=false_alarm,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The runs of a mechanism's possible codes: `first[k]` ≤ code < `stop[k]`."""

    first: NDArray[np.intp]
    stop: NDArray[np.intp]

    def excess(self, counts: Floats, law: Floats) -> Floats:
        """Return each run's excess over its share of `law`, in standard deviations.

        The signed root of the run's own likelihood ratio (the run against all other codes): nearly
        normal even where only one report was to be expected.
        """
        import scipy  # noqa: PLC0415 (time: who only answers needs none of it)

        n = counts.sum()
        below = np.zeros((2, len(counts) + 1))
        np.cumsum([counts, n * law], axis=1, out=below[:, 1:])
        observed, expected = below[:, self.stop] - below[:, self.first]
        rest, rest_expected = np.maximum(n - observed, 0), np.maximum(n - expected, 0)
        ratio = 2 * (
            scipy.special.rel_entr(observed, expected) + scipy.special.rel_entr(rest, rest_expected)
        )
        return np.asarray(np.sign(observed - expected) * np.sqrt(np.maximum(ratio, 0)))

    def run(self, k: int) -> Run:
        """Return the run of one index."""
        return int(self.first[k]), int(self.stop[k])


def runs_of(operator: Operator) -> Runs:
    """Return the runs, about two a code; none holds all codes, or one of probability 0."""
    found = set[Run]()
    for start, end in zip(operator.cuts, operator.cuts[1:], strict=False):
        if not operator.possible[start]:
            continue
        size = 1
        while size < end - start:
            found |= {(at, min(at + size, end)) for at in range(start, end, size)}
            found.add((end - size, end))
            size *= 2
        found.add((start, end))
    possible = int(operator.possible.sum())
    ends = np.array(sorted(run for run in found if run[1] - run[0] < possible), dtype=np.intp)
    return Runs(ends[:, 0], ends[:, 1])


def fit(model: Model, counts: Floats) -> Density:
    """Return the maximum-likelihood density, unsmoothed, near enough for G²."""
    return ems(
        model,
        counts,
        strength=0.0,
        accelerate=True,
        tolerance=TOLERANCE,
        max_iterations=MAX_ITERATIONS,
    )


def code_law(model: Model, density: Density) -> Floats:
    """Return the probability of each code; impossible codes have 0."""
    law = np.maximum(model.operator.apply(density.probabilities), 0)
    law /= law.sum()
    return law


def misfit(counts: Floats, law: Floats) -> float:
    """Return G², twice the log-likelihood ratio of the observed shares against `law`."""
    import scipy  # noqa: PLC0415 (time: who only answers needs none of it)

    return float(2 * scipy.special.rel_entr(counts, counts.sum() * law).sum())


@taking(mechanism=MECHANISM, share=chance)
def largest_shift(mechanism: Mechanism, share: float) -> float:
    """Return how far a share of liars can move the mean of decoded reports, unit of the stream.

    In one direction, whatever they send: each puts the largest output where an honest device would
    have put a value of the other end. No filter is needed for it to hold.
    """
    return share * (mechanism.influence + 1) * (mechanism.high - mechanism.low) / 2


def _honest(
    runs: Runs, reports: int, law: Floats, rng: "np.random.Generator", draws: int
) -> Floats:
    """Return (misfit, excess) of as many draws of honest counts, one row each."""
    figures = np.empty((draws, TESTS))
    for row in figures:
        counts = rng.multinomial(reports, law).astype(np.float64)
        row[:] = misfit(counts, law), runs.excess(counts, law).max()
    return figures
