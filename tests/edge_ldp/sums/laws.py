"""Exact expectations: a survey's counts as they would be on average, from the mechanism itself."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from edge_ldp import Mechanism
from edge_ldp.sums import CodeCounts, SurveyDesign

Floats = NDArray[np.float64]


def expected(mechanism: Mechanism, values: Mapping[int, float], reports: float) -> CodeCounts:
    """Return the mean counts by code of so many reports of values with these probabilities."""
    law = sum(
        share * np.array(mechanism.probabilities(value), np.float64)
        for value, share in values.items()
    )
    return CodeCounts(mechanism, reports * np.asarray(law))


def mean(values: Mapping[int, float]) -> float:
    return sum(value * share for value, share in values.items())


def over_cells(
    design: SurveyDesign, h: Callable[[int], Fraction], values: range
) -> list[tuple[Fraction, list[int]]]:
    """Return each cell's mean of h over its integers, and these integers, of `values`."""
    edges = design.edges.tolist()
    cells = [[v for v in values if a <= v < b] for a, b in pairwise(edges)]
    return [(sum(map(h, cell), Fraction(0)) / len(cell), cell) for cell in cells]


def average_weight(design: SurveyDesign, h: Floats, cell: list[int]) -> Fraction:
    """Return the weights' exact expectation over a cell's integers and every code."""
    exact = [Fraction(float(w)) for w in design.weights(h)]
    total = Fraction(0)
    for value in cell:
        pairs = zip(design.survey.probabilities(value), exact, strict=True)
        total += sum((p * w for p, w in pairs), Fraction(0)) / len(cell)
    return total
