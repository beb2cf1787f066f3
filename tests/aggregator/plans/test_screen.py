"""What θ goes by: honest counts as they are, others without what no honest device sent."""

from dataclasses import asdict

import numpy as np

from aggregator.plans.screen import LEAST, Screened, screened, seeded
from edge_ldp import Hybrid, SquareWave
from edge_ldp.protocol.plan import is_survey
from edge_ldp.vectorized import perturb_many

SURVEY = SquareWave(epsilon=1, low=0, high=9999, size=128)


def counts(n: int, liars: int = 0) -> np.ndarray:
    rng = np.random.default_rng(5)
    codes = perturb_many(SURVEY, rng.exponential(500, n).astype(np.int64), entropy=rng.bytes)
    found = np.bincount(codes, minlength=SURVEY.code_count)
    found[-1] += liars
    return found


def test_honest_counts_are_kept_whole() -> None:
    keep, found = screened(SURVEY, counts(20_000))
    assert found is not None
    assert (found.kind, found.rings, found.share, found.reports) == ("survey", False, 0, 20_000)
    assert keep.tolist() == [1] * SURVEY.code_count
    assert "no alarm" in str(found)


def test_a_point_of_liars_rings_and_is_left_out() -> None:
    keep, found = screened(SURVEY, counts(19_000, liars=1000))
    assert found is not None
    assert found.rings
    assert abs(found.share - 0.05) < 0.01
    assert keep[-1] < 0.2
    assert keep[:-1].min() > 0.9
    assert "ALARM" in str(found)
    assert found.warnings


def test_too_few_reports_are_not_judged() -> None:
    keep, found = screened(SURVEY, counts(LEAST - 1))
    assert found is None
    assert keep.min() == 1


def test_surveys_are_told_from_sums() -> None:
    assert is_survey(SURVEY)
    assert not is_survey(Hybrid(epsilon=1, low=0, high=9))


def test_a_verdict_survives_being_stored() -> None:
    _, found = screened(SURVEY, counts(19_000, liars=1000))
    assert found is not None
    assert Screened.of(asdict(found)) == found


def test_the_draws_depend_on_the_bytes_and_on_where_they_end() -> None:
    one, two, three = (seeded(*parts).random() for parts in ([b"ab"], [b"ab"], [b"a", b"b"]))
    assert one == two != three
