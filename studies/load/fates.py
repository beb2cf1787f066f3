"""What becomes of each device and frame of a simulated fleet: drawn once, from the run's seed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from studies.load.lies import LIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]

MAX_DELAY = 8  # rounds; so many gaps are open at once, 64 are allowed
RESEND_ROUNDS = 2  # between a frame that is lost and its next sending
PAUSE_ROUNDS = 8  # a device loses its state only at every so manieth round
SPREAD_CODES = 16


class Poison(IntEnum):
    """How a liar lies whose every frame is well-formed and counts."""

    NONE = 0
    POINT = 1  # the highest code for ever
    SPREAD = 2  # any of the highest codes
    INPUT = 3  # an honest mechanism, fed with the ceiling


@dataclass(frozen=True, slots=True)
class Spec:
    """How much and how badly; `window_s` is the aggregator's re-send window.

    `reports`: of a frame; `duplicates`, `delayed`, `lost`: shares of honest frames; `liars` and
    `reinstalls`: of devices.
    """

    devices: int
    rounds: int
    reports: int
    seed: int
    window_s: int
    duplicates: float = 0.01
    delayed: float = 0.02
    lost: float = 0.01
    liars: float = 0.02
    reinstalls: float = 0.01


@dataclass(frozen=True, slots=True)
class Fates:
    """Arrays with one entry for each device.

    `lies`: sends lies between honest frames; `poison`: of type Poison; `ends`: the round before
    which it loses its state and begins anew, or a round that never comes.
    """

    lies: Flags
    poison: Ints
    ends: Ints


def draw_fates(spec: Spec, rng: np.random.Generator) -> Fates:
    """Return what kind of device each one is; liars never lose their state."""
    kinds = len(Poison) - 1
    liars = rng.random(spec.devices) < spec.liars
    poisons = rng.random(spec.devices) < kinds / (LIES + kinds)
    poison = np.where(liars & poisons, rng.integers(1, len(Poison), spec.devices), Poison.NONE)
    pauses = (spec.rounds - 1) // PAUSE_ROUNDS
    ends = np.full(spec.devices, spec.rounds)
    if pauses:
        chosen = ~liars & (rng.random(spec.devices) < spec.reinstalls)
        drawn = PAUSE_ROUNDS * rng.integers(1, pauses + 1, spec.devices)
        ends = np.where(chosen, drawn, ends)
    return Fates(liars & ~poisons, poison, ends)


def draw_journeys(spec: Spec, honest: Flags, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return the rounds by which each device's frame is late, and after which a copy comes.

    0 is none. A lost frame is sent again two rounds later, and may be lost again.
    """
    fates = []
    for share in (spec.delayed, spec.duplicates):
        chosen = honest & (rng.random(len(honest)) < share)
        fates.append(np.where(chosen, rng.integers(1, MAX_DELAY + 1, len(honest)), 0))
    losses = rng.geometric(1 - spec.lost, len(honest)) - 1
    resent = np.where(honest, np.minimum(RESEND_ROUNDS * losses, MAX_DELAY), 0)
    return np.maximum(fates[0], resent), fates[1]
