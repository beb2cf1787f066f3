"""Take out of a crowd's counts what no honest device can have sent, after the alarm and only then.

The likelihood gets further columns, [M ; atoms]: runs of codes that liars send evenly. They are
taken up one by one, the run with the largest excess first, until none exceeds what honest reports
gave in the alarm's own draws; EM over all columns then splits every code's reports between honest
inputs and atoms. One column for every code would also swallow honest noise (its positive half).
Source: docs/methods.md, Poisoned reports; EMF: Du et al., ICDE 2023 (arXiv 2302.09315).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from edge_ldp import Mechanism
from edge_ldp.arrays import Floats
from edge_ldp.checks import MECHANISM, a, taking
from edge_ldp.estimate.density import Density
from edge_ldp.estimate.em import checked_counts, ems
from edge_ldp.estimate.operator import Branch, Model, Modelled, Operator, model_of
from edge_ldp.poisoning.alarm import Alarm, Run, code_law, fit, runs_of
from edge_ldp.vectorized import decode_table

MAX_ATOMS = 32
WIDE_SHARE = 4  # an atom over a quarter of its branch's codes is wide
QUIET = "no alarm: nothing was taken out"
FILTERED = (
    "reports were taken out as no honest device's; liars who follow the protocol are still among "
    "the rest, and no figure shows them"
)
NOWHERE = "the counts fit no density, but no run of codes stands out: nothing was taken out"
WIDE = (
    "some were taken from a wide stretch of codes that honest reports fill too: the share, and all "
    "that rests on it, may be far off"
)
UNEXPLAINED = "the counts fit no density even after the filter took out all it can"


@dataclass(frozen=True, slots=True)
class Atom:
    """Codes first..last, and the share of all reports that liars put there."""

    first: int
    last: int
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class Cleaned:
    """What is left of the counts: `counts` per code, fractions, of honest reports.

    `share`: of reports taken out, the estimated share of liars who break the protocol; `density`
    and `mean` (of decoded reports, unit of the stream) are of what is left.
    """

    density: Density
    counts: Floats
    mean: float
    share: float
    atoms: tuple[Atom, ...]
    warnings: tuple[str, ...]


def _fixed_point(mechanism: Modelled, counts: ArrayLike, /) -> Density:
    return ems(mechanism, counts, accelerate=True)


@taking(mechanism=MECHANISM, alarm=a("edge_ldp.poisoning.alarm.Alarm"))
def clean(
    mechanism: Mechanism,
    counts: ArrayLike,
    alarm: Alarm,
    *,
    estimator: Callable[[Modelled, ArrayLike], Density] = _fixed_point,
) -> Cleaned:
    """Return counts, density and mean without what the atoms explain better than any density.

    `alarm`: the verdict on the same counts; unless it rings they are returned as they are.
    `estimator` turns the cleaned counts into the density, which carries the warnings too. Cost: a
    fit for each atom, at most 32. Raises CountsError, NoReportsError.
    """
    model = model_of(mechanism)
    given = checked_counts(model.operator, counts)
    runs, capped = _suspects(model, given, alarm.limit) if alarm.rings else ([], False)
    atoms, left = _split(model, given, runs)
    conditions = (
        (QUIET, not alarm.rings),
        (NOWHERE, alarm.rings and not atoms),
        (FILTERED, bool(atoms)),
        (WIDE, any(_is_wide(model, atom) for atom in atoms)),
        (UNEXPLAINED, capped),
    )
    warnings = tuple(warning for warning, is_so in conditions if is_so)
    found = estimator(mechanism, left)
    return Cleaned(
        density=replace(found, warnings=(*found.warnings, *warnings)),
        counts=left,
        mean=float(left @ decode_table(mechanism) / left.sum()),
        share=sum(atom.share for atom in atoms),
        atoms=atoms,
        warnings=warnings,
    )


def _suspects(model: Model, counts: Floats, limit: float) -> tuple[list[Run], bool]:
    """Return the runs to make atoms of, and whether there would have been more."""
    runs = runs_of(model.operator)
    free = np.ones(len(runs.first), dtype=bool)
    chosen: list[Run] = []
    joint = model
    while True:
        excess = runs.excess(counts, code_law(joint, fit(joint, counts)))
        worst = int(np.argmax(np.where(free, excess, -np.inf)))
        if not (free[worst] and excess[worst] > limit):
            return chosen, False
        if len(chosen) == MAX_ATOMS:
            return chosen, True
        free[worst] = False
        chosen.append(runs.run(worst))
        joint = with_atoms(model, chosen)


def _split(model: Model, counts: Floats, runs: list[Run]) -> tuple[tuple[Atom, ...], Floats]:
    """Return the atoms that EM gives mass to, and every code's reports that it gives to inputs."""
    if not runs:
        return (), counts
    joint = with_atoms(model, runs)
    mass = fit(joint, counts).probabilities
    honest = model.operator.apply(mass[: model.operator.inputs])
    law = joint.operator.apply(mass)
    left = counts * np.divide(honest, law, out=np.ones_like(law), where=law > 0)
    atoms = tuple(
        Atom(first, stop - 1, float(share))
        for (first, stop), share in zip(runs, mass[model.operator.inputs :], strict=True)
        if share * counts.sum() >= 1
    )
    return atoms, left


def _is_wide(model: Model, atom: Atom) -> bool:
    """Say whether honest devices of some value fill the atom much as liars would."""
    return any(
        start <= atom.first < end and WIDE_SHARE * (atom.last + 1 - atom.first) >= end - start
        for start, end in pairwise(model.operator.cuts)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Mixed(Branch):
    """Honest inputs, then one more input for each atom: a liar who sends its run evenly.

    Never unscaled: an atom's column must keep its scale beside the honest ones.
    """

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
