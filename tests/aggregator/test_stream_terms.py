"""Which mechanism and θ are asked for, as a stream's configuration allows."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator import planner
from aggregator.adaptive import Aim, Setting, State
from aggregator.adaptive.posterior import Posterior
from aggregator.adaptive.regret import costs_on
from aggregator.adaptive.shape import hypotheses
from aggregator.config import StreamTable
from aggregator.estimate.joint import cells
from aggregator.stream_terms import terms
from edge_ldp import Hybrid, Mechanism, SquareWave, Tuned
from edge_ldp.certify import certify_plan
from edge_ldp.plan import Plan, Policy, judge, parse_plan
from edge_ldp.ratio import floor_ratio

Floats = NDArray[np.float64]
STREAM = StreamTable(name="power", id=1, unit="W", ceiling=20_000, epsilon=1, horizon=10**6)
CHOSEN = replace(STREAM, mechanism="chosen")
SETTING = Setting(0, 20_000, 1, Aim(STREAM.sums(1000).unit_variance, STREAM.horizon))
EDGES = cells(0, 20_000)
FIRST = planner.first_plan("demo", STREAM, epoch=1, now_s=0)


def exponential(mean: float) -> Floats:
    law = -np.diff(np.exp(-EDGES / mean))
    return np.asarray(law / law.sum())


def knowing(*densities: Floats) -> State:
    samples = np.stack(densities, axis=1)
    return State((), Posterior(EDGES, samples, samples[:, 0], hypotheses(0.5)[0]))


STATE = knowing(exponential(280), exponential(300), exponential(320))
THETA = costs_on(EDGES, SETTING.aim).choose(STATE.posterior.samples)[0] if STATE.posterior else 0


def under(stream: StreamTable, sums: Mechanism) -> Plan:
    plan = planner.following(FIRST, stream, sums, (0, 8000), now_s=5)
    assert plan is not None
    return plan


@pytest.mark.parametrize("mechanism", ["hybrid", "tuned"])
def test_a_configured_mechanism_is_what_is_asked_for(
    mechanism: Literal["hybrid", "tuned"],
) -> None:
    stream = replace(STREAM, mechanism=mechanism)
    found = terms(stream, SETTING, STATE, THETA, FIRST)
    assert found.sums == stream.sums(THETA)
    assert found.gain > 1  # θ stood at the ceiling
    assert found.correction is None


@pytest.mark.slow  # a linear programme
def test_the_cheapest_mechanism_is_chosen_with_its_theta_and_a_device_accepts_it() -> None:
    found = terms(CHOSEN, SETTING, STATE, THETA, FIRST)
    assert isinstance(found.sums, Tuned)
    assert found.sums != Tuned(epsilon=1, low=0, high=found.sums.high)  # made for this density
    assert 0.5 * THETA < found.sums.high < 1.5 * THETA
    assert "own table" in found.reasons[0]
    plan = parse_plan(under(CHOSEN, found.sums).to_json())
    assert planner.matches(plan, "demo", CHOSEN)
    assert certify_plan(plan).holds
    policy = Policy("demo", "power", "W", 900, 0, 20_000, floor_ratio(1))
    assert judge(plan, policy, epoch=1, now_s=5) is None
    stays = terms(CHOSEN, SETTING, STATE, THETA, plan)
    assert stays.gain == pytest.approx(0, abs=1e-9)
    from_hybrid = terms(CHOSEN, SETTING, STATE, THETA, under(CHOSEN, STREAM.sums(THETA)))
    assert 0.05 < from_hybrid.gain < 0.15  # as the documented tables: 9 % less


def test_a_device_whose_policy_names_the_hybrid_alone_refuses_a_table() -> None:
    plan = under(CHOSEN, Tuned(epsilon=1, low=0, high=5000))
    kinds = frozenset({Hybrid.name, SquareWave.name})
    policy = Policy("demo", "power", "W", 900, 0, 20_000, floor_ratio(1), kinds)
    assert judge(plan, policy, epoch=1, now_s=5) == "mechanism"


def test_a_stored_table_is_kept_only_where_the_mechanism_may_be_chosen() -> None:
    plan = under(CHOSEN, Tuned(epsilon=1, low=0, high=5000))
    assert planner.matches(plan, "demo", CHOSEN)
    assert not planner.matches(plan, "demo", STREAM)
    assert not CHOSEN.allows(Tuned(epsilon=2, low=0, high=5000))  # more than is configured
    assert not CHOSEN.allows(Tuned(epsilon=1, low=5, high=5000))
    assert CHOSEN.allows(Tuned(epsilon=Decimal("0.5"), low=0, high=5000))
    assert CHOSEN.allows(STREAM.sums(77))
    assert not CHOSEN.allows(Hybrid(epsilon=2, low=0, high=77))


def test_a_theta_too_low_for_tables_gets_the_hybrid() -> None:
    narrow = knowing(exponential(5), exponential(6))
    theta = costs_on(EDGES, SETTING.aim).choose(np.stack([exponential(5), exponential(6)], 1))[0]
    assert theta < 256
    found = terms(CHOSEN, SETTING, narrow, theta, FIRST)
    assert found.sums.name == "hybrid"
    assert found.reasons == ("hybrid: least expected cost of hybrid",)


def test_for_corrected_sums_theta_is_lower_and_the_reason_says_by_how_much() -> None:
    stream = replace(STREAM, corrected_sums=True)
    found = terms(stream, SETTING, STATE, THETA, FIRST)
    assert found.sums.high < 0.8 * THETA
    assert found.correction is not None
    bias, sd = found.correction
    assert 0 < sd < bias
    assert "corrected by" in found.reasons[0]
    stays = terms(stream, SETTING, STATE, THETA, under(stream, STREAM.sums(found.sums.high)))
    assert stays.gain == pytest.approx(0, abs=1e-9)
    assert found.gain > 0


@pytest.mark.slow  # a linear programme
def test_both_choices_go_together() -> None:
    stream = replace(CHOSEN, corrected_sums=True)
    found = terms(stream, SETTING, STATE, THETA, FIRST)
    assert found.sums.name == "tuned"
    assert found.sums.high < 0.9 * THETA
    assert len(found.reasons) == 2
