"""One run: θ from the readings, a released stream's range sums, and what they miss.

Queries are the same for all lines of a data set and repeat, so lines differ by method, not luck.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.continual.noise import fresh_key
from studies.evaluate.metrics import SumErrors, errors_between, query_pairs
from studies.evaluate.study import Task, rng
from studies.evaluate.tops import published
from studies.evaluate.tops.release import before, range_sums
from studies.evaluate.tops.systems import SYSTEMS, capped, counts, draws, optimiser, structure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from edge_ldp.continual.threshold import Optimiser
    from studies.evaluate.tops.layout import Layout

    Integers = NDArray[np.int64]

PUBLISHED = {"ToPS, published code": "consistent", "NM-E + H2, published code": "binary"}


def run_system(task: Task, lay: Layout, pairs: Integers) -> tuple[int, Integers]:
    """Return θ and the range sums of one of SYSTEMS at budget x."""
    made = SYSTEMS[task.series]
    epsilon = exact(task.x)
    chunk = len(lay.stream)
    chosen_by = optimiser(
        made.rule,
        ceiling=lay.ceiling,
        chunk=chunk,
        epsilon=epsilon,
        stream_epsilon=epsilon,
        tuning=made.tuning,
    )
    theta = chosen(task, lay, chosen_by)
    shape = structure(made.structure, chunk, epsilon)
    theta = capped(theta, shape, epsilon)
    key = fresh_key(draws(rng(task, "key")))
    sums = range_sums(lay.stream, pairs, shape=shape, theta=theta, epsilon=epsilon, key=key)
    return theta, sums


def run_published(task: Task, lay: Layout, pairs: Integers) -> tuple[int, NDArray[np.float64]]:
    """Return θ and the range sums of one of PUBLISHED."""
    random = rng(task, "published")
    theta = published.published_noisy_max(
        lay.readings, lay.ceiling, task.x, len(lay.stream), random
    )
    is_binary = PUBLISHED[task.series] == "binary"
    sums = published.binary_sums if is_binary else published.consistent_sums
    return theta, sums(lay.stream, pairs, theta, task.x, random)


def released(task: Task, stream: Integers, theta: int, epsilon: Fraction) -> Mapping[str, float]:
    """Return what Ĥ16c's sums miss of the whole truth."""
    shape = structure("Ĥ16c", len(stream), epsilon)
    theta = capped(theta, shape, epsilon)
    pairs = pairs_of(task, len(stream))
    key = fresh_key(draws(rng(task, "key")))
    sums = range_sums(stream, pairs, shape=shape, theta=theta, epsilon=epsilon, key=key)
    return {"mse": errors_of(stream, pairs, sums).mse, "theta": float(theta)}


def chosen(task: Task, lay: Layout, chosen_by: Optimiser) -> int:
    """Return θ chosen from the readings."""
    purpose = f"theta of {len(lay.readings)}"
    return chosen_by.choose(counts(lay.readings, lay.ceiling), draws(rng(task, purpose)))


def errors_of(
    stream: Integers, pairs: Integers, sums: NDArray[np.int64] | NDArray[np.float64] | None
) -> SumErrors:
    """Return the errors of released sums, None for sums of 0."""
    ends = before(stream)[pairs]
    true = ends[:, 1] - ends[:, 0]
    found = np.zeros(len(pairs)) if sums is None else sums
    return errors_between(true, found, pairs[:, 1] - pairs[:, 0])


def pairs_of(task: Task, length: int) -> Integers:
    """Return the queries of a data set and repeat."""
    shared = Task("queries", task.data, "", float(length), task.seed)
    return query_pairs(length, rng=rng(shared))


def exact(x: float) -> Fraction:
    """Return a budget as the decimal that was written."""
    return Fraction(repr(x))
