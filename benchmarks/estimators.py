"""All estimators on the same fleets, ready to run.

65,536 reports over 1024 cells of three densities: Beta(5,2), an income-like mixture with round
figures ("spiky"), and quarter-hourly power of real homes below 16,384 W ("meter"). Every estimator
gets reports of its own mechanism from all 65,536 reporters at the same ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp import GeneralWave, Mechanism, SquareWave
from edge_ldp.device.channel import wave
from edge_ldp.estimate import Density, ahead, em, ems
from edge_ldp.estimate.density import density
from edge_ldp.estimate.held_out import auto, held_out
from edge_ldp.estimate.hierarchy import hh, hh_admm, hh_levels
from edge_ldp.estimate.joint import Evidence, cells, joint, view_of
from edge_ldp.estimate.operator import model_of
from edge_ldp.ratio import floor_ratio
from firmware_stubs.data import load_swiss
from studies.baselines.continuous import continuous_wave
from studies.baselines.grr import cfo, grr
from studies.baselines.haar import haar_frequencies, haar_hrr
from studies.evaluate import Masses
from tests.edge_ldp.estimate.fleets import ahead_run, cfo_supports, haar_counts, hh_supports

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Estimate = Callable[[], Density | Masses]

SIZE, N, TOP = 1024, 65_536, 2**14
EDGES = np.arange(0, TOP + 1, TOP // SIZE, dtype=np.float64)
DENSITIES = ("beta", "spiky", "meter")


@dataclass(frozen=True)
class Fleet:
    """65,536 reporters with values of one density, at one ε; equal fleets report alike."""

    name: str
    epsilon: float = 1.0
    seed: int = 0

    @property
    def values(self) -> Ints:
        """The reporters' cells, 0..1023."""
        return values(self.name)

    @property
    def rng(self) -> np.random.Generator:
        """Sampling noise of the experiment, from the start each time."""
        return np.random.default_rng(self.seed)

    @property
    def survey(self) -> SquareWave:
        """The square wave over the whole range."""
        return SquareWave(epsilon=self.epsilon, low=0, high=TOP - 1, size=SIZE)

    def counts(self, mechanism: Mechanism) -> Ints:
        """Return the counts of the mechanism's codes."""
        law = model_of(mechanism).operator.apply(truth(self.name).probabilities)
        return self.rng.multinomial(N, law / law.sum())


@cache
def values(name: str) -> Ints:
    """Return the cells of N values; seeded."""
    rng = np.random.default_rng(12345)
    if name == "beta":
        return np.minimum((rng.beta(5, 2, N) * SIZE).astype(np.int64), SIZE - 1)
    if name == "meter":
        power = np.clip(load_swiss().ravel(), 0, TOP - 1)
        return rng.choice(power, N).astype(np.int64) * SIZE // TOP
    income = rng.lognormal(10.5, 0.8, 3 * N)
    income = income[income < 2**19][:N]
    habit = rng.random(N)
    exact = np.where(habit < 0.75, np.round(income / 10_000) * 10_000, np.floor(income))
    income = np.where(habit < 0.6, np.round(income / 1000) * 1000, exact)
    return np.minimum(income * SIZE / 2**19, SIZE - 1).astype(np.int64)


@cache
def truth(name: str) -> Density:
    """Return the density of the values themselves."""
    return density(np.bincount(values(name), minlength=SIZE) / N, EDGES)


def _smoothed(fleet: Fleet, how: str) -> Estimate:
    model, rng = model_of(fleet.survey), np.random.default_rng(fleet.seed)
    counts = fleet.counts(fleet.survey)
    smoothers: dict[str, Estimate] = {
        "EM": partial(em, model, counts),
        "EMS": partial(ems, model, counts),
        "EMS, leaps to the plain stop": partial(ems, model, counts, accelerate=True, early=True),
        "EMS, leaps to the fixed point": partial(ems, model, counts, accelerate=True),
        "EMS, held out": lambda: held_out(model, counts, rng=rng).density,
        "auto": lambda: auto(model, counts, rng=rng).density,
    }
    return smoothers[how]


def _general(fleet: Fleet, top: float) -> Estimate:
    wave = GeneralWave(epsilon=fleet.epsilon, low=0, high=TOP - 1, size=SIZE, top=top)
    return partial(ems, model_of(wave), fleet.counts(wave))


def _continuous(fleet: Fleet) -> Estimate:
    """R-B: values uniform inside their cells, randomised as real numbers, reports binned."""
    wave, rng = continuous_wave(fleet.epsilon), fleet.rng
    real = (fleet.values + rng.random(N)) / SIZE
    counts = wave.count(wave.perturb(real, rng.random(N)), SIZE)
    return partial(ems, wave.model(SIZE, edges=EDGES), counts)


def _joint(fleet: Fleet, per_octave: int) -> Estimate:
    """Half survey the whole range, half up to the power of two above the 95 % quantile."""
    true = truth(fleet.name)
    high = 1 << int(true.quantile(0.95)).bit_length()
    near = SquareWave(epsilon=fleet.epsilon, low=0, high=min(high, TOP) - 1, size=SIZE)
    laws = [view_of(m, EDGES.astype(int)).apply(true.probabilities) for m in (fleet.survey, near)]
    rng = fleet.rng
    counts = [rng.multinomial(N // 2, law / law.sum()) for law in laws]
    evidence = [Evidence(m, c) for m, c in zip((fleet.survey, near), counts, strict=True)]
    return partial(joint, evidence, cells(0, TOP - 1, per_octave=per_octave))


def _binned(fleet: Fleet, bins: int) -> Estimate:
    items = np.bincount(fleet.values * bins // SIZE, minlength=bins)
    given = cfo_supports(items, fleet.epsilon, fleet.rng)
    return partial(cfo, given, edges=np.linspace(0, TOP, bins + 1))


def _grr(fleet: Fleet) -> Estimate:
    ratio = floor_ratio(fleet.epsilon)
    channel = wave(SIZE, 0, ratio.num, ratio.den)
    far = channel.r_den / channel.total
    mixed = far + (channel.r_num / channel.total - far) * truth(fleet.name).probabilities
    return partial(grr, channel, fleet.rng.multinomial(N, mixed / mixed.sum()), edges=EDGES)


def _tree(fleet: Fleet, how: str) -> Estimate:
    if how.startswith("HaarHRR"):
        levels, own = haar_counts(fleet.values, SIZE, fleet.epsilon, fleet.rng)
        if how == "HaarHRR, signed":
            return lambda: Masses(EDGES, haar_frequencies(levels, SIZE, own=own)[0])
        return partial(haar_hrr, levels, SIZE, own=own, edges=EDGES)
    supports = hh_supports(fleet.values, SIZE, fleet.epsilon, fleet.rng)
    if how == "HH, signed":
        return lambda: Masses(EDGES, hh_levels(supports, SIZE)[-1][:SIZE])
    return partial(hh if how == "HH" else hh_admm, supports, SIZE, edges=EDGES)


def _ahead(fleet: Fleet) -> Estimate:
    """AHEAD on the answers of a fleet that was asked before, so that drawing is not timed."""
    answers = [given for _, given in ahead_run(fleet.values, SIZE, fleet.epsilon, fleet.rng).asked]

    def estimate() -> Density:
        state = ahead(SIZE)
        for given in answers:
            state = state.grown(given)
        return state.density(edges=EDGES)

    return estimate


SMOOTHERS = (
    "EM",
    "EMS",
    "EMS, leaps to the plain stop",
    "EMS, leaps to the fixed point",
    "EMS, held out",
    "auto",
)
TREES = ("HH", "HH, signed", "HH-ADMM", "HaarHRR", "HaarHRR, signed")
ESTIMATORS: dict[str, Callable[[Fleet], Estimate]] = {
    **{how: partial(_smoothed, how=how) for how in SMOOTHERS},
    "EMS, continuous wave (R-B)": _continuous,
    "EMS, triangle wave": partial(_general, top=0),
    "EMS, trapezoid wave 0.6": partial(_general, top=0.6),
    "joint EMS, 8 cells an octave": partial(_joint, per_octave=8),
    "joint EMS, 32 cells an octave": partial(_joint, per_octave=32),
    **{f"CFO, {bins} bins": partial(_binned, bins=bins) for bins in (16, 32, 64)},
    "GRR, most likely": _grr,
    **{how: partial(_tree, how=how) for how in TREES},
    "AHEAD": _ahead,
}
