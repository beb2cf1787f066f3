"""What reports are decoded to: unbiased and of the stated variance, exactly."""

from fractions import Fraction
from hashlib import shake_256
from math import log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.errors import ParameterError
from edge_ldp.oracles import Grr, HaarHrr, Hierarchy, Hrr, Olh, Oracle, Oue
from edge_ldp.oracles.base import Tree
from edge_ldp.oracles.hadamard import halved
from edge_ldp.oracles.hierarchy import PADDING
from edge_ldp.oracles.support import Support, collision
from tests.edge_ldp.laws import draw_from
from tests.edge_ldp.oracles.small import (
    REAL,
    SMALL,
    SUPPORTS,
    TREES,
    decoded,
    law_of,
    moments,
    named,
)
from tests.tables import each

EVERY = pytest.mark.parametrize("oracle", SMALL, ids=named)
FEW = [oracle for oracle in REAL if oracle.size < 2000]


@EVERY
def test_the_mean_of_a_decoded_report_is_1_for_the_own_item_and_0_for_others(
    oracle: Oracle,
) -> None:
    for value in range(oracle.size):
        law = law_of(oracle, value)
        for item in range(oracle.size):
            mean, variance = moments(law, {report: decoded(oracle, report)[item] for report in law})
            assert mean == (item == value)
            assert variance == oracle.variance(value, item)


@EVERY
def test_the_worst_variance_and_the_influence_are_reached_and_never_passed(oracle: Oracle) -> None:
    items = range(oracle.size)
    worst = max(oracle.variance(value, item) for value in items for item in items)
    assert oracle.worst_variance == float(worst)
    entries = [abs(y) for report in law_of(oracle, 0) for y in decoded(oracle, report)]
    assert oracle.influence == float(max(entries))
    assert all(len(decoded(oracle, report)) == oracle.size for report in law_of(oracle, 0))


@pytest.mark.parametrize("oracle", SUPPORTS, ids=named)
def test_a_report_supports_its_items_with_the_stated_probabilities(oracle: Support) -> None:
    for value in range(oracle.size):
        law = law_of(oracle, value)
        for item in range(oracle.size):
            share = sum(p for report, p in law.items() if item in oracle.supported(report))
            assert share == (oracle.own if item == value else oracle.other)


@pytest.mark.parametrize("oracle", TREES, ids=named)
def test_every_node_is_decoded_without_bias_and_with_the_stated_variance(oracle: Tree) -> None:
    for value in range(oracle.size):
        law = law_of(oracle, value)
        levels = {report: oracle.decode_levels(report) for report in law}
        for level, nodes in enumerate(next(iter(levels.values()))):
            for node in range(len(nodes)):
                entries = {report: levels[report][level][node] for report in law}
                mean, variance = moments(law, entries)
                assert mean == true_entry(oracle, value, level, node)
                assert variance == oracle.node_variance(value, level, node)


def true_entry(oracle: Tree, value: int, level: int, node: int) -> int:
    """Whether the value lies below the node; in a Haar tree, on which side."""
    if isinstance(oracle, Hierarchy):
        below = oracle.client.fanout ** (len(oracle.levels) - 1 - level)
        return int(value // below == node)
    half, rest = divmod(value, 2 << level)
    return (1 if rest < 1 << level else -1) if half == node else 0


@given(st.sampled_from(FEW), st.lists(st.integers(0, 999), max_size=4), st.integers(0, 1 << 32))
def test_an_estimate_is_the_sum_of_what_the_reports_stand_for(
    oracle: Oracle, values: list[int], seed: int
) -> None:
    draw, _ = draw_from(shake_256(b"%d" % seed).digest(1 << 16))
    reports = [oracle.perturb(value % oracle.size, draw=draw) for value in values]
    sums = [Fraction(0)] * oracle.size
    for report in reports:
        sums = [x + y for x, y in zip(sums, oracle.decode(report), strict=True)]
    assert oracle.estimate(reports) == pytest.approx([float(x) for x in sums], abs=1e-6)
    assert oracle.estimate(iter([list(report) for report in reports])) == oracle.estimate(reports)
    if isinstance(oracle, Tree):
        levels = oracle.estimate_levels(reports)
        for level, counts in enumerate(levels):
            wanted = [
                float(sum(column))
                for column in zip(
                    *(oracle.decode_levels(report)[level] for report in reports), strict=True
                )
            ]
            assert counts == pytest.approx(wanted or [0.0] * len(counts), abs=1e-6)


@pytest.mark.parametrize("prime", [2, 3, 5, 7, 11, 13])
@pytest.mark.parametrize("g", [2, 3, 4, 5, 13, 14, 100])
def test_the_collision_probability_is_that_of_all_seeds(prime: int, g: int) -> None:
    seeds = [(a, b) for a in range(1, prime) for b in range(prime)]
    for one in range(prime):
        for other in range(one):
            alike = sum((a * one + b) % prime % g == (a * other + b) % prime % g for a, b in seeds)
            assert collision(prime, g) == Fraction(alike, len(seeds))


def test_local_hashing_supports_the_items_of_the_reported_hash() -> None:
    oracle = Olh(epsilon=2, size=300)
    prime, g = (1 << 31) - 1, 8
    assert oracle.client.channel.d == g
    for a, b in ((1, 0), (prime - 1, prime - 1), (123_456_789, 987_654_321)):
        for code in (0, 5, g - 1):
            wanted = [x for x in range(300) if (a * x + b) % prime % g == code]
            assert oracle.supported((a, b, code)) == wanted


@given(st.integers(1, 5), st.data())
def test_halving_undoes_the_haar_transform(height: int, data: st.DataObject) -> None:
    items = data.draw(st.lists(st.integers(-99, 99), min_size=1 << height, max_size=1 << height))
    levels, sums = [], [Fraction(x) for x in items]
    while len(sums) > 1:
        levels.append([x - y for x, y in zip(sums[::2], sums[1::2], strict=True)])
        sums = [x + y for x, y in zip(sums[::2], sums[1::2], strict=True)]
    assert halved(sums[0], levels) == items


# Published figures


@pytest.mark.parametrize("epsilon", ["0.5", "1", "2", "4"])
def test_variances_are_those_of_the_papers(epsilon: str) -> None:
    """[SW] eq 1 for GRR; 4E/(E − 1)² for OUE, and for OLH where E is an integer."""
    grr, olh, oue = (kind(epsilon=epsilon, size=50) for kind in (Grr, Olh, Oue))
    e = float(grr.max_ratio)
    assert grr.variance(0, 1) == pytest.approx((48 + e) / (e - 1) ** 2)
    assert oue.variance(0, 1) == pytest.approx(4 * e / (e - 1) ** 2)
    assert 1 <= float(olh.variance(0, 1)) / (4 * e / (e - 1) ** 2) < 9 / 8


@pytest.mark.parametrize(("epsilon", "g"), [("0.01", 2), ("1", 3), ("2", 8), ("8", 2981)])
def test_local_hashing_hashes_to_one_more_than_e_rounded_down(epsilon: str, g: int) -> None:
    assert Olh(epsilon=epsilon, size=10).client.channel.d == g


def test_a_hierarchy_takes_on_each_level_the_oracle_of_the_smaller_variance() -> None:
    tree = Hierarchy(epsilon=2, size=40)  # 3E + 2 = 24.2
    assert [(type(level), level.size) for level in tree.levels] == [(Grr, 4), (Grr, 16), (Olh, 64)]
    for epsilon in ("0.1", "1", "2", "4"):
        for level in Hierarchy(epsilon=epsilon, size=500, fanout=3).levels:
            other: Oracle = (Olh if isinstance(level, Grr) else Grr)(
                epsilon=epsilon, size=level.size
            )
            assert level.variance(0, 1) <= other.variance(0, 1) * Fraction(102, 100)


@pytest.mark.parametrize(
    ("oracle", "bits"),
    [
        (Grr(epsilon=1, size=1024), 10),
        (Grr(epsilon=1, size=1025), 11),
        (Olh(epsilon=1, size=1024), 64),
        (Hrr(epsilon=1, size=1000), 11),
        (Oue(epsilon=1, size=1000), 1000),
        (HaarHrr(epsilon=1, size=1000), 14),
        (Hierarchy(epsilon=1, size=1000), 67),
    ],
    ids=named,
)
def test_a_report_takes_these_bits(oracle: Oracle, bits: int) -> None:
    assert oracle.report_bits == bits


def test_the_item_a_liar_pushes_gains_what_influence_says() -> None:
    oracle = Hrr(epsilon=log(3), size=4)
    assert oracle.influence == pytest.approx(2, abs=1e-4)  # (E + 1)/(E − 1)


# Bad input


@pytest.mark.parametrize(
    ("oracle", "report"),
    each(
        (Grr(epsilon=1, size=5), (), (5,), (-1,), (0, 0), (True,), (1.0,), ("1",)),
        (Olh(epsilon=1, size=5), (0, 0, 0), (1, 0, 3), ((1 << 31) - 1, 0, 0), (1, 1)),
        (Olh(epsilon=1, size=5), (1, (1 << 31) - 1, 0)),
        (Hrr(epsilon=1, size=5), (8, 0), (0, 2), (0,), (0, 0, 0)),
        (Oue(epsilon=1, size=10), b"", b"\0", b"\0\0\0", b"\0\4", [0, 4], [0, 256], [0], (0, -1)),
        (HaarHrr(epsilon=1, size=8), (3, 0, 0), (0, 4, 0), (1, 2, 0), (2, 1, 0), (0, 0, 2), (0, 0)),
        (HaarHrr(epsilon=1, size=8), (-1, 0, 0)),
        (Hierarchy(epsilon=2, size=40), (), (3, 0), (-1, 0), (0,), (0, 4), (0, 0, 0), (2, 0)),
        (Hierarchy(epsilon=2, size=40), (2, 0, 0, 0), (2, 1, 0, 8), (0, 0, -1, -1, -1)),
        (Hierarchy(epsilon=2, size=40), (0, 0, -1, -2), (2, 1, 0, -1)),
    ),
    ids=repr,
)
def test_what_is_no_report_is_refused(oracle: Oracle, report: Any) -> None:
    assert oracle.estimate([]) == [0] * oracle.size
    for use in (oracle.split, oracle.decode, lambda one: oracle.estimate([one])):
        with pytest.raises(ParameterError) as refused:
            use(report)
        assert refused.value.name == "report"


def test_rows_that_were_filled_up_are_taken_as_they_are() -> None:
    tree = Hierarchy(epsilon=2, size=40)
    assert tree.split((1, 9, PADDING, PADDING)) == tree.split((1, 9)) == ((1,), 9)
    assert tree.decode([0, 3, PADDING, PADDING]) == tree.decode([0, 3])


@EVERY
def test_there_is_no_variance_of_what_is_no_category(oracle: Oracle) -> None:
    for wrong in ((-1, 0), (0, oracle.size), (oracle.size, 0), (0, -1), (0, True)):
        with pytest.raises(ParameterError):
            oracle.variance(*wrong)
    if isinstance(oracle, Tree):
        for level, node in ((99, 0), (-1, 0), (0, 99), (0, -1)):
            with pytest.raises(ParameterError):
                oracle.node_variance(0, level, node)
