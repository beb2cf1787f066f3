"""Laws of honest crowds and of liars, which the other tests of poisoning draw from."""

import numpy as np
import pytest

from edge_ldp import Hybrid, Mechanism, SquareWave
from edge_ldp.estimate.operator import operator_of
from edge_ldp.mechanisms import GeneralWave, Tuned
from edge_ldp.mechanisms.tuned import Response

MECHANISMS: list[Mechanism] = [
    Hybrid(epsilon=1, low=0, high=60, size=16),
    Hybrid(epsilon="0.5", low=0, high=30, size=16),  # coin 0: SR alone
    SquareWave(epsilon=1, low=0, high=63, size=32),
    GeneralWave(epsilon=1, low=0, high=63, size=32, top="0.4"),
    GeneralWave(epsilon=1, low=0, high=63, size=8, b="1.5"),  # wider than its inputs
    Tuned(epsilon=2, low=0, high=64),
    Tuned.of(Response(((3, 2, 1), (1, 2, 3)), (-3, 0, 3), 1), low=-5, high=9),
]


def honest_law(mechanism: Mechanism, density: str = "slope") -> np.ndarray:
    """Law of the codes where low values are common, or rare spikes, or only the ends."""
    operator = operator_of(mechanism)
    x = np.exp(-np.arange(operator.inputs) / (operator.inputs / 4))
    if density == "spikes":
        x = np.exp(-np.arange(operator.inputs) / (operator.inputs / 20)) / operator.inputs
        x[0], x[operator.inputs // 3] = x[0] + 3, x[operator.inputs // 3] + 2
    if density == "ends":
        x = np.zeros(operator.inputs)
        x[0], x[-1] = 0.7, 0.3
    law = operator.apply(x / x.sum()).copy()
    return np.asarray(law / law.sum())


def input_law(mechanism: Mechanism) -> np.ndarray:
    """Law of the codes of a liar who follows the protocol with the highest value."""
    return np.array([float(p) for p in mechanism.probabilities(mechanism.high)])


def at_code(mechanism: Mechanism, code: int) -> np.ndarray:
    """Law of a liar who sends one code; negative codes count from the last."""
    law = np.zeros(mechanism.code_count)
    law[code] = 1
    return law


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_every_law_adds_up_to_1_and_has_no_impossible_code(mechanism: Mechanism) -> None:
    possible = operator_of(mechanism).possible
    laws = [honest_law(mechanism, kind) for kind in ("slope", "spikes", "ends")]
    for law in [*laws, input_law(mechanism)]:
        assert law.sum() == pytest.approx(1)
        assert (law[possible] > 0).all()
        assert not law[~possible].any()
