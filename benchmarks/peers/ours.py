"""The clients of edge-ldp that are measured, by name: what the installed library lacks is said."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers.timing import Case, one_by_one
from edge_ldp.entropy import system_draw
from edge_ldp.vectorized import perturb_many, perturb_oracle_many

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

EPSILON = 1
LOW, HIGH = 0, 43_470  # watts: three phases of 63 A
SIZE = 1024
STREAM = {"epsilon": EPSILON, "low": LOW, "high": HIGH}
CATEGORIES = {"epsilon": EPSILON, "size": SIZE}
AT_ONCE = 1_000_000
AT_ONCE_OUE = 2_000  # each takes 1,024 words
VALUE_STEP = 7_919  # a prime: values wander over the whole range

# (module, class, arguments), sizes where they are not the default
MECHANISMS: tuple[tuple[str, str, dict[str, int]], ...] = (
    ("edge_ldp.mechanisms", "SquareWave", STREAM | {"size": SIZE}),
    ("edge_ldp.mechanisms", "GeneralWave", STREAM | {"size": SIZE}),
    ("edge_ldp.mechanisms", "StochasticRounding", STREAM),
    ("edge_ldp.mechanisms", "Piecewise", STREAM | {"size": 256}),
    ("edge_ldp.mechanisms", "Hybrid", STREAM | {"size": 256}),
    ("edge_ldp.mechanisms", "Tuned", STREAM),
    ("edge_ldp.oracles", "Grr", CATEGORIES),
    ("edge_ldp.oracles", "Olh", CATEGORIES),
    ("edge_ldp.oracles", "Hrr", CATEGORIES),
    ("edge_ldp.oracles", "Oue", CATEGORIES),
    ("edge_ldp.oracles", "Hierarchy", CATEGORIES),
    ("edge_ldp.oracles", "HaarHrr", CATEGORIES),
)


@cache
def present() -> dict[str, Any]:
    """Return the mechanisms that the installed library has, ε = 1, by the name of their class."""
    made = {}
    for module, name, arguments in MECHANISMS:
        try:
            kind = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
        made[name] = kind(**arguments)
    return made


def absent() -> list[str]:
    """Return the names of those that it has not."""
    made = present()
    return [name for _, name, _ in MECHANISMS if name not in made]


def scalar_cases() -> list[Case]:
    """Each mechanism twice: with a draw the caller keeps, and with the default."""
    cases = []
    for name, mechanism in present().items():
        values = values_of(mechanism)
        cases += [
            Case("edge-ldp, draw kept", name, values, with_kept_draw(mechanism)),
            Case("edge-ldp", name, values, one_by_one(mechanism.perturb)),
        ]
    return cases


def array_cases() -> list[Case]:
    """One vectorised call for all reports."""
    return [
        Case("edge-ldp", name, array_of(mechanism), many(mechanism), at_once(name))
        for name, mechanism in present().items()
    ]


def at_once(name: str) -> int:
    """Return how many reports a vectorised call is measured with."""
    return AT_ONCE_OUE if name == "Oue" else AT_ONCE


def many(mechanism: Any) -> Callable[[Any], Any]:
    """Return a run of one vectorised call: codes, or an oracle's reports."""
    perturb: Any = perturb_oracle_many if is_oracle(mechanism) else perturb_many

    def run(values: NDArray[np.int64]) -> Any:
        return perturb(mechanism, values)

    return run


def is_oracle(mechanism: Any) -> bool:
    """Say whether its values are categories."""
    return not hasattr(mechanism, "randomizer")


def with_kept_draw(mechanism: Any) -> Callable[[Any], object]:
    """Return a run of scalar calls that all draw from one buffered operating-system source."""
    draw = system_draw().below

    def run(values: list[int]) -> None:
        for value in values:
            mechanism.perturb(value, draw=draw)

    return run


def values_of(mechanism: Any) -> Callable[[int], list[int]]:
    """Return what makes n values over the mechanism's whole range or all its categories."""
    low, width = (0, SIZE) if is_oracle(mechanism) else (LOW, HIGH - LOW + 1)

    def values(count: int) -> list[int]:
        return [low + k * VALUE_STEP % width for k in range(count)]

    return values


def array_of(mechanism: Any) -> Callable[[int], NDArray[np.int64]]:
    """Return what makes the same values as an array."""
    values = values_of(mechanism)

    def array(count: int) -> NDArray[np.int64]:
        return np.array(values(count), np.int64)

    return array
