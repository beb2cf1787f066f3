"""Exact laws of the oracles: every draw of small ones is run."""

from fractions import Fraction
from math import exp
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.errors import ParameterError
from edge_ldp.oracles import Grr, HaarHrr, Hierarchy, Hrr, Olh, Oracle, Oue
from tests.edge_ldp.laws import draw_from, words
from tests.edge_ldp.oracles.small import REAL, SMALL, law_of, named, runs

EVERY = pytest.mark.parametrize("oracle", SMALL, ids=named)


def public_law(oracle: Oracle, value: int) -> dict[tuple[int, ...], Fraction]:
    law: dict[tuple[int, ...], Fraction] = {}
    for report, share in law_of(oracle, value).items():
        public, _ = oracle.split(report)
        law[public] = law.get(public, Fraction(0)) + share
    return law


@EVERY
def test_a_report_is_a_public_part_and_a_code_of_the_stated_law(oracle: Oracle) -> None:
    for value in range(oracle.size):
        law, publics = law_of(oracle, value), public_law(oracle, value)
        stated: dict[Any, Fraction] = {
            (public, code): share * p
            for public, share in publics.items()
            for code, p in enumerate(oracle.probabilities(value, public))
        }
        assert {oracle.split(report): share for report, share in law.items()} == stated
        assert sum(law.values()) == 1


@EVERY
def test_the_public_part_is_uniform_on_its_level_and_the_same_for_every_value(
    oracle: Oracle,
) -> None:
    publics = public_law(oracle, 0)
    assert all(public_law(oracle, value) == publics for value in range(oracle.size))
    if not isinstance(oracle, Hierarchy | HaarHrr):
        assert set(publics.values()) == {Fraction(1, len(publics))}
        return
    levels = {public[0] for public in publics}
    for level in levels:
        shares = [share for public, share in publics.items() if public[0] == level]
        assert set(shares) == {Fraction(1, len(levels) * len(shares))}


@EVERY
def test_no_report_is_more_than_the_ratio_likelier_and_some_report_is_just_that(
    oracle: Oracle,
) -> None:
    laws = [law_of(oracle, value) for value in range(oracle.size)]
    assert all(law.keys() == laws[0].keys() for law in laws)
    odds = [[law[report] for law in laws] for report in laws[0]]
    assert max(max(column) / min(column) for column in odds) == oracle.max_ratio


@EVERY
def test_number_and_order_of_draws_do_not_tell_the_value(oracle: Oracle) -> None:
    asked = [{asked for asked, _ in runs(oracle, value)} for value in range(oracle.size)]
    assert all(one == asked[0] for one in asked)


@EVERY
def test_the_length_of_a_report_goes_with_its_public_part_alone(oracle: Oracle) -> None:
    lengths = {
        (oracle.split(report)[0][:1] if isinstance(oracle, Hierarchy) else (), len(report))
        for value in range(oracle.size)
        for report in law_of(oracle, value)
    }
    assert len(dict(lengths)) == len(lengths)
    assert max(length for _, length in lengths) == oracle.report_length


@pytest.mark.parametrize("oracle", REAL, ids=named)
def test_every_report_takes_the_same_number_of_words(oracle: Oracle) -> None:
    """PRV_09: how much entropy is read depends on rejected words only, never on the value."""
    read = set()
    for value in (0, 1, oracle.size // 2, oracle.size - 1):
        draw, source = draw_from(words(*[1] * (oracle.size + 9 if oracle.name == "oue" else 9)))
        report = oracle.perturb(value, draw=draw)
        read.add((len(source.asked), len(report)))
    assert len(read) == 1
    taken, length = read.pop()
    assert taken == (oracle.size if oracle.name == "oue" else length)


@given(
    st.sampled_from([oracle for oracle in REAL if oracle.name != "oue"]),
    st.integers(0),
    st.lists(st.integers(0, 2**64 - 1), min_size=4),
)
def test_a_report_is_one_that_splits_whatever_the_value_and_the_words(
    oracle: Oracle, value: int, drawn: list[int]
) -> None:
    left = list(drawn)
    report = oracle.perturb(value % oracle.size, draw=lambda n: left.pop() % n)
    public, code = oracle.split(report)
    if oracle.size < 10_000:
        law = oracle.probabilities(value % oracle.size, public)
        assert law[code] > 0
        assert sum(law) == 1
    assert (*public, code) == report


@pytest.mark.parametrize("oracle", [*SMALL, *REAL], ids=named)
def test_only_categories_are_randomised_and_no_word_is_taken_for_others(oracle: Oracle) -> None:
    wrong: list[Any] = [-1, oracle.size, 1 << 70, True, 1.0, "1", None, np.float64(1), np.int64(-1)]
    for value in wrong:
        with pytest.raises(ParameterError) as refused:
            oracle.perturb(value, draw=lambda _: pytest.fail("a word was drawn"))
        assert refused.value.name == "value"
        assert refused.value.expected == f"0..{oracle.size - 1}"


@EVERY
@pytest.mark.parametrize("kind", [np.uint8, np.int64])
def test_a_category_of_numpy_gives_the_report_of_the_same_category(
    oracle: Oracle, kind: type[np.integer[Any]]
) -> None:
    item = oracle.size - 1 if oracle.size - 1 <= np.iinfo(kind).max else 1
    low = [oracle.perturb(value, draw=lambda _: 0) for value in (item, kind(item))]
    high = [oracle.perturb(value, draw=lambda n: n - 1) for value in (item, kind(item))]
    assert low[0] == low[1]
    assert high[0] == high[1]
    assert all(type(number) is int for number in low[1])


@EVERY
def test_the_law_of_what_is_no_category_or_no_public_part_is_refused(oracle: Oracle) -> None:
    public = oracle.split(next(iter(law_of(oracle, 0))))[0]
    for value in (-1, oracle.size):
        with pytest.raises(ParameterError):
            oracle.probabilities(value, public)
    for wrong in ((*public, 0), (*public[:-1], -1), (*public[:-1], 1 << 31)):
        with pytest.raises(ParameterError):
            oracle.probabilities(0, wrong)


def test_the_law_of_whole_unary_reports_is_listed_up_to_16_items() -> None:
    assert len(Oue(epsilon=1, size=16).probabilities(3)) == 1 << 16
    with pytest.raises(ParameterError):
        Oue(epsilon=1, size=17).probabilities(3)


@pytest.mark.parametrize("oracle", REAL, ids=named)
def test_epsilon_is_the_log_of_the_ratio(oracle: Oracle) -> None:
    assert exp(oracle.epsilon) == pytest.approx(float(oracle.max_ratio), rel=1e-12)


def test_without_a_draw_the_operating_system_is_asked() -> None:
    for kind in (Olh, Hrr, Oue, Hierarchy, HaarHrr):
        oracle: Oracle = kind(epsilon=1, size=4096)
        reports = {tuple(oracle.perturb(7)) for _ in range(20)}
        assert len(reports) > 4  # at most 4: below 10^-9
    assert len({Grr(epsilon=1, size=4096).perturb(7) for _ in range(20)}) > 4
