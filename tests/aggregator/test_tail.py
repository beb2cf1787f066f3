import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aggregator.tail import SHAPE_SPREAD, Tail, Truncation, tilted

VALUES = np.array([0.0, 10.0, 20.0, 30.0])
POOL = np.array([0.4, 0.3, 0.2, 0.1])
AT_15 = Truncation((15,), (1.0,))
CUT = 0.2 * 5 + 0.1 * 15  # what θ = 15 takes off the pool's mean
KEPT = 0.3 * 10 + 0.3 * 15


def tail(spread: float = 0.0, lift: float = 0.0) -> Tail:
    """A pool whose resamples move mass between the ends, by ±spread around +lift."""
    ends = np.array([-1.0, 0.0, 0.0, 1.0])
    moved = [POOL + (lift + spread) * ends, POOL + (lift - spread) * ends]
    return Tail(VALUES, POOL, np.stack(moved), reference=POOL, n=1000)


def test_what_truncation_keeps_is_the_average_over_thresholds() -> None:
    mixed = Truncation((5, 25), (0.25, 0.75))
    assert mixed.kept(VALUES).tolist() == [0, 0.25 * 5 + 7.5, 0.25 * 5 + 15, 0.25 * 5 + 18.75]


def test_the_pool_itself_gets_its_own_tail() -> None:
    fix = tail().correction(AT_15, KEPT, 0.1, 1000)
    assert fix.bias == fix.most == pytest.approx(CUT)
    assert fix.se == pytest.approx(0)
    assert fix.slope == 0  # the mean is the pool's: no distance that could be noise


def test_uncertain_tails_are_lowered_then_shrunk_as_methods_3_says() -> None:
    fix = tail(spread=0.02, lift=0.01).correction(AT_15, KEPT, 0.1, 1000)
    most = CUT - 0.01 * 15  # twice the estimate minus the resamples' mean
    variance = 2 * (0.02 * 15) ** 2
    assert fix.most == pytest.approx(most)
    assert fix.bias == pytest.approx(most * most**2 / (most**2 + variance))
    assert fix.se == pytest.approx(variance**0.5)


def test_a_tail_that_resamples_explain_away_is_no_bias_but_uncertain() -> None:
    fix = tail(spread=0.05, lift=1.0).correction(AT_15, KEPT, 0.1, 1000)
    assert (fix.bias, fix.most) == (0, 0)
    assert fix.se > 0.5


def test_a_stratum_with_more_has_more_tail_and_an_uncertain_shape() -> None:
    more, less = (tail().correction(AT_15, KEPT + d, 0.0, 100) for d in (1.0, -1.0))
    assert more.bias > CUT > less.bias > 0
    assert more.slope > 0
    assert more.se == pytest.approx(SHAPE_SPREAD * more.bias * 0.9**0.5)
    step = 1e-4
    near = [tail().correction(AT_15, KEPT + 1 + d, 0.0, 100).bias for d in (-step, step)]
    assert more.slope == pytest.approx((near[1] - near[0]) / (2 * step), rel=1e-4)


def test_a_distance_within_the_noise_does_not_move_the_tail() -> None:
    fix = tail().correction(AT_15, KEPT + 1, 1.0, 100)
    assert fix.bias == pytest.approx(CUT)
    assert fix.slope == 0


def test_above_every_value_there_is_nothing_to_correct() -> None:
    fix = tail(spread=0.1).correction(Truncation((30,), (1.0,)), 9.0, 0.1, 100)
    assert (fix.bias, fix.most, fix.se, fix.slope) == (0, 0, 0, 0)


def test_anchoring_moves_the_reference_but_not_the_surveys() -> None:
    made = Tail(VALUES, POOL, np.stack([POOL, POOL]), reference=POOL)
    anchored = made.anchored(AT_15, KEPT + 1, 500)
    assert anchored.reference @ AT_15.kept(VALUES) == pytest.approx(KEPT + 1)
    assert anchored.n == 500
    assert anchored.correction(AT_15, KEPT + 1, 0.0, 500).bias == pytest.approx(CUT)


@given(
    st.lists(st.floats(0, 1), min_size=4, max_size=4).filter(lambda mass: sum(mass) > 0.1),
    st.floats(-5, 25),
)
def test_tilting_gives_the_mean_wherever_it_can_be(mass: list[float], mean: float) -> None:
    x = np.array(mass) / sum(mass)
    kept = AT_15.kept(VALUES)
    made = tilted(x, kept, mean)
    assert made.sum() == pytest.approx(1)
    assert made.min() >= 0
    low, high = kept[x > 0].min(), kept[x > 0].max()
    inside = np.clip(mean, low + 1e-3 * (high - low), high - 1e-3 * (high - low))
    if x[x > 0].min() > 1e-9:
        assert made @ kept == pytest.approx(inside, abs=1e-6)


def test_cells_with_equal_values_keep_their_proportion() -> None:
    made = tilted(POOL, AT_15.kept(VALUES), KEPT + 2)
    assert made[2] / made[3] == pytest.approx(2)
    np.testing.assert_array_equal(tilted(POOL, np.full(4, 7.0), 9.0), POOL)
