"""What an estimator by likelihood needs to know: how codes come about, and what the cells are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, Union

from edge_ldp.device.randomizer import LATTICE
from edge_ldp.estimate.density import edges_of
from edge_ldp.estimate.operator import Operator, operator_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edge_ldp import Mechanism


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
