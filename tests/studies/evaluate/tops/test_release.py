"""Sums for whole arrays are the sums of what a curator releases, number for number."""

from fractions import Fraction

import numpy as np
import pytest

from edge_ldp.continual import Curator, Design, Fixed, Released, Shape
from edge_ldp.continual.smoothers import SMOOTHERS
from studies.evaluate.tops.release import range_sums

KEY_WORDS = (11, 22, 33, 44)
SHAPES = [
    Shape("tree", 2, 64),
    Shape("tree", 4, 60),
    Shape("consistent", 4, 64),
    Shape("consistent", 4, 64, 1),
    Shape("consistent", 4, 60, 1),
    Shape("consistent", 2, 64, 4),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("smoother", sorted(SMOOTHERS))
def test_arrays_give_the_sums_of_a_curators_releases(shape: Shape, smoother: str) -> None:
    stream = np.array([(k * k * 7 + k) % 60 for k in range(shape.chunk)], np.int64)
    design = Design(Fixed(45), shape, Fraction(1, 3), 60, 0, smoother=smoother)
    words = iter(KEY_WORDS)
    curator, collected = Curator(design, draw=lambda _: next(words)), Released(design)
    for reading in stream.tolist():
        collected.add(curator.push(reading))
    pairs = np.array([(a, b) for a in range(0, shape.chunk, 3) for b in range(a + 1, 61, 5)])
    found = range_sums(
        stream,
        pairs,
        shape=shape,
        theta=45,
        epsilon=Fraction(1, 3),
        key=b"".join(word.to_bytes(8, "little") for word in KEY_WORDS),
        smoother=smoother,
    )
    assert found.tolist() == [collected.range(a, b).total for a, b in pairs.tolist()]
