"""The likelihood of a mechanism as a linear operator: the branches of a mixture, stacked.

A wave's row is a constant plus a window, so a likelihood is one cumulative sum, O(inputs + codes):
`Σ_i P(j|i)·x_i = far·Σx + near·Σ_{j−2c ≤ i ≤ j} x_i`, with far = r_den/W and near =
(r_num − r_den)/W. A profile is a convolution, a table a small matrix.

Each branch is weighted by its coin. A cumulative sum costs 4 ns an entry and is most of the work,
so the rest is kept from adding to it: scratch space is made once (an operator serves one thread),
results may go `out` to given arrays. Source: docs/design.md, Estimation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np

from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS, LATTICE
from edge_ldp.device.table import Profile, Table
from edge_ldp.estimate.density import edges_of

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from edge_ldp.arrays import Floats
    from edge_ldp.device.channel import Channel


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
    branches: tuple[Branch, ...]
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
        return replace(self, branches=tuple(b.unscaled() for b in self.branches))


def operator_of(mechanism: Mechanism) -> Operator:
    """Return the mechanism's likelihood. Raises ParameterError for bucketed mixtures of two sizes.

    A stacked lattice branch with fewer points sees a value through the finest lattice; for SR
    (two points) this is exact, as its rows are linear.
    """
    size = mechanism.size
    branches = mechanism.branches
    if mechanism.encoder == BUCKETS and any(channel.d != size for _, _, channel in branches):
        raise ParameterError("mechanism", "one size for all bucketed branches")
    possible = [np.full(channel.code_count, coin > 0) for coin, _, channel in branches]
    return Operator(
        inputs=size,
        codes=mechanism.code_count,
        possible=np.concatenate(possible),
        branches=tuple(branch_of(coin, channel, size) for coin, _, channel in branches),
        cuts=(*(first for _, first, _ in branches), mechanism.code_count),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A likelihood over cells between `edges`; of a mechanism by `model_of`.

    `lattice`: whether cells are points' neighbourhoods (see Density); `max_ratio`: e^ε, which is in
    EM's stopping rule; `uneven`: smoothing goes by mass over width. An operator keeps scratch
    space: a model serves one thread.
    """

    operator: Operator
    edges: NDArray[np.float64]
    lattice: bool
    max_ratio: float
    uneven: bool = False


Modelled: TypeAlias = Union["Mechanism", Model]


def model_of(given: Modelled) -> Model:
    """Return a mechanism's model; a model is its own."""
    if isinstance(given, Model):
        return given
    return Model(
        operator=operator_of(given),
        edges=edges_of(given),
        lattice=given.encoder == LATTICE,
        max_ratio=float(given.max_ratio),
    )


_DIRECT = 100_000  # products up to which a convolution is done directly: both take about 25 µs


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

    def put(self, x: Floats, out: Floats) -> float:
        """Put the window sums of x in `out`; return the sum of x."""
        np.add.accumulate(x, out=self.into)
        total: float = self.into.item(-1)
        if self.beyond.size:
            self.beyond.fill(total)
        np.subtract(self.ahead, self.behind, out=out)
        return total


class Branch(ABC):
    """P(code | input) of one branch, times its coin."""

    __slots__ = ()

    @abstractmethod
    def apply(self, x: Floats, out: Floats) -> object:
        """Put the probability of each of the branch's codes in `out`."""

    @abstractmethod
    def adjoint(self, y: Floats, out: Floats) -> object:
        """Put Σ_j P(j|i)·y_j for every input i in `out`."""

    def unscaled(self) -> Branch:
        """Return the branch with every code's row divided by a number above 0 of its own.

        Here 1: there is nothing to save.
        """
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Windowed(Branch):
    """A wave: `near` for the codes in the input's window, all of it plus `far`.

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

    def unscaled(self) -> Windowed:
        """Return the branch with every row divided by `near`."""
        return replace(self, near=1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Convolved(Branch):
    """A profile: `far` for every code, and the profile's `excess` over it around the input."""

    far: float
    excess: Floats

    def apply(self, x: Floats, out: Floats) -> None:
        """Put the probability of each of the branch's codes in `out`. Cost: inputs · profile."""
        np.add(np.convolve(x, self.excess), self.far * x.sum(), out=out)

    def adjoint(self, y: Floats, out: Floats) -> None:
        """Put Σ_j P(j|i)·y_j for every input i in `out`."""
        np.add(np.correlate(y, self.excess, "valid"), self.far * y.sum(), out=out)


@dataclass(frozen=True, slots=True, eq=False)
class Transformed(Branch):
    """A long profile, as `Convolved`, by Fourier transforms of `length`: O(codes·log codes).

    `excess` and `mirrored` are the transforms of the profile's excess over `far`. Rounding is of
    the order of 10⁻¹⁶ of the largest entry, and `far` keeps every entry above 0.
    """

    far: float
    length: int
    excess: NDArray[np.complex128]
    mirrored: NDArray[np.complex128]

    def apply(self, x: Floats, out: Floats) -> None:
        """Put the probability of each of the branch's codes in `out`."""
        import scipy  # noqa: PLC0415 (time: hardly a mechanism is so long)

        near = scipy.fft.irfft(scipy.fft.rfft(x, self.length) * self.excess, self.length)
        np.add(near[: len(out)], self.far * x.sum(), out=out)

    def adjoint(self, y: Floats, out: Floats) -> None:
        """Put Σ_j P(j|i)·y_j for every input i in `out`."""
        import scipy  # noqa: PLC0415 (same)

        near = scipy.fft.irfft(scipy.fft.rfft(y, self.length) * self.mirrored, self.length)
        np.add(near[: len(out)], self.far * y.sum(), out=out)


@dataclass(frozen=True, slots=True, eq=False)
class Dense(Branch):
    """A table, as the small matrix it is: one row a code, one column an input."""

    matrix: Floats

    def apply(self, x: Floats, out: Floats) -> None:
        """Put the probability of each of the branch's codes in `out`."""
        np.matmul(self.matrix, x, out=out)

    def adjoint(self, y: Floats, out: Floats) -> None:
        """Put Σ_j P(j|i)·y_j for every input i in `out`."""
        np.matmul(y, self.matrix, out=out)


def branch_of(coin: Fraction, channel: Channel, size: int) -> Branch:
    """Return the likelihood of one channel served with probability `coin`, over `size` inputs."""
    if isinstance(channel, Wave):
        return _windowed(coin, channel, size)
    if channel.d != size:
        raise ParameterError("mechanism", "waves where branches have different sizes")
    if isinstance(channel, Profile):
        return _shifted(channel, float(coin / channel.total))
    if not isinstance(channel, Table):
        raise ParameterError("mechanism", "channels that are waves, profiles or tables")
    return Dense(np.array(channel.weights, float).T * float(coin / channel.total))


def _shifted(channel: Profile, scale: float) -> Branch:
    excess = scale * (np.array(channel.weights, float) - channel.r_den)
    far = scale * channel.r_den
    if len(excess) * channel.d <= _DIRECT:
        return Convolved(far, excess)
    import scipy  # noqa: PLC0415 (same)

    length = scipy.fft.next_fast_len(channel.code_count, real=True)
    there = scipy.fft.rfft(excess, length)
    return Transformed(far, length, there, there.conj())


def _windowed(coin: Fraction, wave: Wave, size: int) -> Windowed:
    excess = wave.r_num - wave.r_den
    width = 2 * wave.c + 1
    return Windowed(
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
