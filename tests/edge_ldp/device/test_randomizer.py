"""Branches, coins and the survey share: order of draws, laws, ratios, refusals."""

from fractions import Fraction
from typing import Any

import pytest

from edge_ldp.device.channel import wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS, LATTICE, Randomizer, Reporter, randomizer, reporter
from tests.edge_ldp.laws import HYBRIDS, SQUARE_WAVES, exact_law, law_of, outcomes
from tests.tables import each

TWO = wave(2, 0, 3, 1)
STREAM, SURVEY = HYBRIDS[0], SQUARE_WAVES[0]
SHARES = [(1, 4), (0, 3), (3, 3)]


def small_reporter(share: tuple[int, int]) -> Reporter:
    return reporter(STREAM.randomizer, SURVEY.randomizer, share)


@pytest.mark.parametrize("share", SHARES)
def test_a_report_is_a_survey_report_with_the_share_and_a_stream_report_else(
    share: tuple[int, int],
) -> None:
    made = small_reporter(share)
    assert made.code_count == STREAM.code_count + SURVEY.code_count
    for value in range(-3, 7):
        law = exact_law(lambda draw: made.report(value, draw))  # noqa: B023
        survey = Fraction(*share)
        wanted = {code: (1 - survey) * p for code, p in law_of(STREAM, value).items()} | {
            STREAM.code_count + code: survey * p for code, p in law_of(SURVEY, value).items()
        }
        assert law == {code: p for code, p in wanted.items() if p}


def test_the_draws_of_a_report_are_survey_coin_branch_coin_rounding_channel() -> None:
    made = small_reporter((1, 4))
    pm, sr = STREAM.randomizer.channels
    (sw,) = SURVEY.randomizer.channels
    for value in range(-3, 7):
        asked = [asked for asked, _ in outcomes(lambda draw: made.report(value, draw))]  # noqa: B023
        assert set(asked) == {(4, sw.total), (4, 8, 4, pm.total), (4, 8, 4, sr.total)}
        assert asked[0] == (4, sw.total)  # a coin of 0 is below the share: a survey


def test_the_codes_of_all_branches_are_disjoint() -> None:
    made = small_reporter((1, 4))
    pm = STREAM.randomizer.channels[0]
    by_kind: dict[tuple[int, ...], set[int]] = {}
    for value in range(-3, 7):
        for asked, code in outcomes(lambda draw: made.report(value, draw)):  # noqa: B023
            by_kind.setdefault(asked, set()).add(code)
    codes = sorted(code for reached in by_kind.values() for code in reached)
    assert codes == list(range(made.code_count))
    assert by_kind[4, 8, 4, pm.total] == set(range(pm.code_count))


def test_within_compares_the_worst_branch_in_integers() -> None:
    worst = Fraction(3, 1)  # the square wave's; the hybrid's is 5/2
    made = small_reporter((1, 4))
    assert made.within(3, 1)
    assert not made.within(3 * 10**30 - 1, 10**30)
    assert STREAM.randomizer.within(5, 2)
    assert not STREAM.randomizer.within(5 * 10**30 - 1, 2 * 10**30)
    assert not reporter(SURVEY.randomizer, STREAM.randomizer, (0, 1)).within(5, 2)
    laws = [exact_law(lambda draw: made.report(v, draw)) for v in range(-3, 7)]  # noqa: B023
    ratios = [max(c) / min(c) for c in ([law[code] for law in laws] for code in laws[0])]
    assert max(ratios) == worst


@pytest.mark.parametrize(
    ("name", "given_parts"),
    each(
        ("high", (0, 0, LATTICE, (1, 1), (TWO,)), (1, 0, LATTICE, (1, 1), (TWO,))),
        ("high", (0, 1 << 48, LATTICE, (1, 1), (TWO,))),
        ("high", (-(1 << 47), 1 << 47, LATTICE, (1, 1), (TWO,))),
        ("low, high", (0.0, 1, LATTICE, (1, 1), (TWO,)), (False, 1, LATTICE, (1, 1), (TWO,))),
        ("channels", (0, 1, LATTICE, (1, 1), ()), (0, 1, LATTICE, (1, 1), (TWO, TWO, TWO))),
        ("channels", (0, 1, LATTICE, (1, 2), (wave(65_535, 0, 3, 1), TWO))),
        ("coin", (0, 1, LATTICE, (1, 2), (TWO,)), (0, 1, LATTICE, (0, 0), (TWO, TWO))),
        ("coin", (0, 1, LATTICE, (-1, 2), (TWO, TWO)), (0, 1, LATTICE, (3, 2), (TWO, TWO))),
        ("coin", (0, 1, LATTICE, (1, (1 << 32) + 1), (TWO, TWO))),
        ("coin", (0, 1, LATTICE, (1.0, 2), (TWO, TWO)), (0, 1, LATTICE, (True, 2), (TWO, TWO))),
        ("encoder", (0, 1, 2, (1, 1), (TWO,))),
        ("size", (0, 1, BUCKETS, (1, 1), (wave(3, 0, 3, 1),))),
    ),
)
def test_parts_that_make_no_randomizer_are_refused_by_name(
    given_parts: tuple[Any, Any, Any, Any, Any], name: str
) -> None:
    with pytest.raises(ParameterError) as refused:
        randomizer(*given_parts)
    assert refused.value.name == name


def test_the_widest_parts_are_allowed() -> None:
    made = randomizer(-5, (1 << 48) - 6, LATTICE, (1, 1 << 32), (wave(65_534, 0, 3, 1), TWO))
    assert made.code_count == 65_536
    assert made == Randomizer(-5, (1 << 48) - 6, LATTICE, (1, 1 << 32), made.channels)


@pytest.mark.parametrize(
    "share", [(0, 0), (-1, 2), (3, 2), (1, (1 << 32) + 1), (0.5, 1), (1, True)]
)
def test_a_share_that_is_no_probability_is_refused(share: tuple[Any, Any]) -> None:
    with pytest.raises(ParameterError) as refused:
        small_reporter(share)
    assert refused.value.name == "share"


def test_stream_and_survey_codes_must_fit_16_bits_together() -> None:
    wide = randomizer(0, 1 << 20, LATTICE, (1, 1), (wave(65_534, 0, 3, 1),))
    two = randomizer(0, 1, BUCKETS, (1, 1), (TWO,))
    three = randomizer(0, 2, BUCKETS, (1, 1), (wave(3, 0, 3, 1),))
    assert reporter(wide, two, (1, 2)).code_count == 65_536
    with pytest.raises(ParameterError) as refused:
        reporter(wide, three, (1, 2))
    assert refused.value.name == "size"
