"""The thresholds of the study `topl`: each rule by its definition."""

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import pytest

from edge_ldp.estimate.density import density
from edge_ldp.sums import Question
from edge_ldp.threshold.choice import Aim, outlook
from edge_ldp.threshold.published import choose_threshold, prune
from studies.evaluate.study import Task, Values, rng
from studies.evaluate.topl.rules import (
    ADAPTIVE,
    EM_DERIVED,
    EPOCHS,
    ONE_SURVEY,
    SW,
    SW_W,
    adaptive,
    prune_as_published,
    surveyed,
    theta,
)
from studies.evaluate.topl.stream import (
    HORIZON,
    SURVEYED,
    Stream,
    reports,
    stream_of,
    unit_variance,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp import Mechanism

DRAWN = np.random.default_rng(0).geometric(0.1, 5000).astype(np.int64)


def made(low: int = 0) -> Stream:
    return stream_of(Values("made", np.minimum(DRAWN, 300) + low, low, low + 400, "W", "drawn"))


def test_the_published_pruning_is_the_authors_code() -> None:
    """Below 10⁻⁴ goes; from the first five empty ones on, everything; the rest is shared evenly."""
    mass = np.zeros(20)
    mass[[0, 1, 2, 9, 15]] = 0.5, 5e-5, 0.3, 0.1, 0.09995
    found = prune_as_published(density(mass, np.arange(21))).probabilities
    expected = np.zeros(20)
    expected[[0, 2]] = 0.5 + 0.1, 0.3 + 0.1
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_where_the_low_end_is_empty_the_published_pruning_is_left_out() -> None:
    mass = np.zeros(20)
    mass[10:] = 0.1
    x = density(mass, np.arange(21))
    assert prune_as_published(x) is x


def test_rules_of_one_survey_share_its_reports() -> None:
    stream = made()
    rough = surveyed(stream, 1.0, 0, smooth=False)
    aim = (unit_variance(), HORIZON)
    published = choose_threshold(prune_as_published(rough), *aim, published=True)
    assert theta(SW_W, stream, 1.0, 0) == published.theta
    assert theta(EM_DERIVED, stream, 1.0, 0) == choose_threshold(prune(rough), *aim).theta
    smooth = surveyed(stream, 1.0, 0, smooth=True)
    assert theta(SW, stream, 1.0, 0) == choose_threshold(smooth, *aim, published=True).theta
    assert theta("95 %", stream, 1.0, 0) == int(np.ceil(smooth.quantile(0.95)))


# of five surveys, twice
LONGEST = pytest.param(ADAPTIVE, -500, marks=pytest.mark.slow)


@pytest.mark.parametrize(("rule", "low"), [*product(ONE_SURVEY, (0, -500)), LONGEST])
def test_every_rule_gives_a_threshold_within_the_range_and_the_same_again(
    rule: str, low: int
) -> None:
    stream = made(low)
    found = theta(rule, stream, 2.0, 1)
    assert low < found <= low + 400
    surveyed.cache_clear()
    adaptive.cache_clear()
    assert theta(rule, stream, 2.0, 1) == found


def test_the_adaptive_rule_is_the_services_choice_by_the_first_survey() -> None:
    stream = made()
    found = adaptive(stream, 1.0, 0)
    assert len(found) == EPOCHS
    survey = stream.survey(1.0)
    own = rng(Task("adaptive", stream.digest, "", 1.0, 0))
    own.random(SURVEYED)
    counts: dict[Mechanism, NDArray[np.float64]] = {
        survey: reports(survey, stream.part(0, SURVEYED), own).astype(np.float64)
    }
    aim = Aim(0, 400, unit_variance(), survey, Question(float(HORIZON)))
    assert outlook(aim, counts, own).best().theta == found[0]
    assert stream.mse(found[-1]) <= 3 * min(stream.mse(t) for t in range(30, 400, 5))
