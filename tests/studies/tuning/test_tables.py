"""Optimal tables: every claim checked on the integers, every variance computed from them alone."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.errors import EdgeLdpError, ParameterError
from edge_ldp.mechanisms import Hybrid, Response, Tuned
from edge_ldp.mechanisms.tuned import ready_response
from edge_ldp.ratio import Ratio, floor_ratio
from studies.tuning import tables as tuning
from studies.tuning.programme import DualPoint, programme
from studies.tuning.tables import (
    SCALE,
    TuningError,
    certify_table,
    default_knots,
    knot_weights,
    solve,
    tune,
)
from tests.studies.tuning.tables import (
    assert_sound,
    expected_variance,
    is_symmetric,
    meter_like,
    worst_variance,
)

READY = Path(__file__).parents[3] / "edge_ldp" / "mechanisms" / "tables_v1.json"
EPSILONS = [
    str(e) for e in (0.001, 0.01, 0.05, 0.1, 0.2, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4, 5, 6, 8)
]
# docs/methods.md, Optimal tables: worst-case variance on [-1, 1]: 8 outputs, 16, about the limit
METHODS = {
    "0.5": (16.190, 16.052, 16.003),
    "1": (4.058, 4.005, 3.991),
    "2": (0.883, 0.869, 0.865),
    "3": (0.319, 0.307, 0.304),
    "4": (0.140, 0.130, 0.127),
}
ONE = floor_ratio(1)


@cache
def solved(epsilon: str, bits: int, knots: int) -> Response:
    return solve(floor_ratio(epsilon), bits, knots=knots)


def ready_tables() -> dict[tuple[str, int], tuple[Ratio, Response]]:
    found = {}
    for row in json.loads(READY.read_text())["tables"]:
        response = ready_response(row["epsilon"], row["bits"])
        found[row["epsilon"], row["bits"]] = (Ratio(*row["ratio"]), response)
    return found


@pytest.mark.parametrize(
    ("epsilon", "bits"),
    [
        *(("0.00014", 3), ("0.3", 4), ("11.09", 4)),
        pytest.param("0.001", 4, marks=pytest.mark.slow),
        pytest.param("8", 3, marks=pytest.mark.slow),
    ],
)
def test_a_table_is_sound_to_the_last_unit_whatever_epsilon_is(epsilon: str, bits: int) -> None:
    ratio = floor_ratio(epsilon)
    response = solved(epsilon, bits, 4)
    assert_sound(response, ratio)
    assert is_symmetric(response)
    assert (len(response.weights), len(response.outputs)) == (4, 1 << bits)
    assert response.scale == SCALE


def test_every_ready_table_is_sound_and_its_own_mirror_image() -> None:
    tables = ready_tables()
    assert list(tables) == [(epsilon, bits) for epsilon in EPSILONS for bits in (3, 4)]
    for (epsilon, bits), (ratio, response) in tables.items():
        assert ratio == floor_ratio(epsilon)
        assert len(response.outputs) == 1 << bits
        assert len(response.weights) == default_knots(ratio)
        assert_sound(response, ratio)
        certify_table(response, ratio)
        assert is_symmetric(response)


def test_the_ready_tables_reach_the_figures_of_methods_over_the_whole_interval() -> None:
    tables = ready_tables()
    for epsilon, (*figures, limit) in METHODS.items():
        for bits, figure in zip((3, 4), figures, strict=True):
            worst = worst_variance(tables[epsilon, bits][1])
            assert limit * 0.999 < worst < figure * 1.01, (epsilon, bits)


def test_more_codes_are_no_worse_and_hybrid_is_beaten() -> None:
    """But below ε = 0.05, where all there is to gain is less than the slack of 10⁻⁷ takes."""
    tables = ready_tables()
    for epsilon in EPSILONS:
        three, four = (float(worst_variance(tables[epsilon, bits][1])) for bits in (3, 4))
        hybrid = Hybrid(epsilon=epsilon, low=0, high=10**6).unit_variance
        assert four < three * (1 + 1e-4)
        assert three < hybrid * (1 if float(epsilon) >= 0.05 else 1 + 3e-7 / float(epsilon))


def test_ready_tables_leave_little_for_rounding_to_take() -> None:
    """The largest ratio uses the nominal ε to 2·10⁻⁷: the slack is all that is given away."""
    for ratio, response in ready_tables().values():
        columns = zip(*response.weights, strict=True)
        largest = max(Fraction(max(column), min(column)) for column in columns)
        assert ratio.epsilon - np.log(float(largest)) < 2e-7


def test_of_two_knots_stochastic_rounding_is_the_best_table() -> None:
    e = Fraction(ONE.num, ONE.den)
    best = ((e + 1) / (e - 1)) ** 2
    assert best <= worst_variance(solved("1", 3, 2)) < best * Fraction(1001, 1000)


def test_a_table_for_a_density_beats_the_worst_case_one_there_and_stays_sound() -> None:
    ratio, density = floor_ratio(2), meter_like(0.08)
    worst_case = solved("2", 3, 5)
    expected = solve(ratio, 3, knots=5, weights=knot_weights(density, 5))
    assert_sound(expected, ratio)
    assert expected_variance(expected, density) < 0.9 * expected_variance(worst_case, density)
    assert worst_variance(expected) > worst_variance(worst_case)


def test_an_even_density_gives_a_symmetric_table() -> None:
    even = solve(ONE, 3, knots=5, weights=knot_weights([0.5, 0.5], 5))
    assert is_symmetric(even)
    worst_case = solved("1", 3, 5)
    assert expected_variance(even, np.ones(1)) < expected_variance(worst_case, np.ones(1))


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", METHODS)
def test_solving_again_reaches_the_figures_of_methods(epsilon: str) -> None:
    ratio = floor_ratio(epsilon)
    for bits, figure in zip((3, 4), METHODS[epsilon], strict=False):
        response = solve(ratio, bits)
        assert_sound(response, ratio)
        assert worst_variance(response) < figure * 1.01


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.001", "0.5", "1", "4", "8"])
@pytest.mark.parametrize("scale", [0.08, 0.2])
def test_tables_for_meter_like_densities_gain_at_every_epsilon(epsilon: str, scale: float) -> None:
    density = meter_like(scale)
    worst_case = ready_tables()[epsilon, 4][1]
    tuned = tune(epsilon=epsilon, low=0, high=9999, density=density, even_share=0)
    assert_sound(tuned.response, floor_ratio(epsilon))
    gained = expected_variance(tuned.response, density) / expected_variance(worst_case, density)
    assert gained < {"0.001": 1.0001, "0.5": 0.999, "1": 0.98, "4": 0.8, "8": 0.8}[epsilon]


@pytest.mark.slow
def test_a_share_of_even_density_bounds_what_rare_values_pay() -> None:
    density = meter_like(0.08)
    bare, mixed = (
        tune(epsilon=4, low=0, high=9999, density=density, even_share=share).response
        for share in (0, 0.1)
    )
    assert expected_variance(mixed, density) < 1.1 * expected_variance(bare, density)
    assert worst_variance(mixed) < Fraction(7, 10) * worst_variance(bare)


def test_tune_gives_the_ready_made_mechanism_for_any_epsilon() -> None:
    tuned = tune(epsilon="0.4", low=-50, high=150, bits=3)
    assert isinstance(tuned, Tuned)
    assert (tuned.low, tuned.high, tuned.code_count, tuned.size) == (-50, 150, 8, 5)
    assert tuned.max_ratio <= Fraction(floor_ratio("0.4").num, floor_ratio("0.4").den)
    assert tuned.unit_variance == pytest.approx(float(worst_variance(tuned.response)), rel=1e-9)
    for value in (-50, 13, 150):
        law = enumerate(tuned.probabilities(value))
        mean = sum((p * tuned.decode_exact(j) for j, p in law), Fraction(0))
        assert abs(mean - value) <= Fraction(200, 1 << 30)


def test_tune_takes_an_estimated_density() -> None:
    density = meter_like(0.1)
    tuned = tune(epsilon="0.5", low=0, high=40, bits=3, density=density)
    plain = tune(epsilon="0.5", low=0, high=40, bits=3, density=density, even_share=1)
    assert is_symmetric(plain.response)
    assert not is_symmetric(tuned.response)
    assert expected_variance(tuned.response, density) < expected_variance(plain.response, density)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any), st.integers(2, 20))
def test_knot_weights_are_the_law_of_rounding_to_the_knots(cells: list[int], knots: int) -> None:
    """Against the hats' integrals by fractions: exact, for hats are linear between breakpoints."""
    density = [Fraction(cell, sum(cells)) for cell in cells]
    at = [Fraction(i, knots - 1) for i in range(knots)]
    breaks = sorted({*at, *(Fraction(i, len(cells)) for i in range(len(cells) + 1))})
    expected = [Fraction(0)] * knots
    for left, right in pairwise(breaks):
        middle = (left + right) / 2
        mass = density[int(middle * len(cells))] * len(cells) * (right - left)
        index, share = divmod(middle * (knots - 1), 1)
        expected[int(index)] += mass * (1 - share)
        expected[int(index) + 1] += mass * share
    weights = knot_weights([float(p) for p in density], knots)
    np.testing.assert_allclose(weights, [float(p) for p in expected], atol=1e-12)
    assert weights.min() >= 0


def test_more_knots_are_spent_only_where_they_buy_something() -> None:
    spent = [default_knots(floor_ratio(epsilon)) for epsilon in ("0.001", "0.5", "1", "4", "4.5")]
    assert spent == [5, 5, 9, 17, 33]


def test_without_a_solution_there_is_no_table() -> None:
    made = programme(ONE.num / ONE.den, 5, 8, None)
    with pytest.raises(TuningError, match="no solution"):
        tuning.certified(made, None, ONE)
    none = np.zeros((made.rows, 8))
    with pytest.raises(TuningError, match="no solution"):
        tuning.certified(made, DualPoint(1.0, np.linspace(-0.9, 0.9, 8), none[0], none), ONE)


def _with_weight(response: Response, i: int, j: int, weight: Any) -> Response:
    rows = [list(row) for row in response.weights]
    rows[i][j] = weight
    return replace(response, weights=tuple(tuple(row) for row in rows))


def _one_unit_moved(response: Response) -> Response:
    """A column's largest weight one above the ratio times its smallest, the total kept."""
    least = min(row[7] for row in response.weights)
    rows = [list(row) for row in response.weights]
    rows[2][0] -= least * ONE.num // ONE.den + 1 - rows[2][7]
    rows[2][7] = least * ONE.num // ONE.den + 1
    return replace(response, weights=tuple(tuple(row) for row in rows))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda r: replace(r, weights=r.weights[:1]), "not a table"),
        (lambda r: replace(r, outputs=r.outputs[1:]), "not a table"),
        (lambda r: replace(r, scale=0), "not a table"),
        (lambda r: _with_weight(r, 0, 0, float(r.weights[0][0])), "not integers"),
        (lambda r: replace(r, scale=float(r.scale)), "not integers"),
        (lambda r: replace(r, outputs=r.outputs[::-1]), "outputs do not rise"),
        (lambda r: _with_weight(r, 0, 0, 0), "a weight below 1, or a row total that is not 2^40"),
        (
            lambda r: _with_weight(r, 1, 3, r.weights[1][3] + 1),
            "a weight below 1, or a row total that is not 2^40",
        ),
        (_one_unit_moved, "a ratio above the one allowed"),
        (
            lambda r: replace(r, outputs=(*r.outputs[:-1], r.outputs[-1] + 1)),
            "a bias above 2^-30 of the range",
        ),
    ],
)
def test_a_table_damaged_anywhere_is_not_certified(
    damage: Callable[[Response], Response], reason: str
) -> None:
    small = solved("1", 3, 3)
    certify_table(small, ONE)
    with pytest.raises(TuningError) as caught:
        certify_table(damage(small), ONE)
    assert caught.value.reason == reason
    assert isinstance(caught.value, EdgeLdpError)


def test_the_ratio_is_certified_to_the_unit() -> None:
    small = solved("1", 3, 3)
    columns = list(zip(*small.weights, strict=True))
    most, least = max(((max(c), min(c)) for c in columns), key=lambda c: Fraction(*c))
    certify_table(small, Ratio(most, least))
    with pytest.raises(TuningError, match="ratio"):
        certify_table(small, Ratio(most - 1, least))


def test_arguments_that_make_no_sense_are_refused_by_name() -> None:
    even = [0.2] * 5
    calls: dict[str, Callable[[], object]] = {
        "bits": lambda: solve(ONE, 5),
        "ratio": lambda: solve(Ratio((1 << 13) + 1, 1 << 13)),
        "knots": lambda: solve(ONE, knots=1),
        "weights": lambda: solve(ONE, knots=4, weights=even),
        "density": lambda: knot_weights([[0.5, 0.5]], 5),
        "even_share": lambda: tune(epsilon=1, low=0, high=9, density=even, even_share=1.5),
    }
    for name, call in calls.items():
        with pytest.raises(ParameterError) as caught:
            call()
        assert caught.value.name == name
    with pytest.raises(ParameterError, match="ratio"):
        solve(Ratio((1 << 16) + 1, 1))
    with pytest.raises(ParameterError, match="knots"):
        solve(ONE, knots=130)
    for broken in ([], [nan, 1], [inf], [-0.5, 1.5], [0.5, 0.4]):
        with pytest.raises(ParameterError, match="weights"):
            solve(ONE, knots=max(len(broken), 2), weights=broken)
        with pytest.raises(ParameterError, match="density"):
            tune(epsilon=1, low=0, high=9, density=broken)
    for epsilon in (0, -1, nan, 33):
        with pytest.raises(ParameterError, match="epsilon"):
            tune(epsilon=epsilon, low=0, high=9)
    with pytest.raises(ParameterError, match="low"):
        tune(epsilon="0.4", low=9, high=9, bits=3)
