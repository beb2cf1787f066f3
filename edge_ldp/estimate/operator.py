"""The likelihood of a mechanism as a linear operator: the branches of a mixture, stacked.

Each branch is weighted by its coin. A cumulative sum costs 4 ns an entry and is most of the work,
so the rest is kept from adding to it: scratch space is made once (an operator serves one thread),
results may go `out` to given arrays. Source: docs/design.md, Estimation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS, LATTICE
from edge_ldp.estimate.branches import branch_of
from edge_ldp.estimate.density import edges_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp import Mechanism
    from edge_ldp.estimate.branches import Branch

    Floats = NDArray[np.float64]


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
