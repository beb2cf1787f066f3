"""From one survey to the next: the state after an epoch, the θ to use and what to survey now.

Each epoch's reports are first compared with what was expected of them: after an alarm everything
older is forgotten. Then all that is kept is estimated jointly, θ chosen by expected regret, and the
next survey's range by how much doubt it would remove. Pure: no clock, no entropy of its own.
Sources: DESIGN §7, METHODS §3; measured: docs/adaptive-theta.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from aggregator.adaptive.design import Design, next_survey
from aggregator.adaptive.drift import surprise
from aggregator.adaptive.posterior import infer
from aggregator.adaptive.regret import costs_on
from aggregator.errors import ArgumentError
from aggregator.estimate.joint import Evidence, cells, checked_counts_of
from edge_ldp import SquareWave

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from aggregator.adaptive.posterior import Posterior
    from aggregator.adaptive.regret import Aim
    from edge_ldp import Mechanism

    Ints = NDArray[np.int64]

FALSE_ALARMS = 1e-3  # of looks at new reports while nothing changed


@dataclass(frozen=True, slots=True)
class Setting:
    """A stream, as far as its surveys and θ go; values in its unit.

    `epsilon`: of a survey report; `reports`: expected of the next survey, for its design;
    `size`: buckets of a survey; `false_alarms`: level of the drift alarm, per look. `watch`: start
    the next survey at low unless some of the reports just taken did (stream reports always do):
    surveys of the tail alone are blind to a shift downwards.
    """

    low: int
    ceiling: int
    epsilon: float
    aim: Aim
    reports: int = 65_536
    size: int = 1024
    false_alarms: float = FALSE_ALARMS
    watch: bool = False

    def survey(self, low: int, high: int) -> SquareWave:
        """Return the survey mechanism over [low, high]."""
        size = min(self.size, high - low + 1)
        return SquareWave(epsilon=self.epsilon, low=low, high=high, size=size)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """What is kept between epochs: counts added up by mechanism, and what they said."""

    evidence: tuple[Evidence, ...] = ()
    posterior: Posterior | None = None
    forgotten: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """The next plan's θ and survey range, and why.

    `regret`: expected ln(cost of θ / least cost); `spread`: 10 %, 50 % and 90 % quantiles of the
    best θ; `surprise`: probability of the new reports if nothing has changed; `shifted`: whether
    older reports were forgotten for it; `survey.left`: share of θ's variance that is expected to
    remain after the next survey.
    """

    theta: int
    regret: float
    spread: tuple[int, int, int]
    survey: Design
    surprise: float
    shifted: bool
    reasons: tuple[str, ...]


def first_survey(setting: Setting) -> Mechanism:
    """Return the survey of a stream that nothing is known about: over its whole range."""
    return setting.survey(setting.low, setting.ceiling)


def observe(
    setting: Setting, state: State, reports: Sequence[Evidence], *, rng: np.random.Generator
) -> tuple[State, Decision]:
    """Take an epoch's reports (surveys, and stream reports if any); return what to do next.

    `rng` draws the posterior, never privacy noise. Cost: some 0.4 s, twice that with atoms.
    Raises ArgumentError, CountsError, NoReportsError (nothing was ever reported).
    """
    if setting.low >= setting.ceiling or setting.reports < 1:
        raise ArgumentError("setting", "low < ceiling, reports >= 1")
    edges = _grid(setting, state.posterior)
    chance = surprise(state.evidence, reports, edges)
    shifted = chance < setting.false_alarms
    kept = () if shifted else state.evidence
    evidence = merged((*kept, *reports))
    posterior = _inferred(setting, evidence, None if shifted else state.posterior, rng)
    costs = costs_on(posterior.edges, setting.aim)
    theta, regret = costs.choose(posterior.samples, between=posterior.torn)
    low, middle, high = np.quantile(costs.best(posterior.samples), [0.1, 0.5, 0.9]).tolist()
    blind = setting.watch and all(part.mechanism.low > setting.low for part in reports)
    decision = Decision(
        theta=theta,
        regret=regret,
        spread=(round(low), round(middle), round(high)),
        survey=next_survey(posterior, costs, setting.survey, setting.reports, from_low=blind),
        surprise=chance,
        shifted=shifted,
        reasons=(),
    )
    after = State(evidence, posterior, state.forgotten + shifted)
    return after, replace(decision, reasons=_reasons(decision))


def worth_it(setting: Setting, state: State, theta: int, than: int) -> float:
    """Return the expected ln(cost of `than` / cost of `theta`): what a change of θ would gain.

    A planner keeps `than` unless this is more than its hysteresis. Raises ArgumentError before the
    first reports.
    """
    if state.posterior is None:
        raise ArgumentError("state", "one that has seen reports")
    costs = costs_on(state.posterior.edges, setting.aim)
    ratio = np.log(costs.of(state.posterior.samples)).mean(axis=1)
    new, old = np.interp([theta, than], costs.thetas, ratio)
    return float(old - new)


def merged(evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return the evidence with counts of equal mechanisms added, in order of first appearance."""
    found: dict[Mechanism, Evidence] = {}
    for part in evidence:
        counts = checked_counts_of(part)
        if part.mechanism in found:
            counts = counts + checked_counts_of(found[part.mechanism])
        found[part.mechanism] = Evidence(part.mechanism, counts)
    return tuple(found.values())


def _grid(setting: Setting, posterior: Posterior | None) -> Ints:
    """Return the cells of the last posterior, finer where it is heavy, or those of the setting."""
    if posterior is None:
        return cells(setting.low, setting.ceiling)
    return posterior.finer()


def _inferred(
    setting: Setting,
    evidence: Sequence[Evidence],
    last: Posterior | None,
    rng: np.random.Generator,
) -> Posterior:
    """Return the posterior on cells that are fine enough for it: most often at the first try."""
    while True:
        edges = _grid(setting, last)
        start = None
        if last is not None:
            start = last.start[np.searchsorted(last.coarse, edges[:-1], side="right") - 1]
        last = infer(evidence, edges, rng=rng, start=start)
        if len(last.finer()) == len(edges):
            return last


def _reasons(decision: Decision) -> tuple[str, ...]:
    low, middle, high = decision.spread
    words = [f"θ = {decision.theta}: least expected regret; best θ {middle} ({low} to {high})"]
    if decision.shifted:
        words.append(f"older reports forgotten: p = {decision.surprise:.1g} if nothing changed")
    survey = decision.survey
    words.append(
        f"survey {survey.low} to {survey.high}: leaves {survey.left:.0%} of the variance of ln θ"
    )
    return tuple(words)
