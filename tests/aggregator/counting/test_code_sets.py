"""What honest devices do at most: the sets' bounds against every input's exact law."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from aggregator.counting.code_sets import Watch, largest_weights, watch_mechanism, watch_of
from edge_ldp import Hybrid, Mechanism, SquareWave
from edge_ldp.device.table import profile
from edge_ldp.protocol.plan import Plan
from edge_ldp.vectorized import decode_table
from tests.edge_ldp.poisoning.test_crowds import MECHANISMS

PLAN = Plan(
    fleet="f",
    stream="power",
    stream_id=1,
    unit="W",
    epoch=1,
    issued_s=0,
    expires_s=1,
    slot_seconds=900,
    low=0,
    ceiling=63,
    share=(1, 16),
    stream_mechanism=Hybrid(epsilon=1, low=0, high=30, size=16),
    survey_mechanism=SquareWave(epsilon=1, low=0, high=63, size=32),
)


def laws(mechanism: Mechanism) -> list[list[Fraction]]:
    return [mechanism.probabilities(v) for v in range(mechanism.low, mechanism.high + 1)]


def members(watch: Watch, tail: int) -> list[int]:
    [(first, stop)] = [row for row in watch.rows if row[0] <= tail < row[1]]
    both = zip(watch.highest.tolist(), watch.lowest.tolist(), strict=True)
    return [
        code
        for code, ends in enumerate(both)
        if any(first <= level <= tail and level < stop for level in ends)
    ]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_codes_bound_is_its_largest_probability_of_all_values(mechanism: Mechanism) -> None:
    columns = zip(*laws(mechanism), strict=True)
    exact = [float(max(column)) for column in columns]
    bounds = watch_mechanism(mechanism).codes
    assert bounds == pytest.approx(np.minimum(exact, 1), rel=2e-9)
    assert (bounds >= np.array(exact)).all()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_tails_bound_is_the_most_that_one_value_gives_its_codes(mechanism: Mechanism) -> None:
    watch = watch_mechanism(mechanism)
    for tail, bound in enumerate(watch.tails):
        codes = members(watch, tail)
        exact = max(float(sum(law[code] for code in codes)) for law in laws(mechanism))
        assert bound == pytest.approx(exact, rel=2e-9)
        assert bound >= min(exact, 1)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_tails_are_the_highest_and_lowest_possible_codes_by_decoded_value(
    mechanism: Mechanism,
) -> None:
    watch = watch_mechanism(mechanism)
    possible = np.flatnonzero([any(column) for column in zip(*laws(mechanism), strict=True)])
    rising = sorted(possible.tolist(), key=decode_table(mechanism).__getitem__)
    rows = [range(*row) for row in watch.rows]
    for row, order in zip(rows, (rising[::-1], rising), strict=True):
        sizes = [min(1 << level, len(order)) for level in range(len(row))]
        assert sizes[-1] == len(order)
        for tail, size in zip(row, sizes, strict=True):
            assert set(order[:size]) <= set(members(watch, tail))
            assert set(members(watch, tail)) & set(possible.tolist()) == set(order[:size]) or (
                size == len(order)
            )
            assert watch.names[tail].startswith(f"{size} ")


def test_the_two_branches_of_the_hybrid_have_the_bounds_of_their_own_weights() -> None:
    """docs/methods.md, Poisoned reports: at ε = 1 and d = 256, SR code 0.443, PM code 0.0016."""
    bounds = watch_mechanism(Hybrid(epsilon=1, low=0, high=1000, size=256)).codes
    assert len(bounds) == 414
    assert set(np.round(bounds[:-2], 4)) == {0.0016}
    assert set(np.round(bounds[-2:], 3)) == {0.443}


def test_a_plans_reports_are_of_its_stream_or_its_survey_by_their_shares() -> None:
    watch, stream = watch_of(PLAN), watch_mechanism(PLAN.stream_mechanism)
    survey = watch_mechanism(PLAN.survey_mechanism)
    assert watch.codes == pytest.approx(
        np.concatenate([stream.codes * 15 / 16, survey.codes / 16]), rel=1e-8
    )
    assert watch.tails == pytest.approx(
        np.concatenate([stream.tails * 15 / 16, survey.tails / 16]), rel=1e-8
    )
    assert watch.sets == len(watch.codes) + len(watch.tails)
    assert sum("survey" in name for name in watch.names) == len(survey.tails)


def test_reports_that_a_plan_never_asks_for_have_bound_0() -> None:
    survey_only = watch_of(replace(PLAN, share=(1, 1)))
    stream_codes = PLAN.stream_mechanism.code_count
    assert not survey_only.codes[:stream_codes].any()
    assert survey_only.codes[stream_codes:].all()


def test_plans_that_differ_in_threshold_and_epoch_only_have_the_same_law() -> None:
    other = replace(PLAN, epoch=2, stream_mechanism=Hybrid(epsilon=1, low=0, high=60, size=16))
    assert watch_of(other) is watch_of(PLAN)  # remembered, so a restart with many plans is quick
    alone = watch_mechanism(other.stream_mechanism).law
    assert alone == watch_mechanism(PLAN.stream_mechanism).law
    assert watch_of(replace(PLAN, share=(1, 8))).law != watch_of(PLAN).law


def test_a_profile_of_several_peaks_is_bounded_from_above() -> None:
    channel = profile(3, (5, 1, 1, 1, 1, 1, 5), 1)
    exact = [max(channel.weight(i, code) for i in range(3)) for code in range(channel.code_count)]
    assert all(a >= b for a, b in zip(largest_weights(channel), exact, strict=True))
    one_peak = profile(3, (1, 2, 4, 9, 3, 3, 2), 1)
    exact = [max(one_peak.weight(i, code) for i in range(3)) for code in range(one_peak.code_count)]
    assert largest_weights(one_peak) == exact
