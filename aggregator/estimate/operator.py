"""The likelihood of a mechanism as a linear operator: O(inputs + codes), never a dense matrix.

A wave's row is a constant plus a window, so a likelihood is one cumulative sum: `Σ_i P(j|i)·x_i =
far·Σx + near·Σ_{j−2c ≤ i ≤ j} x_i`, with far = r_den/W and near = (r_num − r_den)/W. Branches of a
mixture are stacked, weighted by their coin. Source: DESIGN §6.

A cumulative sum costs 4 ns an entry and is most of the work, so the rest is kept from adding to it:
scratch space is made once (an operator serves one thread), results may go `out` to given arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from aggregator.errors import ArgumentError
from edge_ldp.device.randomizer import BUCKETS

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from edge_ldp.device.channel import Wave

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Rounding:
    """Points of a fine lattice put on a coarse one: point i on `left[i]`, or next to it by `share`.

    `starts`: first fine point of each coarse cell. Linear in i, as stochastic rounding is.
    """

    left: NDArray[np.intp]
    share: Floats
    starts: NDArray[np.intp]

    def apply(self, x: Floats) -> Floats:
        """Return the mass on each coarse point."""
        onto = np.zeros(len(self.starts) + 1)
        onto[:-1] += np.add.reduceat(x * (1 - self.share), self.starts)
        onto[1:] += np.add.reduceat(x * self.share, self.starts)
        return onto

    def adjoint(self, y: Floats) -> Floats:
        """Return y interpolated at each fine point."""
        between: Floats = y[self.left] * (1 - self.share) + y[self.left + 1] * self.share
        return between


@dataclass(frozen=True, slots=True, eq=False)
class _Windows:
    """Sums over `width` neighbouring entries, by one cumulative sum in scratch space of its own.

    All four are views of that space: zeros, the sums (`into`), their total again (`beyond`).
    """

    into: Floats
    beyond: Floats
    ahead: Floats
    behind: Floats

    def put(self, x: Floats, out: Floats) -> np.float64:
        """Put the window sums of x in `out`; return the sum of x."""
        np.add.accumulate(x, out=self.into)
        total: np.float64 = self.into[-1]
        self.beyond.fill(total)
        np.subtract(self.ahead, self.behind, out=out)
        return total


@dataclass(frozen=True, slots=True, eq=False)
class _Branch:
    """One wave with its coin: `near` for the codes in the input's window, all of it plus `far`.

    `spread`: windows over inputs, also those that hang over the ends; `gather`: over codes.
    """

    near: float
    far: float
    spread: _Windows
    gather: _Windows
    rounding: _Rounding | None

    def apply(self, x: Floats, out: Floats) -> None:
        """Put the probability of each of the branch's codes in `out`."""
        if self.rounding:
            x = self.rounding.apply(x)
        out += self.far * self.spread.put(x, out)
        if self.near != 1:
            out *= self.near

    def adjoint(self, y: Floats, out: Floats) -> None:
        """Put Σ_j P(j|i)·y_j for every input i in `out`."""
        back = np.empty(len(self.gather.ahead)) if self.rounding else out
        back += self.far * self.gather.put(y, back)
        if self.near != 1:
            back *= self.near
        if self.rounding:
            out[:] = self.rounding.adjoint(back)


@dataclass(frozen=True, slots=True, eq=False)
class Operator:
    """P(code | input) of one mechanism.

    Inputs: the buckets, or the points of the finest branch's lattice (`size` of them at equal
    distances on [low, high]); `possible` is False for codes that no input can give (a branch
    whose coin is 0). `cuts`: first code of each branch, and code_count.
    """

    inputs: int
    codes: int
    possible: NDArray[np.bool_]
    branches: tuple[_Branch, ...]
    cuts: tuple[int, ...]

    def apply(self, x: Floats, out: Floats | None = None) -> Floats:
        """Return the law of the codes under density x, one number an input."""
        law = np.empty(self.codes) if out is None else out
        if len(self.branches) == 1:
            self.branches[0].apply(x, law)
            return law
        for branch, start, end in zip(self.branches, self.cuts, self.cuts[1:], strict=False):
            branch.apply(x, law[start:end])
        return law

    def adjoint(self, y: Floats, out: Floats | None = None) -> Floats:
        """Return Σ_j P(j|i)·y_j for every input i, from one number a code."""
        back = np.empty(self.inputs) if out is None else out
        if len(self.branches) == 1:
            self.branches[0].adjoint(y, back)
            return back
        self.branches[0].adjoint(y[: self.cuts[1]], back)
        for branch, start, end in zip(
            self.branches[1:], self.cuts[1:], self.cuts[2:], strict=False
        ):
            more = np.empty(self.inputs)
            branch.adjoint(y[start:end], more)
            back += more
        return back

    def unscaled(self) -> Operator:
        """Return the operator with every code's row divided by a number above 0 of its own.

        Such numbers cancel in EM. No code is impossible here, so no law is 0.
        """
        return replace(self, branches=tuple(replace(b, near=1.0) for b in self.branches))


def operator_of(mechanism: Mechanism) -> Operator:
    """Return the mechanism's likelihood. Raises ArgumentError for bucketed mixtures of two sizes.

    A stacked lattice branch with fewer points sees a value through the finest lattice; for SR
    (two points) this is exact, as its rows are linear.
    """
    size = mechanism.size
    branches = mechanism.branches
    if mechanism.encoder == BUCKETS and any(wave.d != size for _, _, wave in branches):
        raise ArgumentError("mechanism", "one size for all bucketed branches")
    possible = np.concatenate([np.full(wave.code_count, coin > 0) for coin, _, wave in branches])
    return Operator(
        inputs=size,
        codes=mechanism.code_count,
        possible=possible,
        branches=tuple(_branch(coin, wave, size) for coin, _, wave in branches),
        cuts=(*(first for _, first, _ in branches), mechanism.code_count),
    )


def _branch(coin: Fraction, wave: Wave, size: int) -> _Branch:
    excess = wave.r_num - wave.r_den
    width = 2 * wave.c + 1
    return _Branch(
        near=float(coin * excess / wave.total),
        far=wave.r_den / excess,
        spread=_windows(width, wave.d, width, width - 1),
        gather=_windows(1, wave.code_count, width, 0),
        rounding=None if wave.d == size else _rounding(size, wave.d),
    )


def _windows(zeros: int, entries: int, width: int, beyond: int) -> _Windows:
    scratch = np.zeros(zeros + entries + beyond)
    end = zeros + entries
    return _Windows(scratch[zeros:end], scratch[end:], scratch[width:], scratch[:-width])


def _rounding(fine: int, coarse: int) -> _Rounding:
    scaled = np.arange(fine) * (coarse - 1)
    left = np.minimum(scaled // (fine - 1), coarse - 2)  # the last point is wholly on its right
    share = (scaled - left * (fine - 1)) / (fine - 1)
    return _Rounding(left, share, np.searchsorted(left, np.arange(coarse - 1)))
