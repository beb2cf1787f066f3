"""Runs of neighbouring codes: where reports may be too many, and what a liar's share of them is.

A liar may send one code, the few highest or any stretch, so excess is looked for in blocks of
neighbouring codes of all sizes 1, 2, 4, …, and in as many of the lowest and highest, branch by
branch. An atom is a run that liars send alone, evenly: a further column beside the mechanism's own.
Source: docs/methods.md, Poisoned reports; atoms: Du et al., ICDE 2023 (arXiv 2302.09315), one there
for each code.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.estimate.operator import Operator

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from edge_ldp.estimate.model import Model

    Floats = NDArray[np.float64]

Run = tuple[int, int]  # codes first..stop−1


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
        observed, expected = self._sums(counts), self._sums(n * law)
        rest, rest_expected = np.maximum(n - observed, 0), np.maximum(n - expected, 0)
        ratio = 2 * (
            scipy.special.rel_entr(observed, expected) + scipy.special.rel_entr(rest, rest_expected)
        )
        return np.asarray(np.sign(observed - expected) * np.sqrt(np.maximum(ratio, 0)))

    def run(self, k: int) -> Run:
        """Return the run of one index."""
        return int(self.first[k]), int(self.stop[k])

    def _sums(self, y: Floats) -> Floats:
        below = np.concatenate([[0.0], np.cumsum(y)])
        return np.asarray(below[self.stop] - below[self.first])


def runs_of(operator: Operator) -> Runs:
    """Return the runs, about two a code; none holds all codes, or one of probability 0."""
    found = {
        run
        for start, end in zip(operator.cuts, operator.cuts[1:], strict=False)
        if operator.possible[start]
        for run in _blocks(start, end)
    }
    possible = int(operator.possible.sum())
    ends = np.array(sorted(run for run in found if run[1] - run[0] < possible), dtype=np.intp)
    return Runs(ends[:, 0], ends[:, 1])


@dataclass(frozen=True, slots=True, eq=False)
class _Mixed:
    """Honest inputs, then one more input for each atom: a liar who sends its run evenly."""

    honest: Operator
    atoms: tuple[Run, ...]

    def apply(self, x: Floats, out: Floats) -> None:
        """Put the probability of each code in `out`."""
        inputs = self.honest.inputs
        self.honest.apply(x[:inputs], out)
        for share, (first, stop) in zip(x[inputs:], self.atoms, strict=True):
            out[first:stop] += share / (stop - first)

    def adjoint(self, y: Floats, out: Floats) -> None:
        """Put Σ_j P(j|i)·y_j for every input i and then every atom in `out`."""
        inputs = self.honest.inputs
        self.honest.adjoint(y, out[:inputs])
        for k, (first, stop) in enumerate(self.atoms, start=inputs):
            out[k] = y[first:stop].mean()

    def unscaled(self) -> _Mixed:
        """Return the same: an atom's column must keep its scale beside the honest ones."""
        return self


def with_atoms(model: Model, atoms: Sequence[Run]) -> Model:
    """Return the model [M ; atoms]: its last inputs are the atoms, one cell each."""
    inputs = model.operator.inputs + len(atoms)
    operator = Operator(
        inputs=inputs,
        codes=model.operator.codes,
        possible=model.operator.possible,
        branches=(_Mixed(model.operator, tuple(atoms)),),
        cuts=(0, model.operator.codes),
    )
    beyond = model.edges[-1] + np.arange(1, len(atoms) + 1)  # a Density's edges rise: cells in name
    return replace(model, operator=operator, edges=np.concatenate([model.edges, beyond]))


def _blocks(start: int, end: int) -> Iterator[Run]:
    size = 1
    while size < end - start:
        for first in range(start, end, size):
            yield first, min(first + size, end)
        yield end - size, end
        size *= 2
    yield start, end
