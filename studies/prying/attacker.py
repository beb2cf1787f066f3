"""An attacker by Bayes' rule: a posterior over a home's base load, and the next plan by it.

He knows that the load is one whole number of watts in 0..TOP, all alike before; how readings vary
about it; and the exact law of every plan. Before each day he takes, of all plans that he may send,
the one whose reports tell most (mutual information with the load), and he guesses the posterior's
mean. Plans that a policy admits are tried in their sharpest forms; one that changes with every day
is more than the default allows, so his figures are on the safe side. Seeded; no kernel is run.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.ndimage import gaussian_filter1d

from edge_ldp import Hybrid, Mechanism, ParameterError, Piecewise, SquareWave, StochasticRounding
from edge_ldp.device.channel import wave
from edge_ldp.mechanisms import Tuned
from edge_ldp.protocol.plan_bounds import PlanBounds, PlanRequest, least_theta, misshape
from edge_ldp.ratio import floor_ratio

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

TOP = 3000  # W: base loads lie in 0..TOP
CEILING = 43_470
RATIO = floor_ratio(1)
POINTS = np.arange(TOP + 1)


@dataclass(frozen=True, slots=True)
class Load:
    """How a home's readings go: W about the base in each slot, and W by which it moves a day."""

    spread: float = 0.0
    drift: float = 0.0


@dataclass(frozen=True, slots=True)
class Mixed:
    """A plan of both kinds: each report is a survey with the probability `share`, else a sum."""

    sums: Mechanism
    survey: Mechanism
    share: float


class Menu:
    """Plans that may be sent: the law of each plan's codes under every base load."""

    def __init__(self, plans: Sequence[Mechanism | Mixed], load: Load) -> None:
        laws = [_plan_law(plan, load) for plan in plans]
        self.plans = plans
        self.law: Floats = np.concatenate(laws, axis=1)
        self.starts = np.cumsum([0, *(law.shape[1] for law in laws)])
        logs = np.log(np.maximum(self.law, 1e-300))
        self.log = logs
        self.entropy = np.add.reduceat(-self.law * logs, self.starts[:-1], axis=1)

    def information(self, belief: Floats) -> Floats:
        """Return what a report tells under each plan, nats: homes × plans."""
        codes = belief @ self.law
        surprise = -codes * np.log(np.maximum(codes, 1e-300))
        total: Floats = np.add.reduceat(surprise, self.starts[:-1], axis=1)
        return total - belief @ self.entropy

    def part(self, plan: int) -> slice:
        """Return where a plan's codes stand."""
        return slice(int(self.starts[plan]), int(self.starts[plan + 1]))


def whole(shape: PlanBounds, ceiling: int = CEILING) -> Mechanism:
    """Return the survey of the whole range, in as many buckets as a shape admits."""
    size = min(shape.survey_buckets, ceiling + 1)
    return SquareWave(epsilon=1, low=0, high=ceiling, size=size)


def admitted(shape: PlanBounds, ceiling: int = CEILING) -> list[Mechanism]:
    """Return plans of 0..ceiling that a shape admits, each kind in the sharpest forms there are."""
    found = [*_sums(shape, ceiling), *_surveys(shape, ceiling)]
    return [one for one in found if _is_admitted(one, shape, ceiling)]


def thresholds() -> list[Mechanism]:
    """Return what only ε bounds: rounding over one watt, anywhere; what a search bisects by."""
    return [StochasticRounding(epsilon=1, low=m, high=m + 1) for m in range(0, TOP, 4)]


def attacked(  # noqa: PLR0913 (what a study varies)
    menu: Menu, days: Sequence[int], reports: int, load: Load, *, homes: int, fixed: bool = False
) -> tuple[dict[int, float], list[int]]:
    """Return the root mean square error, W, after each of `days`, and how often each plan was sent.

    `reports` a day from each of `homes`, bases all over the range. `fixed`: the first plan stays.
    """
    rng = np.random.default_rng([homes, reports, len(menu.plans), int(load.spread)])
    base = np.linspace(0, TOP, homes)
    belief = np.full((homes, TOP + 1), 1 / (TOP + 1))
    errors: dict[int, float] = {}
    sent = [0] * len(menu.plans)
    for day in range(1, max(days) + 1):
        chosen = np.zeros(homes, np.int64) if fixed else menu.information(belief).argmax(axis=1)
        at = np.clip(base.round().astype(np.int64), 0, TOP)
        for plan in np.unique(chosen):
            who = np.flatnonzero(chosen == plan)
            law, log = menu.law[:, menu.part(plan)], menu.log[:, menu.part(plan)]
            counts = rng.multinomial(reports, law[at[who]] / law[at[who]].sum(axis=1)[:, None])
            likely = counts @ log.T
            belief[who] *= np.exp(likely - likely.max(axis=1)[:, None])
            belief[who] += 1e-300
            belief[who] /= belief[who].sum(axis=1)[:, None]
            sent[plan] += len(who)
        if day in days:
            guess = belief @ POINTS
            errors[day] = float(np.sqrt(np.mean((guess - base) ** 2)))
        if load.drift:
            base = np.clip(base + rng.normal(0, load.drift, homes), 0, TOP)
            belief = gaussian_filter1d(belief, load.drift, axis=1, mode="nearest")
    return errors, sent


def _plan_law(plan: Mechanism | Mixed, load: Load) -> Floats:
    if not isinstance(plan, Mixed):
        return _law(plan, load)
    parts = ((1 - plan.share, plan.sums), (plan.share, plan.survey))
    merged: Floats = _merged(np.concatenate([p * _law(m, load) for p, m in parts], axis=1))
    return merged


def _law(mechanism: Mechanism, load: Load) -> Floats:
    """Return the probability of each code (columns) under each base load (rows)."""
    parts = []
    for coin, _, channel in mechanism.branches:
        weights = np.array(
            [[channel.weight(i, j) for j in range(channel.code_count)] for i in range(channel.d)]
        ).astype(np.float64)
        mixed = np.zeros((TOP + 1, channel.d))
        for value in range(TOP + 1):
            for i, share in mechanism.inputs(value, channel):
                mixed[value, i] = share
        parts.append(float(coin) * (mixed @ weights) / channel.total)
    law = np.concatenate(parts, axis=1)
    law = law[:, law.max(axis=0) > 0]
    if load.spread:
        law = gaussian_filter1d(law, load.spread, axis=0, mode="nearest")
    merged: Floats = _merged(law)
    return merged


def _merged(law: Floats) -> Floats:
    """Add up codes that no base load of the range tells apart: they say the same."""
    ratio = law / law.sum(axis=0)
    kept, groups = np.unique(ratio.round(12), axis=1, return_inverse=True)
    merged = np.zeros((len(law), kept.shape[1]))
    np.add.at(merged.T, groups.ravel(), law.T)
    return merged


def _sums(shape: PlanBounds, ceiling: int) -> Iterator[Mechanism]:
    """Yield waves of every width on lattices of every kind, hybrids and tables, at the least θ."""
    forms: list[Mechanism] = [StochasticRounding(epsilon=1, low=0, high=ceiling)]
    forms += [Hybrid(epsilon=1, low=0, high=ceiling, size=d) for d in (4, 8, 12, 16, 24, 32, 64)]
    forms += [Tuned(epsilon=1, low=0, high=ceiling, bits=bits) for bits in (3, 4)]
    for d in (3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 128):
        forms += [_piecewise(d, c, ceiling) for c in sorted({0, 1, d // 4, d // 2, d})]
    for form in forms:
        least = least_theta(form, shape, low=0, ceiling=ceiling, ratio=RATIO)
        for theta in sorted({least, least * 5 // 4, least * 3 // 2}):
            if theta <= ceiling:
                yield _at(form, theta)


def _surveys(shape: PlanBounds, ceiling: int) -> Iterator[Mechanism]:
    for halved, size in product(range(shape.survey_halvings + 1), (2, 4, 16, 64, 256, 512, 1024)):
        high = ceiling if not halved else ((ceiling + 1) >> halved) - 1
        if size > high + 1:
            continue
        optimal = SquareWave(epsilon=1, low=0, high=high, size=size).waves[0].c
        for c in sorted({0, 1, optimal // 2, optimal, size // 2}):
            table = {
                "low": 0,
                "high": high,
                "coin": [1, 1],
                "waves": [[size, c, RATIO.num, RATIO.den]],
            }
            yield SquareWave.from_plan(table)


def _piecewise(d: int, c: int, high: int) -> Mechanism:
    made = wave(d, c, RATIO.num, RATIO.den)
    table = {"low": 0, "high": high, "coin": [1, 1], "waves": [list(made[:4])]}
    return Piecewise.from_plan(table)


def _at(form: Mechanism, theta: int) -> Mechanism:
    return type(form).from_plan({**form.to_plan(), "high": theta})


def _is_admitted(one: Mechanism, shape: PlanBounds, ceiling: int) -> bool:
    is_survey = isinstance(one, SquareWave)
    sums, survey = (_any_sums(ceiling), one) if is_survey else (one, whole(shape, ceiling))
    asked = PlanRequest(0, ceiling, RATIO, sums, survey, (1, 1) if is_survey else (0, 1))
    within = one.randomizer.within(RATIO.num, RATIO.den)
    return within and misshape(asked, shape) is None


def _any_sums(ceiling: int) -> Mechanism:
    """Return what a survey's plan has beside it, and never sends."""
    return Hybrid(epsilon=1, low=0, high=ceiling, size=min(16, ceiling + 1))


def named(mechanisms: Iterable[Mechanism]) -> list[str]:
    """Return a short name of each plan."""
    return [f"{m.name} [{m.low}, {m.high}] size {m.size} codes {m.code_count}" for m in mechanisms]


__all__ = ["Load", "Menu", "Mixed", "ParameterError", "admitted", "attacked", "named", "thresholds"]
