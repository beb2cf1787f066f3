"""Counts sorted into sums and surveys by epoch, and by mechanism."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from aggregator.config import StreamTable
from aggregator.counting.tally import CountRows, merge_epochs, split_epochs
from aggregator.plans import planner
from edge_ldp.errors import CountsError
from edge_ldp.mechanisms import SquareWave

STREAM = StreamTable(
    name="p", id=1, unit="W", ceiling=99, epsilon=Decimal(1), horizon=9, size=8, survey_size=10
)
FIRST = planner.first_plan("demo", STREAM, epoch=1, now_s=0)
SUMS = FIRST.stream_mechanism.code_count
SURVEYS = FIRST.survey_mechanism.code_count


def test_stream_codes_come_first() -> None:
    codes, counts = np.array([0, SUMS - 1, SUMS, SUMS]), np.array([1, 2, 3, 4])
    sums, surveys = split_epochs({1: FIRST}, np.ones(4, np.int64), codes, counts)[1]
    assert (len(sums), len(surveys)) == (SUMS, SURVEYS)
    assert (sums[0], sums[-1], surveys[0]) == (1, 2, 7)
    assert sums.sum() + surveys.sum() == 10


@pytest.mark.parametrize("code", [-1, SUMS + SURVEYS])
def test_a_code_that_no_device_can_send_means_a_damaged_table(code: int) -> None:
    with pytest.raises(CountsError, match="outside"):
        split_epochs({1: FIRST}, np.array([1]), np.array([code]), np.array([1]))


def test_an_epoch_that_was_never_issued_means_a_damaged_table() -> None:
    with pytest.raises(CountsError, match="never issued"):
        split_epochs({1: FIRST}, np.array([2]), np.array([0]), np.array([1]))


def test_reports_of_one_mechanism_are_added_up_over_epochs_and_others_are_not() -> None:
    other = SquareWave(epsilon=2, low=0, high=99, size=10)
    plans = {1: FIRST, 2: replace(FIRST, epoch=2), 3: replace(FIRST, survey_mechanism=other)}
    columns = [1, 2, 3, 3], [0, 0, 0, 0], [SUMS, SUMS, SUMS, 1], [5, 6, 7, 8]
    merged = merge_epochs(plans, CountRows(*np.array(columns)))
    assert list(merged) == [FIRST.survey_mechanism, FIRST.stream_mechanism, other]
    assert merged[FIRST.survey_mechanism][0].tolist() == [11, *[0] * (SURVEYS - 1)]
    assert merged[other][0][0] == 7
    assert merged[FIRST.stream_mechanism][0][1] == 8
    assert merge_epochs(plans, CountRows(*np.zeros((4, 0), np.int64))) == {}
