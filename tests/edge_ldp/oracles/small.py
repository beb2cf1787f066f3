"""Oracles of few integers, so that all their draws can be run."""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import prod
from typing import Any

from edge_ldp.device.oracle import grr, haar_hrr, hierarchy, hrr, level_sizes, olh, oue
from edge_ldp.oracles import Grr, HaarHrr, Hierarchy, Hrr, Olh, Oracle, Oue
from edge_ldp.oracles.base import Tree
from edge_ldp.oracles.support import Support
from tests.edge_ldp.laws import outcomes

Report = tuple[int, ...]

SUPPORTS: list[Support] = [
    Grr.of(grr(2, 3, 1)),
    Grr.of(grr(5, 5, 2)),
    Olh.of(olh(4, 3, 3, 1, prime=5)),
    Olh.of(olh(7, 2, 3, 2, prime=7)),  # as many items as residues
    Olh.of(olh(2, 4, 7, 3, prime=3)),  # more hashes than residues
    Oue.of(oue(2, 5, 2)),
    Oue.of(oue(4, 2, 1)),
]
HADAMARDS: list[Oracle] = [Hrr.of(hrr(size, 5, 2)) for size in (2, 3, 8)]
TREES: list[Tree] = [
    Hierarchy.of(hierarchy(4, 2, (grr(2, 3, 1), grr(4, 3, 1)))),
    Hierarchy.of(hierarchy(5, 3, (grr(3, 5, 2), olh(9, 2, 5, 2, prime=11)))),
    Hierarchy.of(hierarchy(7, 2, (olh(2, 3, 2, 1, prime=5), grr(4, 3, 1), grr(8, 3, 2)))),
    Hierarchy.of(hierarchy(3, 4, (olh(4, 2, 3, 1, prime=5),))),
    *(HaarHrr.of(haar_hrr(size, 5, 2)) for size in (2, 3, 4, 6, 8)),
]
SMALL: list[Oracle] = [*SUPPORTS, *HADAMARDS, *TREES]
REAL: list[Oracle] = [
    kind(epsilon=epsilon, size=size)
    for kind in (Grr, Olh, Hrr, Oue, Hierarchy, HaarHrr)
    for epsilon, size in ((1, 2), ("0.1", 21), (2, 40), (8, 1000))
]
REAL += [
    Hierarchy(epsilon=1, size=50, fanout=7),
    Hierarchy(epsilon="0.5", size=200, fanout=16),  # OLH alone
    Grr(epsilon=32, size=3),  # nearly half of the words is refused
    Hrr(epsilon=32, size=21),
    Oue(epsilon=32, size=21),
    Hierarchy(epsilon=32, size=21),
    HaarHrr(epsilon=32, size=21),
    Olh(epsilon=11, size=(1 << 31) - 1),
    Hrr(epsilon=1, size=1 << 31),
    HaarHrr(epsilon=1, size=1 << 31),
    Hierarchy.of(hierarchy(99, 5, tuple(olh(n, 2, 3, 1) for n in level_sizes(99, 5)))),
]


@cache
def runs(oracle: Oracle, value: int) -> list[tuple[Report, Report]]:
    """Return (the n of each draw, the report) of every sequence of draws for a value."""
    made = outcomes(lambda draw: tuple(oracle.perturb(value, draw=draw)))
    return [(asked, report) for asked, report in made]


@cache
def law_of(oracle: Oracle, value: int) -> dict[Report, Fraction]:
    """Return the exact probability of every report of a value."""
    law: dict[Report, Fraction] = {}
    for asked, report in runs(oracle, value):
        law[report] = law.get(report, Fraction(0)) + Fraction(1, prod(asked))
    return law


@cache
def decoded(oracle: Oracle, report: Report) -> list[Fraction]:
    return oracle.decode(report)


def moments(law: dict[Report, Fraction], entries: dict[Report, Any]) -> tuple[Any, Any]:
    """Return mean and variance of a report's entry."""
    mean = sum(share * entries[report] for report, share in law.items())
    square = sum(share * entries[report] ** 2 for report, share in law.items())
    return mean, square - mean * mean


def named(oracle: object) -> str:
    return repr(oracle).strip("<>")


def listed(reports: Sequence[Sequence[int]]) -> list[list[int]]:
    return [list(report) for report in reports]
