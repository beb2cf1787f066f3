"""What oracles of one wave share: their plan's form, their ratio, and the law of their code."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Protocol

from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms.waved import wave_rows, waves
from edge_ldp.oracles.base import Client, Oracle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from edge_ldp.device.channel import Wave


class WaveClient(Client, Protocol):
    """A client whose code is drawn from one wave."""

    @property
    def channel(self) -> Wave:
        """The wave, of half-width 0."""


class OfWave(Oracle):
    """An oracle whose code, given the public part, is drawn from one wave."""

    client: WaveClient

    def to_plan(self) -> dict[str, object]:
        """Return the integers that define this oracle, ready for JSON."""
        rows = wave_rows((self.client.channel,))
        return {"mechanism": self.name, "size": self.size, "waves": rows}

    @property
    def max_ratio(self) -> Fraction:
        """Largest factor between two values' probabilities of one report, exactly."""
        return Fraction(*self.client.channel.ratio())

    def law_of(self, index: int) -> list[Fraction]:
        """Return the exact probability of every code under one input of the wave."""
        wave = self.client.channel
        return [Fraction(wave.weight(index, j), wave.total) for j in range(wave.code_count)]


def one_wave(table: Mapping[str, object], inputs: int | None = None) -> Wave:
    """Return a plan's one wave, of half-width 0 and `inputs` inputs; raises ParameterError."""
    (wave,) = waves(table, 1)
    if wave.c or inputs not in (None, wave.d):
        raise ParameterError("waves", f"[[{inputs or 'd'}, 0, r_num, r_den]]")
    return wave
