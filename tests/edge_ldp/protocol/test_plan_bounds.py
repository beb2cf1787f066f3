"""The shape of plans: each bound at its edge, and the information of a report, exactly (PLN-14)."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import Hybrid, Mechanism, Piecewise, SquareWave, StochasticRounding, Tuned
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms import Response
from edge_ldp.protocol.plan import Plan, Policy, judge
from edge_ldp.protocol.plan_bounds import (
    PlanBounds,
    PlanRequest,
    Refusal,
    information,
    least_theta,
    loosened,
    misshape,
)
from edge_ldp.ratio import Ratio, floor_ratio
from tests.edge_ldp.laws import small

CEILING = 43_470
SHAPE = PlanBounds()
ONE = floor_ratio(1)
POLICY = Policy("north", "power", "W", 900, 0, CEILING, ONE)
ASKED = PlanRequest(
    low=0,
    ceiling=CEILING,
    ratio=ONE,
    sums=Hybrid(epsilon=1, low=0, high=4420, size=16),
    survey=SquareWave(epsilon=1, low=0, high=CEILING),
    share=(1, 4),
)
PLAN = Plan(
    "north", "power", 1, "W", 7, 0, 1 << 40, 900, 0, CEILING, (1, 4), ASKED.sums, ASKED.survey
)


def found(shape: PlanBounds = SHAPE, **changes: Any) -> str | None:
    bound = misshape(ASKED._replace(**changes), shape)
    return bound and bound.code


def hybrid(high: int, size: int = 16, low: int = 0) -> Mechanism:
    return Hybrid(epsilon=1, low=low, high=high, size=size)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, None),
        ({"sums": hybrid(CEILING, 64)}, None),
        ({"sums": hybrid(4419)}, "sharp"),
        ({"sums": hybrid(2717, 4)}, None),  # 43,470 / 16 = 2,716.9
        ({"sums": hybrid(2716, 4)}, "narrow"),
        ({"sums": StochasticRounding(epsilon=1, low=0, high=2717)}, None),
        ({"sums": StochasticRounding(epsilon=1, low=0, high=2716)}, "narrow"),
        ({"sums": hybrid(4000, low=1)}, "low"),
        ({"sums": hybrid(4645, 17)}, None),
        ({"sums": hybrid(4644, 17)}, "sharp"),
        ({"sums": hybrid(6384, 32)}, "sharp"),
        ({"survey": SquareWave(epsilon=1, low=0, high=CEILING, size=2)}, None),
        ({"survey": SquareWave(epsilon=1, low=0, high=CEILING, size=1023)}, "buckets"),
        ({"survey": SquareWave(epsilon=1, low=0, high=CEILING, size=2048)}, "buckets"),
        ({"survey": SquareWave(epsilon=1, low=0, high=CEILING - 1)}, "survey"),
        ({"survey": SquareWave(epsilon=1, low=0, high=CEILING // 2)}, "survey"),
        ({"survey": SquareWave(epsilon=1, low=1, high=CEILING)}, "survey"),
        ({"share": (1, 1)}, None),
    ],
)
def test_each_bound_holds_at_its_edge_and_names_itself_PLN_14(
    changes: dict[str, Any], code: str | None
) -> None:
    assert found(**changes) == code


def test_halved_surveys_are_admitted_where_the_owner_says_so_on_the_same_grid() -> None:
    shape = PlanBounds(survey_halvings=1)
    half = SquareWave(epsilon=1, low=0, high=21_734, size=512)
    assert found(shape, survey=half) is None
    assert found(shape, survey=SquareWave(epsilon=1, low=0, high=21_734, size=1024)) == "buckets"
    assert found(shape, survey=SquareWave(epsilon=1, low=0, high=10_866, size=256)) == "survey"


def test_a_most_share_of_surveys_is_kept() -> None:
    shape = PlanBounds(survey_share=Fraction(1, 4))
    assert found(shape) is None
    assert found(shape, share=(1001, 4000)) == "share"


def test_a_range_of_few_values_may_have_a_bucket_for_each() -> None:
    survey = SquareWave(epsilon=1, low=0, high=99, size=100)
    asked = PlanRequest(0, 99, ONE, hybrid(50, 4), survey, (1, 2))
    assert misshape(asked, PlanBounds()) is None


@pytest.mark.parametrize(
    ("changes", "needed"),
    [
        ({}, {}),
        ({"sums": hybrid(2716)}, {"theta_halvings": 5}),
        ({"sums": hybrid(5)}, {"theta_halvings": 14}),  # 13 for its place, one more: it is sharp
        ({"survey": SquareWave(epsilon=1, low=0, high=(CEILING + 1 >> 2) - 1, size=256)},
         {"survey_halvings": 2}),
        ({"survey": SquareWave(epsilon=1, low=0, high=CEILING, size=4096)},
         {"survey_buckets": 4096}),
        ({"sums": hybrid(5000, low=1)}, None),
        ({"survey": SquareWave(epsilon=1, low=0, high=CEILING - 9)}, None),
        ({"survey": SquareWave(epsilon=1, low=0, high=CEILING, size=1000)}, None),
    ],
)  # fmt: skip
def test_what_an_owner_must_allow_for_a_plan_is_as_little_as_it_takes(
    changes: dict[str, Any], needed: dict[str, Any] | None
) -> None:
    asked = ASKED._replace(**changes)
    wanted = None if needed is None else replace(SHAPE, **needed)
    assert loosened(asked, SHAPE) == wanted
    for name, value in (needed or {}).items():
        assert wanted is not None
        less = value // 2 if name == "survey_buckets" else value - 1
        assert misshape(asked, replace(wanted, **{name: less})) is not None


def test_a_refusal_names_its_numbers_PLN_14() -> None:
    assert misshape(ASKED._replace(sums=hybrid(41)), PlanBounds()) == Refusal(
        "narrow", "θ 41: at least 2717"
    )
    sharp = misshape(ASKED._replace(sums=hybrid(2717, 256)), PlanBounds())
    assert sharp == Refusal("sharp", "a report errs by 220: at least 1505")


def test_the_device_refuses_by_its_own_range_whatever_the_plan_calls_the_ceiling_PLN_14() -> None:
    """A plan of a lower ceiling and a θ to match would ask as sharply as it likes."""
    survey = SquareWave(epsilon=1, low=0, high=99, size=64)
    pry = replace(PLAN, ceiling=99, stream_mechanism=hybrid(99), survey_mechanism=survey)
    assert judge(PLAN, POLICY, epoch=6, now_s=0) is None
    refusal = judge(pry, POLICY, epoch=6, now_s=0)
    assert refusal is not None
    assert refusal.code == "narrow"


def test_a_binary_search_by_rounding_over_one_watt_is_refused_PLN_14() -> None:
    """What found constant loads exactly in 120 of 120 homes: every plan of it is refused."""
    for middle in range(0, 3000, 7):
        probe = StochasticRounding(epsilon=1, low=middle, high=middle + 1)
        assert found(sums=probe) in ("low", "narrow")


def test_rows_that_go_to_and_fro_are_refused_though_their_ratio_is_allowed_PLN_14() -> None:
    """A table whose rows alternate tells a value modulo two steps; no table for sums does."""
    response = Response(((3, 1, 3, 1), (1, 3, 1, 3)) * 8, (-4, -2, 2, 4), 1)
    with pytest.raises(ParameterError, match="bias"):
        Tuned.of(response, low=0, high=2717)


MADE = [
    hybrid(2717),
    hybrid(900, 64),
    StochasticRounding(epsilon=2, low=0, high=777),
    Piecewise(epsilon="0.5", low=0, high=1234, size=32),
    Tuned(epsilon=1, low=0, high=3000),
    Tuned(epsilon=4, low=0, high=3000, bits=3),
    small(Piecewise, 0, 300, (5, 0, 3, 1)),
]


def told(mechanism: Mechanism, value: int) -> float:
    """Return the larger chi-square of a value's law against those one unit beside it."""
    law = mechanism.probabilities(value)
    beside = [at for at in (value - 1, value + 1) if mechanism.low <= at <= mechanism.high]
    return float(max(chi_square(law, mechanism.probabilities(at)) for at in beside))


def chi_square(law: list[Fraction], other: list[Fraction]) -> Fraction:
    """Return Σ (other − law)²/law over the codes, exactly; both must have the same support."""
    pairs = [(p, q) for p, q in zip(law, other, strict=True) if p and p != q]  # few codes differ
    return sum(((q - p) ** 2 / p for p, q in pairs), start=Fraction(0))


@pytest.mark.parametrize("mechanism", MADE, ids=repr)
def test_no_value_tells_more_than_the_information_that_is_stated(mechanism: Mechanism) -> None:
    """Against the exact law's own differences, at points of the lattice and between them."""
    stated = float(information(mechanism))
    values = {mechanism.high * cell // 16 + off for cell in range(16) for off in (0, 1, 8)}
    found = [told(mechanism, value) for value in sorted(values)]
    assert max(found) <= stated * (1 + 1e-6)
    assert max(found) >= stated / 2  # the bound is no waste: at a point of both lattices


@given(st.integers(2, 9), st.integers(0, 4), st.integers(1, 90), st.integers(1, 20))
def test_the_least_theta_is_admitted_and_one_less_is_not(
    size: int, c: int, extra: int, den: int
) -> None:
    ratio = Ratio(den + extra, den)

    def wave(high: int) -> Mechanism:
        return small(Piecewise, 0, high, (size, c, den + extra, den))

    least = least_theta(wave(500), PlanBounds(), low=0, ceiling=CEILING, ratio=ratio)
    asked = ASKED._replace(ratio=ratio, sums=wave(least))
    assert misshape(asked, PlanBounds()) is None
    assert misshape(asked._replace(sums=wave(least - 1)), PlanBounds()) is not None


def test_what_rounding_tells_at_the_least_theta_is_a_third_of_what_is_admitted() -> None:
    rounding = StochasticRounding(epsilon=1, low=0, high=CEILING)
    most = 1 / PlanBounds().least_square(CEILING, ONE)
    assert information(rounding) * (1 << 4) ** 2 * 3 == most
    assert round(sqrt(1 / most)) == 1505
