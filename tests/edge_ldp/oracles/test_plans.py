"""Oracles from ε, from plans, and the parameters that are refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.errors import ParameterError
from edge_ldp.oracles import Grr, HaarHrr, Hierarchy, Hrr, Olh, Oracle, Oue, oracle_from_plan
from edge_ldp.ratio import floor_ratio
from tests.edge_ldp.oracles.small import REAL, named
from tests.tables import each

KINDS = (Grr, Olh, Hrr, Oue, Hierarchy, HaarHrr)
E1 = [178_145, 65_536]  # floor(e * 2^16), 2^16


@pytest.mark.parametrize("oracle", REAL, ids=named)
def test_a_plan_carries_an_oracle_whole(oracle: Oracle) -> None:
    again = oracle_from_plan(json.loads(json.dumps(oracle.to_plan())))
    assert again == oracle
    assert hash(again) == hash(oracle)
    assert type(again) is type(oracle)
    assert again.to_plan() == oracle.to_plan()
    assert repr(again) == repr(oracle)


@given(st.sampled_from(KINDS), st.decimals("0.0001", 11, places=4), st.integers(2, 65_536))
def test_any_oracle_comes_back_from_its_plan_with_the_ratio_of_its_epsilon(
    kind: type[Any], epsilon: Any, size: int
) -> None:
    oracle = kind(epsilon=epsilon, size=size)
    assert oracle_from_plan(oracle.to_plan()) == oracle
    ratio = floor_ratio(epsilon)
    assert oracle.max_ratio * ratio.den == ratio.num


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (Grr, {"mechanism": "grr", "waves": [[9, 0, *E1]]}),
        (Olh, {"mechanism": "olh", "waves": [[3, 0, *E1]]}),
        (Hrr, {"mechanism": "hrr", "waves": [[2, 0, *E1]]}),
        (HaarHrr, {"mechanism": "haar-hrr", "waves": [[2, 0, *E1]]}),
        (Oue, {"mechanism": "oue", "ratio": E1}),
        (Hierarchy, {"mechanism": "hh", "fanout": 4, "levels": [
            Grr(epsilon=1, size=4).to_plan(), Olh(epsilon=1, size=16).to_plan()]}),
    ],
)  # fmt: skip
def test_plans_have_the_form_of_the_contract(kind: type[Any], form: dict[str, Any]) -> None:
    assert kind(epsilon=1, size=9).to_plan() == {"size": 9, **form}


def test_oracles_of_other_numbers_or_names_are_not_equal() -> None:
    one = Hrr(epsilon=1, size=8)
    assert one != Hrr(epsilon=1, size=7)
    assert one != Hrr(epsilon=2, size=8)
    assert one != HaarHrr(epsilon=1, size=8)
    assert one != "hrr"


TREE = Hierarchy(epsilon=2, size=40).to_plan()
LEVELS: Any = TREE["levels"]


@pytest.mark.parametrize(
    ("oracle", "change"),
    each(
        (Grr, *({"mechanism": name} for name in ("laplace", None, "olh "))),
        (Grr, *({"size": size} for size in (9, "8", None)), {"waves": []}),
        (Grr, *({"waves": [wave]} for wave in ([8, 1, 3, 1], [8, 0, 3], [8, 0, 3, 3]))),
        (Grr, {"waves": [[8, 0, 3, 1], [8, 0, 3, 1]]}, {"waves": [[8, 0, 1 << 64, 1]]}),
        (Olh, {"waves": [[1, 0, 3, 1]]}, {"size": 1 << 31}),
        (Hrr, {"waves": [[3, 0, 3, 1]]}),
        (HaarHrr, {"waves": [[3, 0, 3, 1]]}, {"size": 1}),
        (Oue, *({"ratio": one} for one in (None, [3], [1, 1], [3, 0], [1 << 63, 1], [3.0, 1]))),
        (Oue, {"ratio": [True, 1]}),
        (TREE, {"fanout": 5}, {"fanout": 0}, {"size": 65}, {"size": 16}),
        (TREE, *({"levels": one} for one in (None, [], LEVELS[:2], LEVELS[::-1], [7, 8, 9]))),
        (TREE, {"levels": [*LEVELS[:2], Hrr(epsilon=1, size=64).to_plan()]}),
    ),
)
def test_a_damaged_plan_gives_no_oracle(oracle: Any, change: dict[str, Any]) -> None:
    table = TREE if oracle is TREE else oracle(epsilon=1, size=8).to_plan()
    oracle_from_plan(table)
    with pytest.raises(ParameterError):
        oracle_from_plan(table | change)
