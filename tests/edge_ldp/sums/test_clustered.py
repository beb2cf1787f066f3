"""Intervals count schedules that walk badly: by the exact variance over all cells, AGG-31."""

from dataclasses import replace

import numpy as np
import pytest

from edge_ldp.protocol.schedule import design_effect
from edge_ldp.sums import CodeCounts, Epoch, estimate_mean
from edge_ldp.sums.clustered import widened
from edge_ldp.sums.means import MeanEstimate
from studies.evaluate.sums.fleet import Setting, StudiedHomes
from studies.schedule import heaters

KNOTS = np.arange(0, 6001, 200)  # W: heaters are on at 5.8 kW, the rest is a few hundred above 0


def expected(fleet: StudiedHomes) -> list[Epoch]:
    """Return what comes on average: counts by the exact laws of all that is read."""
    setting = Setting(fleet.stream(3000), fleet.survey, 0.5)
    values, times = np.unique(fleet.readings[fleet.present], return_counts=True)
    parts = []
    for mechanism, share in ((setting.stream, 1 - setting.share), (setting.survey, setting.share)):
        every = [float(odds) for value in KNOTS for odds in mechanism.probabilities(int(value))]
        laws = np.array(every).reshape(len(KNOTS), -1)
        near = KNOTS.searchsorted(values).clip(0, len(KNOTS) - 1)
        masses = np.bincount(near, times, len(KNOTS)) / times.sum()
        parts.append(CodeCounts(mechanism, fleet.reports * share * (masses @ laws)))
    return [Epoch(parts[0], parts[1], setting.share)]


@pytest.mark.parametrize("epsilon", heaters.EPSILONS)
def test_an_interval_is_as_wide_as_a_mean_varies_over_all_schedules_AGG_31(epsilon: float) -> None:
    """AGG_31: 400 storage heaters at 97 slots; uncounted it was half to a quarter as wide."""
    fleet = heaters.homes(epsilon, 97)
    epochs = expected(fleet)
    alone = estimate_mean(epochs, ceiling=fleet.ceiling)
    assert alone is not None
    found = widened(alone, epochs, effect=fleet.schedule, ceiling=fleet.ceiling)
    noise = ((alone.high - alone.low) / 2 / 1.96) ** 2
    true = float(fleet.readings.var()) / fleet.reports
    needed = 1.96 * (noise + (fleet.effect - 1) * true) ** 0.5
    assert needed <= (found.high - found.low) / 2 <= 1.25 * needed
    assert (alone.high - alone.low) / 2 < needed / 1.4


def test_nothing_changes_where_slots_are_as_good_as_independent_ones() -> None:
    fleet = heaters.homes(8.0, None)
    epochs = expected(fleet)
    alone = estimate_mean(epochs, ceiling=fleet.ceiling)
    assert alone is not None
    assert fleet.schedule == float(design_effect(107, 900)) < 1
    assert widened(alone, epochs, effect=fleet.schedule, ceiling=fleet.ceiling) is alone
    assert widened(alone, [], effect=17.0, ceiling=fleet.ceiling) is alone


@pytest.mark.parametrize("surveys", [0, 30])
def test_no_variance_is_more_than_a_mean_and_a_range_allow(surveys: int) -> None:
    """Without surveys, and with some that say nothing, by Bhatia and Davis: mean 500 of 0..6000."""
    fleet = heaters.homes(1.0, 97)
    (epoch,) = expected(fleet)
    few = CodeCounts(epoch.survey.mechanism, np.full(epoch.survey.mechanism.code_count, 0))
    few = replace(few, counts=np.asarray(few.counts) + (np.arange(len(few.checked())) < surveys))
    alone = MeanEstimate(500, 500, 500, 10_000 - surveys, surveys, 0, 0, 0, True, 0.95)
    found = widened(alone, [replace(epoch, survey=few)], effect=5.0, ceiling=6000)
    most = 1.96 * (4 * 500 * 5500 / 10_000) ** 0.5
    assert 500 - found.low == pytest.approx(found.high - 500)
    assert found.high - 500 <= most * 1.0001
    if not surveys:
        assert found.high - 500 == pytest.approx(most, rel=1e-4)
