"""The alarm on a crowd's counts: what rings, what cannot, and how often it rings in vain."""

from math import log

import numpy as np
import pytest

from edge_ldp import Hybrid, Mechanism, SquareWave
from edge_ldp.errors import CountsError, NoReportsError
from edge_ldp.mechanisms import Tuned
from edge_ldp.poisoning.alarm import Alarm, alarm, largest_shift, misfit
from edge_ldp.vectorized import decode_table
from tests.edge_ldp.poisoning.test_crowds import MECHANISMS, at_code, honest_law, input_law

N = 20_000
HYBRID = Hybrid(epsilon=1, low=0, high=10_000, size=64)
WAVE = SquareWave(epsilon=1, low=0, high=1023, size=128)
TUNED = Tuned(epsilon=2, low=0, high=1000)


def raised(mechanism: Mechanism, counts: np.ndarray, *, false_alarm: float = 0.01) -> Alarm:
    return alarm(mechanism, counts, rng=np.random.default_rng(1), false_alarm=false_alarm)


def test_the_misfit_is_twice_the_log_likelihood_ratio() -> None:
    law = np.array([0.5, 0.25, 0.25])
    by_hand = 2 * (6 * log(6 / 5) + 4 * log(4 / 2.5))
    assert misfit(np.array([6.0, 4.0, 0.0]), law) == pytest.approx(by_hand)
    assert misfit(np.array([20.0, 10.0, 10.0]), law) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_expected_honest_counts_are_no_alarm(mechanism: Mechanism) -> None:
    verdict = raised(mechanism, np.round(10_000 * honest_law(mechanism)))
    assert not verdict.rings
    assert verdict.misfit_p > 0.1
    assert verdict.excess_p > 0.1


@pytest.mark.parametrize("mechanism", [HYBRID, WAVE, TUNED], ids=repr)
def test_liars_who_follow_the_protocol_are_no_alarm_however_many(mechanism: Mechanism) -> None:
    for share in (0.1, 0.5, 1):
        law = (1 - share) * honest_law(mechanism) + share * input_law(mechanism)
        assert not raised(mechanism, np.round(N * law)).rings


@pytest.mark.parametrize(("mechanism", "code"), [(HYBRID, -3), (WAVE, -1), (TUNED, -1)])
def test_one_liar_in_twenty_with_one_code_is_an_alarm(mechanism: Mechanism, code: int) -> None:
    law = 0.95 * honest_law(mechanism) + 0.05 * at_code(mechanism, code)
    verdict = raised(mechanism, np.round(N * law))
    assert verdict.rings
    assert verdict.excess > verdict.limit


def test_one_code_in_two_is_no_alarm_up_to_its_honest_limit() -> None:
    """SR has two codes, and some mean explains any two counts within the response's limits."""
    mechanism = Hybrid(epsilon="0.5", low=0, high=1000, size=16)
    limit = input_law(mechanism)[-1]
    for share, rings in ((limit - 0.01, False), (limit + 0.05, True)):
        law = share * at_code(mechanism, -1) + (1 - share) * at_code(mechanism, -2)
        assert raised(mechanism, np.round(N * law)).rings is rings


def test_a_run_too_short_for_the_misfit_shows_as_excess() -> None:
    """A hundredth of the reports over many codes is lost in G² and plain in their sum."""
    mechanism = SquareWave(epsilon=1, low=0, high=2**20 - 1, size=1024)
    law = 0.99 * honest_law(mechanism)
    law[-64:] += 0.01 / 64
    verdict = raised(mechanism, np.random.default_rng(1).multinomial(65_536, law))
    assert verdict.rings
    assert verdict.misfit_p > 0.005 >= verdict.excess_p


def test_the_same_counts_and_entropy_give_the_same_verdict() -> None:
    counts = np.random.default_rng(0).multinomial(N, honest_law(WAVE))
    assert raised(WAVE, counts) == raised(WAVE, counts)


def test_one_report_is_no_alarm_and_a_thousand_of_one_code_are() -> None:
    assert not raised(WAVE, at_code(WAVE, -1)).rings
    assert raised(WAVE, 1000 * at_code(WAVE, -1)).rings


def test_damaged_counts_and_arguments_are_typed_errors() -> None:
    with pytest.raises(NoReportsError):
        raised(WAVE, np.zeros(WAVE.code_count))
    with pytest.raises(CountsError):
        raised(WAVE, np.ones(WAVE.code_count + 1))
    with pytest.raises(CountsError):
        raised(WAVE, np.full(WAVE.code_count, np.nan))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_REP_10_no_liar_moves_the_mean_by_more_than_the_computed_bound(
    mechanism: Mechanism,
) -> None:
    """5 % of the devices send what decodes farthest from the value the honest would have had."""
    decoded = decode_table(mechanism)[input_law(mechanism) > 0]
    for value, lie in ((mechanism.low, decoded.max()), (mechanism.high, decoded.min())):
        assert 0.05 * abs(lie - value) <= largest_shift(mechanism, 0.05) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("density", ["slope", "spikes", "ends"])
@pytest.mark.parametrize("mechanism", [HYBRID, WAVE, TUNED], ids=repr)
def test_honest_crowds_ring_no_more_often_than_stated(mechanism: Mechanism, density: str) -> None:
    """Nominal 5 %; more than 20 of 200 come about once in a thousand at 5 %, seeded."""
    rng = np.random.default_rng(11)
    law = honest_law(mechanism, density)
    drawn = (rng.multinomial(N, law) for _ in range(200))
    rings = sum(alarm(mechanism, counts, rng=rng, false_alarm=0.05).rings for counts in drawn)
    assert rings <= 20
