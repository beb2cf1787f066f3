"""Which ε the plans of a fleet need: the largest, rounded so that it suffices."""

from dataclasses import replace
from decimal import Decimal

import pytest

from agent.commands.setup.asked_plans import epsilon_of
from edge_ldp.mechanisms import SquareWave
from edge_ldp.protocol.plan import judge
from edge_ldp.protocol.signing import Envelope
from edge_ldp.ratio import floor_ratio
from tests.agent.samples import make_config, make_plan

PLAN = make_plan(1)


@pytest.mark.parametrize(
    "epsilon", ["0.25", "0.3333", "0.5", "1", "1.25", "2", "3.14159", "4", "8"]
)
def test_what_is_told_suffices_and_hardly_less_would_PLN_20(epsilon: str, tmp_path: object) -> None:
    plan = make_plan(1, epsilon=epsilon)
    needed = epsilon_of({"power": plan.to_json()})
    assert Decimal(epsilon) <= needed <= Decimal(epsilon) * Decimal("1.01")
    (policy,) = make_config(f"{tmp_path}/s.db").policies()  # type: ignore[arg-type]
    for allowed, code in ((needed, None), (needed * Decimal("0.98"), "ratio")):
        found = judge(plan, replace(policy, ratio=floor_ratio(allowed)), epoch=None, now_s=None)
        assert (found and found.code) == code


def test_the_dearest_mechanism_of_the_dearest_plan_counts_signed_or_not_PLN_20() -> None:
    dear = replace(PLAN, survey_mechanism=SquareWave(epsilon=3, low=0, high=4000, size=32))
    signed = Envelope(bytes(8), bytes(64), dear.to_json()).to_bytes()
    assert epsilon_of({"a": PLAN.to_json(), "b": signed}) == 3


def test_what_is_no_plan_says_nothing_PLN_20() -> None:
    for payload in (b"", b"{}", b"ELDPsig1", PLAN.to_json()[:-1]):
        assert epsilon_of({"power": payload}) == 0
    assert epsilon_of({}) == 0
