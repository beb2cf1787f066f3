"""The tuned mechanism: the ready tables, what they reach, and tables that are refused."""

from fractions import Fraction
from typing import Any

import pytest

from edge_ldp import Hybrid, ParameterError, Piecewise, StochasticRounding, Tuned, from_plan
from edge_ldp.mechanisms import Response
from edge_ldp.ratio import floor_ratio

READY = ["0.001", "0.01", "0.1", "0.5", "1", "2", "4", "8"]


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("epsilon", READY)
def test_a_ready_table_keeps_its_ratio_and_is_unbiased_to_2_to_the_minus_30(
    epsilon: str, bits: int
) -> None:
    m = Tuned(epsilon=epsilon, low=-1000, high=1000, bits=bits)
    ratio = floor_ratio(epsilon)
    assert m.code_count == 1 << bits
    assert 1 < m.max_ratio <= Fraction(ratio.num, ratio.den)
    assert m.bias <= Fraction(1, 1 << 30)
    assert {sum(row) for row in m.table.weights} == {1 << 40}


@pytest.mark.parametrize(
    ("epsilon", "eight", "sixteen"),
    [
        ("0.5", 16.190, 16.052),
        ("1", 4.058, 4.005),
        ("2", 0.883, 0.869),
        ("3", 0.319, 0.307),
        ("4", 0.140, 0.130),
    ],
)
def test_worst_variances_are_those_known_to_be_reachable_or_better(
    epsilon: str, eight: float, sixteen: float
) -> None:
    """docs/methods.md, Optimal tables; eight codes do up to 1.5 % better, placed freely."""
    of = {
        bits: Tuned(epsilon=epsilon, low=0, high=1 << 30, bits=bits).unit_variance
        for bits in (3, 4)
    }
    assert 0.98 * eight <= of[3] <= 1.01 * eight
    assert 0.99 * sixteen <= of[4] <= 1.01 * sixteen


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "3", "4", "8"])
def test_sixteen_codes_beat_both_papers_mechanisms(epsilon: str) -> None:
    worst = {
        kind: kind(epsilon=epsilon, low=0, high=1 << 30).unit_variance
        for kind in (StochasticRounding, Piecewise, Hybrid)
    }
    assert Tuned(epsilon=epsilon, low=0, high=1 << 30).unit_variance < min(worst.values())


@pytest.mark.parametrize("bits", [3, 4])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4"])
def test_the_worst_variance_holds_between_the_knots_too(epsilon: str, bits: int) -> None:
    m = Tuned(epsilon=epsilon, low=0, high=512 * 17, bits=bits)
    variances = [m.variance(value) for value in range(0, m.high + 1, 17)]
    assert max(variances) <= m.worst_variance * (1 + 1e-9)
    assert max(variances) >= m.worst_variance * (1 - 1e-3)


@pytest.mark.parametrize(("epsilon", "bits", "name"), [("1.01", 4, "epsilon"), (1, 5, "bits")])
def test_what_has_no_ready_table_is_refused_with_a_way_out(
    epsilon: str, bits: int, name: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        Tuned(epsilon=epsilon, low=0, high=9, bits=bits)
    assert refused.value.name == name
    assert name == "bits" or "edge-ldp tune" in refused.value.expected


SOUND = Response(((3, 2, 1), (2, 2, 2), (1, 2, 3)), (-3, 0, 3), 1)


@pytest.mark.parametrize(
    ("response", "name"),
    [
        (Response(((3, 2, 1), (1, 2, 3)), (-3, 0, 4), 1), "weights"),  # biased by a sixth
        (Response(SOUND.weights, (-3, 0, 3), 2), "weights"),  # another scale: biased
        (Response(SOUND.weights, (3, 0, -3), 1), "outputs"),
        (Response(SOUND.weights, (-3, 3), 1), "outputs"),
        (Response(SOUND.weights, (-3, 3, 3), 1), "outputs"),
        (Response(SOUND.weights, (-3, 0, 3), 0), "scale"),
        (Response(((3, 2, 1), (2, 2, 1)), (-3, 0, 3), 1), "weights"),
    ],
)
def test_a_table_that_does_not_say_what_it_means_is_refused(response: Response, name: str) -> None:
    with pytest.raises(ParameterError) as refused:
        Tuned.of(response, low=0, high=9)
    assert refused.value.name == name


def test_tables_of_equal_weights_and_other_outputs_are_not_equal() -> None:
    """The two middle codes weigh the same everywhere, so what they decode to is free."""
    weights = ((3, 1, 1, 1), (1, 1, 1, 3))
    one = Response(weights, (-3, -1, 1, 3), 1)
    other = Response(weights, (-3, -2, 2, 3), 1)
    first, second = (Tuned.of(response, low=0, high=9) for response in (one, other))
    assert first.randomizer == second.randomizer
    assert first != second
    assert len({first, second, Tuned.of(one, low=0, high=9)}) == 2


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"table": None}, "table"),
        ({"table": {"outputs": [-3, 0, 3], "scale": 1}}, "weights"),
        ({"table": {"weights": [3], "outputs": [-3, 0, 3], "scale": 1}}, "weights"),
        ({"table": {"weights": [[3, 1], [1, 3]], "outputs": [-2.0, 2], "scale": 1}}, "outputs"),
        ({"table": {"weights": [[3, 1], [1, 3]], "outputs": [-2, 2], "scale": "1"}}, "scale"),
        ({"low": 1.5}, "low, high"),
    ],
)
def test_a_plans_table_is_checked_field_by_field(change: dict[str, Any], name: str) -> None:
    plan = Tuned.of(SOUND, low=0, high=9).to_plan()
    with pytest.raises(ParameterError) as refused:
        from_plan(plan | change)
    assert refused.value.name == name
