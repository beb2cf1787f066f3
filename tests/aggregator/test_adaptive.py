"""The whole of it: from counts to θ and the next survey."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from aggregator import adaptive
from aggregator.adaptive import Aim, Setting, State, first_survey, observe, worth_it
from aggregator.adaptive.cold import BEYOND, GROWTH, widened
from aggregator.adaptive.decide import merged
from aggregator.adaptive.drift import surprise
from aggregator.errors import ArgumentError, CountsError, NoReportsError
from aggregator.estimate.joint import Evidence, cells, view_of
from edge_ldp import Hybrid, Mechanism

pytestmark = pytest.mark.slow  # each test estimates several epochs: minutes together

Floats = NDArray[np.float64]
AIM = Aim(unit_variance=4.289, horizon=2**20)
SETTING = Setting(low=0, ceiling=2000, epsilon=1, aim=AIM, size=128)


def values(mean: float, low: int = 0, high: int = 2000) -> Floats:
    """An exponential law of the integers low..high."""
    law = np.exp(-np.arange(high - low + 1) / mean)
    return np.asarray(law / law.sum())


def reports(mechanism: Mechanism, law: Floats, seed: int, low: int = 0) -> Evidence:
    edges = np.arange(low, low + len(law) + 1)
    codes = view_of(mechanism, edges).apply(law)
    rng = np.random.default_rng(seed)
    return Evidence(mechanism, rng.multinomial(65_536, codes / codes.sum()))


def cost(law: Floats, theta: int, low: int = 0) -> float:
    """Cost of θ up to a factor (π = 1): θ² + (2r/V)·bias²."""
    beyond = np.maximum(np.arange(len(law)) + low - theta, 0) @ law
    return float((theta - low) ** 2 + 2 * 2**20 / 4.289 * beyond**2)


def after(epochs: int, laws: list[Floats], setting: Setting = SETTING) -> list[adaptive.Decision]:
    state, mechanism, decisions = State(), first_survey(setting), []
    for epoch in range(epochs):
        law = laws[min(epoch, len(laws) - 1)]
        evidence = [reports(mechanism, law, epoch, setting.low)]
        state, decision = observe(setting, state, evidence, rng=np.random.default_rng(epoch))
        mechanism = setting.survey(decision.survey.low, decision.survey.high)
        decisions.append(decision)
    return decisions


def test_after_three_surveys_the_cost_is_near_the_best() -> None:
    law = values(30)
    best = min(cost(law, theta) for theta in range(1, 2001))
    last = after(3, [law])[-1]
    assert cost(law, last.theta) < 1.3 * best
    low, middle, high = last.spread
    assert low <= middle <= high
    assert 0 <= last.regret < 0.5
    assert last.reasons[0].startswith(f"θ = {last.theta}: ")


def test_the_same_reports_and_state_give_the_same_decision() -> None:
    assert after(2, [values(30)]) == after(2, [values(30)])


def test_a_low_below_zero_only_moves_everything() -> None:
    moved = replace(SETTING, low=-500, ceiling=1500)
    plain, shifted = after(2, [values(30)])[-1], after(2, [values(30)], moved)[-1]
    assert shifted.theta == plain.theta - 500
    assert shifted.survey == plain.survey._replace(
        low=plain.survey.low - 500, high=plain.survey.high - 500
    )


def test_values_far_from_low_get_cells_of_their_own() -> None:
    """Between 880 and 1040 the first cells are 80 wide: the values would fill three of them."""
    law = np.exp(-((np.arange(2001) - 940) ** 2) / 2 / 30**2)
    law /= law.sum()
    decisions = after(4, [law])
    best = min(cost(law, theta) for theta in range(1, 2001))
    assert cost(law, decisions[-1].theta) < 1.2 * best
    assert not any(decision.shifted for decision in decisions)


def test_seldom_asked_streams_get_a_lower_theta() -> None:
    """At π < 1 noise counts 1/π times, and the values themselves scatter too."""
    rare = replace(SETTING, aim=replace(AIM, inclusion=0.05))
    assert after(1, [values(30)], rare)[-1].theta < after(1, [values(30)])[-1].theta


@pytest.mark.parametrize("means", [(30, 90), (90, 30)], ids=["up", "down"])
def test_after_a_shift_old_reports_are_forgotten_and_theta_follows(
    means: tuple[float, float],
) -> None:
    """Seen at once or, where the survey of that epoch looked elsewhere, an epoch later."""
    old, new = values(means[0]), values(means[1])
    decisions = after(5, [old, old, new])
    shifted = [decision.shifted for decision in decisions]
    assert shifted[:2] == [False, False]
    assert shifted[2:4].count(True) == 1
    assert "older reports forgotten" in " ".join(decisions[shifted.index(True)].reasons)
    best = min(cost(new, theta) for theta in range(1, 2001))
    assert cost(new, decisions[-1].theta) < 1.5 * best


def test_stream_reports_are_evidence_like_any_other() -> None:
    law, hybrid = values(30), Hybrid(epsilon=1, low=0, high=200)
    survey = reports(first_survey(SETTING), law, 0)
    rng = np.random.default_rng(0)
    _, alone = observe(SETTING, State(), [survey], rng=rng)
    state, both = observe(SETTING, State(), [survey, reports(hybrid, law, 1)], rng=rng)
    assert both.regret < alone.regret
    assert [part.mechanism for part in state.evidence] == [survey.mechanism, hybrid]


def test_changing_theta_is_worth_what_it_is_expected_to_gain() -> None:
    survey = reports(first_survey(SETTING), values(30), 0)
    state, decision = observe(SETTING, State(), [survey], rng=np.random.default_rng(0))
    assert worth_it(SETTING, state, decision.theta, 4 * decision.theta) > 1
    assert worth_it(SETTING, state, decision.theta, decision.theta) == 0
    gain = worth_it(SETTING, state, decision.theta, decision.theta // 3)
    assert worth_it(SETTING, state, decision.theta // 3, decision.theta) == -gain
    with pytest.raises(ArgumentError):
        worth_it(SETTING, State(), 1, 2)


def test_counts_of_equal_mechanisms_are_added() -> None:
    one, two = (reports(SETTING.survey(0, top), values(30), 0) for top in (2000, 64))
    found = merged([one, two, one])
    assert [part.mechanism for part in found] == [one.mechanism, two.mechanism]
    assert np.array_equal(np.asarray(found[0].counts), 2 * np.asarray(one.counts))


def test_nothing_reported_damage_and_settings_without_sense_are_told_apart() -> None:
    survey, rng = first_survey(SETTING), np.random.default_rng(0)
    none = np.zeros(survey.code_count)
    for evidence in ([], [Evidence(survey, none)]):
        with pytest.raises(NoReportsError):
            observe(SETTING, State(), evidence, rng=rng)
    with pytest.raises(CountsError):
        observe(SETTING, State(), [Evidence(survey, none - 1)], rng=rng)
    with pytest.raises(ArgumentError):
        observe(replace(SETTING, ceiling=0), State(), [Evidence(survey, none + 1)], rng=rng)


@pytest.mark.parametrize("code", [0, 64, -1])
def test_a_single_report_still_gives_a_finite_plan(code: int) -> None:
    survey = first_survey(SETTING)
    counts = np.zeros(survey.code_count)
    counts[code] = 1
    _, decision = observe(
        SETTING, State(), [Evidence(survey, counts)], rng=np.random.default_rng(0)
    )
    assert 0 < decision.theta <= 2000
    assert np.isfinite(decision.regret)


def test_silence_surprises_nobody() -> None:
    survey = first_survey(SETTING)
    some = reports(survey, values(30), 0)
    edges = cells(0, 2000)
    assert surprise([], [some], edges) == 1
    assert surprise([some], [Evidence(survey, np.zeros(survey.code_count))], edges) == 1


def test_a_finer_look_at_the_same_values_is_no_surprise_but_a_shift_is() -> None:
    old, edges = [reports(first_survey(SETTING), values(30), 0)], cells(0, 2000)
    near = SETTING.survey(0, 128)
    same = [surprise(old, [reports(near, values(30), seed)], edges) for seed in range(10)]
    assert min(same) > 1e-3
    assert surprise(old, [reports(near, values(60), 0)], edges) < 1e-6


def test_without_a_known_ceiling_the_range_grows_until_it_holds_half() -> None:
    law, setting, evidence = values(30), replace(SETTING, ceiling=2), []
    tops: list[int] = []
    found = False
    while not found:
        evidence.append(reports(first_survey(setting), law, len(tops)))
        tops.append(setting.ceiling)
        setting, found = widened(setting, evidence)
    assert tops == [2, 2 * GROWTH]
    assert setting.ceiling == 2 * GROWTH * BEYOND
    with pytest.raises(NoReportsError):
        widened(setting, [])
    with pytest.raises(ArgumentError):
        widened(replace(setting, ceiling=0), evidence)


def test_the_public_names_are_these() -> None:
    assert adaptive.__all__ == sorted(adaptive.__all__)
    assert set(adaptive.__all__) == {
        "Aim",
        "Decision",
        "Setting",
        "State",
        "first_survey",
        "observe",
        "worth_it",
    }
