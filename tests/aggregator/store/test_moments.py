"""Integer sums of a bucket: what they are by hand, and that averages are those of each report."""

from dataclasses import replace

import numpy as np
import pytest

from aggregator.store.moments import (
    MOMENTS,
    Powers,
    averages,
    moments,
    pack_moments,
    sums_of_rows,
    unpack_moments,
)
from edge_ldp import Hybrid, Mechanism, SquareWave, StochasticRounding, Tuned
from edge_ldp.errors import CountsError, RowError
from edge_ldp.protocol.plan import Plan

HYBRID = Hybrid(epsilon=1, low=-5, high=20, size=8)  # two branches, both affine
TUNED = Tuned(epsilon=1, low=0, high=410)  # codes that stand for any value
MOST = (1 << 63) - 1
STREAMS = [HYBRID, TUNED, StochasticRounding(epsilon=1, low=3, high=20)]


def plan_of(stream: Mechanism, epoch: int = 7) -> Plan:
    return Plan(
        fleet="north",
        stream="power",
        stream_id=1,
        unit="W",
        epoch=epoch,
        issued_s=1_800_000_000,
        expires_s=1_900_000_000,
        slot_seconds=900,
        low=stream.low,
        ceiling=4000,
        share=(1, 4),
        stream_mechanism=stream,
        survey_mechanism=SquareWave(epsilon=1, low=stream.low, high=4000, size=16),
    )


def all_codes(plan: Plan) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    count = plan.stream_mechanism.code_count + plan.survey_mechanism.code_count
    return np.arange(count, dtype=np.int64)


def test_of_an_affine_branch_they_are_n_and_the_codes_and_their_squares() -> None:
    plan = plan_of(HYBRID)
    first, second = (start for _, start, _ in HYBRID.branches)
    assert len(HYBRID.branches) == 2
    codes = np.array([first, first + 1, first + 3, second, second + 1])
    sums = moments(plan, codes, np.array([5, 4, 2, 8, 7]))
    assert sums.tolist() == [11, 4 + 2 * 3, 4 + 2 * 9, 15, 7, 7]


def test_of_a_table_they_are_the_counts() -> None:
    counts = np.arange(TUNED.code_count) % 5
    sums = moments(plan_of(TUNED), np.arange(TUNED.code_count), counts)
    assert sums.tolist() == counts.tolist()


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
def test_rows_of_places_that_rise_are_their_own_sums_and_surveys_have_none(
    stream: Mechanism,
) -> None:
    plan = plan_of(stream)
    codes, surveys = all_codes(plan), plan.survey_mechanism.code_count
    counts = codes % 7 + 1
    places = np.repeat([0, 3, 4], len(codes))
    at, sums = sums_of_rows(
        plan, places, np.tile(codes, 3), np.concatenate([counts, counts, codes])
    )
    assert at.tolist() == [0, 3, 4]
    one, other = (moments(plan, codes[:-surveys], each[:-surveys]) for each in (counts, codes))
    assert sums.tolist() == [one.tolist(), one.tolist(), other.tolist()]


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
def test_surveys_alone_and_nothing_at_all_have_sums_of_nothing(stream: Mechanism) -> None:
    plan = plan_of(stream)
    width = MOMENTS * len(stream.branches) if stream is not TUNED else TUNED.code_count
    for codes in (all_codes(plan)[stream.code_count :], np.zeros(0, np.int64)):
        assert moments(plan, codes, codes).tolist() == [0] * width
        places, sums = sums_of_rows(plan, codes, codes, codes)
        assert places.tolist() == []
        assert sums.shape == (0, width)


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
def test_a_code_that_the_plan_has_not_is_refused_with_its_epoch(stream: Mechanism) -> None:
    plan = plan_of(stream)
    last = int(all_codes(plan)[-1])
    moments(plan, np.array([0, last]), np.array([1, 1]))
    for wrong in (-1, last + 1):
        with pytest.raises(CountsError, match="outside those of epoch 7"):
            moments(plan, np.array([0, wrong]), np.array([1, 1]))


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
def test_what_is_stored_is_read_again_and_another_length_is_refused(stream: Mechanism) -> None:
    plan = plan_of(stream)
    codes = all_codes(plan)
    rows = [moments(plan, codes, counts) for counts in (codes, codes * 2**33)]
    blobs = [pack_moments(row) for row in rows]
    assert unpack_moments(plan, blobs).tolist() == [row.tolist() for row in rows]
    assert blobs[0][:8] == int(rows[0][0]).to_bytes(8, "little")
    for wrong in (b"", blobs[0] + bytes(8), blobs[0][:-1]):
        with pytest.raises(RowError, match="not those of epoch 7"):
            unpack_moments(plan, [blobs[0], wrong])


@pytest.mark.parametrize("stream", STREAMS, ids=repr)
def test_an_average_and_its_error_are_those_of_the_decoded_reports(stream: Mechanism) -> None:
    plan = plan_of(stream)
    codes = np.arange(stream.code_count)
    decoded = [stream.decode(code) for code in range(stream.code_count)]
    largest = stream.worst_variance + (stream.high - stream.low) ** 2 / 4
    drawn = [codes % 3 + 1, np.eye(stream.code_count, dtype=np.int64)[1]]
    rows = np.stack([moments(plan, codes, counts) for counts in drawn])
    found = averages(4, {7: (plan, np.array([1, 3]), Powers(rows, rows, rows))})
    assert found.n.tolist() == [0, int(drawn[0].sum()), 0, 1]
    for place, counts in zip((1, 3), drawn, strict=True):
        each = np.repeat(decoded, counts)
        se = ((each.var() * len(each) + largest) / len(each) ** 2) ** 0.5
        assert found.mean[place] == pytest.approx(each.mean(), rel=1e-9)
        assert found.se[place] == pytest.approx(se, rel=1e-9)
    assert np.isnan([found.mean[0], found.se[0], found.mean[2], found.se[2]]).all()


def test_epochs_at_one_place_count_by_their_reports_and_each_has_its_own_spread() -> None:
    one, two = plan_of(HYBRID, 7), replace(plan_of(TUNED, 8), low=0)
    parts = {}
    whole, squares = [], 0.0
    for plan, times in ((two, 3), (one, 1)):
        stream = plan.stream_mechanism
        counts = times * (np.arange(stream.code_count) % 4)
        sums = moments(plan, np.arange(stream.code_count), counts)
        parts[plan.epoch] = plan, np.zeros(1, np.int64), Powers(*[sums[None]] * 3)
        each = np.repeat([stream.decode(code) for code in range(stream.code_count)], counts)
        whole += each.tolist()
        squares += each.var() * len(each)
        squares += stream.worst_variance + (stream.high - stream.low) ** 2 / 4
    found = averages(1, parts)
    assert found.n.tolist() == [len(whole)]
    assert found.mean[0] == pytest.approx(np.mean(whole), rel=1e-9)
    assert found.se[0] == pytest.approx(squares**0.5 / len(whole), rel=1e-9)
    none = Powers(*(0 * sums for sums in parts[7][2]))
    nothing = {**parts, 9: (one, np.zeros(1, np.int64), none)}
    assert averages(1, nothing).se[0] == found.se[0]


@pytest.mark.parametrize("stream", STREAMS)
def test_a_sum_at_the_integers_end_stays_there_and_gives_no_average_AGG_23(
    stream: Mechanism,
) -> None:
    plan = plan_of(stream)
    codes = np.arange(stream.code_count)
    for most in (MOST, MOST // 4):
        counts = np.where(codes == 1, most, 2)
        _, (sums,) = sums_of_rows(plan, np.zeros_like(codes), codes, counts)
        _, each = sums_of_rows(plan, codes, codes, np.ones_like(codes))
        exact = [
            sum(int(n) * int(row[at]) for n, row in zip(counts, each, strict=True))
            for at in range(each.shape[1])
        ]
        assert sums.tolist() == [min(total, MOST) for total in exact]
        if MOST in sums:
            with pytest.raises(CountsError, match="the largest there is"):
                averages(1, {7: (plan, np.array([0]), Powers(*[sums[None]] * 3))})
