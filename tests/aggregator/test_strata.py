"""Counts sorted into sums by epoch and pooled surveys."""

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from aggregator import planner
from aggregator.config import StreamTable
from aggregator.errors import CountsError
from aggregator.strata import pool_surveys, split, split_epochs
from edge_ldp.mechanisms import SquareWave

STREAM = StreamTable(
    name="p", id=1, unit="W", ceiling=99, epsilon=Decimal(1), horizon=9, size=8, survey_size=10
)
FIRST = planner.first_plan("demo", STREAM, epoch=1, now_s=0)
SUMS = FIRST.stream_mechanism.code_count
SURVEYS = FIRST.survey_mechanism.code_count


def test_stream_codes_come_first() -> None:
    sums, surveys = split(FIRST, np.array([0, SUMS - 1, SUMS, SUMS]), np.array([1, 2, 3, 4]))
    assert (len(sums), len(surveys)) == (SUMS, SURVEYS)
    assert (sums[0], sums[-1], surveys[0]) == (1, 2, 7)
    assert sums.sum() + surveys.sum() == 10


@pytest.mark.parametrize("code", [-1, SUMS + SURVEYS])
def test_a_code_that_no_device_can_send_means_a_damaged_table(code: int) -> None:
    with pytest.raises(CountsError, match="outside"):
        split(FIRST, np.array([code]), np.array([1]))


def test_an_epoch_that_was_never_issued_means_a_damaged_table() -> None:
    with pytest.raises(CountsError, match="never issued"):
        split_epochs({1: FIRST}, np.array([2]), np.array([0]), np.array([1]))


def test_surveys_of_one_mechanism_are_pooled_and_others_left_out() -> None:
    other = SquareWave(epsilon=2, low=0, high=99, size=10)
    plans = {1: FIRST, 2: replace(FIRST, epoch=2), 3: replace(FIRST, survey_mechanism=other)}
    epochs = np.array([1, 2, 3])
    parts = split_epochs(plans, epochs, np.array([SUMS, SUMS, SUMS]), np.array([5, 6, 7]))
    assert pool_surveys(FIRST.survey_mechanism, plans, parts)[0] == 11
    assert pool_surveys(other, plans, parts)[0] == 7
    assert pool_surveys(other, plans, {}).sum() == 0
