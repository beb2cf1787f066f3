"""Integer sums of a time bucket's stream reports from which its mean and interval follow exactly.

For each branch of a plan's stream mechanism: n, Σ and Σ² of the code within the branch, where the
code stands for a value in steps of one length; of a table's codes, which do not, the counts. A few
numbers in the place of hundreds of counts, and like these they add up. What follows from them is
computed one way only, so it is the same to the bit whether the sums were kept or made just now.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from edge_ldp import Mechanism
from edge_ldp.arrays import Floats, Ints
from edge_ldp.errors import CountsError, RowError
from edge_ldp.mechanisms.decoders import Affine
from edge_ldp.protocol.plan import Plan

MOMENTS = 3  # n, Σ, Σ² of an affine branch
_MOST = (1 << 63) - 1  # of a sum: it stays there, and says nothing any more
_SAFE = float(1 << 62)
AT_THE_END = "one is the largest there is: of how many reports nobody knows"


class Powers(NamedTuple):
    """Rows of sums: of the reports, of these times their weights, and times the squares."""

    counts: Any
    weights: Any
    squares: Any


class Averages(NamedTuple):
    """By place: n reports, the average of the decoded ones and its standard error (unit)."""

    n: Ints
    mean: Floats
    se: Floats


def moments(plan: Plan, codes: Ints, counts: Ints) -> Ints:
    """Return the sums of one bucket's counts; raises CountsError."""
    _, sums = sums_of_rows(plan, np.zeros(len(codes), np.int64), codes, counts)
    return sums[0] if len(sums) else np.zeros(_terms(plan.stream_mechanism).shape[1], np.int64)


def sums_of_rows(plan: Plan, places: Ints, codes: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return (place, sums) of counts at places that rise: one row each; raises CountsError."""
    terms = _terms(plan.stream_mechanism)
    if len(codes) and not 0 <= codes.min() <= codes.max() < _code_count(plan):
        raise CountsError(f"a code outside those of epoch {plan.epoch}")
    stream = codes < len(terms)
    places, codes, counts = places[stream], codes[stream], counts[stream]
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    if not len(starts):
        return places[starts], np.zeros((0, terms.shape[1]), np.int64)
    if float(terms.max(initial=0)) * float(counts.sum(dtype=np.float64)) >= _SAFE:
        exact = np.add.reduceat(terms[codes].astype(object) * counts[:, None], starts)
        return places[starts], np.minimum(exact, _MOST).astype(np.int64)
    columns = [np.add.reduceat(column[codes] * counts, starts) for column in terms.T]
    return places[starts], np.stack(columns, axis=1)


def pack_moments(sums: Ints) -> bytes:
    """Return sums as stored."""
    return sums.astype("<i8").tobytes()


def unpack_moments(plan: Plan, blobs: Sequence[bytes]) -> Ints:
    """Return stored sums of one plan, a row each; raises RowError for what are not its sums."""
    width = _terms(plan.stream_mechanism).shape[1]
    if any(len(blob) != 8 * width for blob in blobs):
        raise RowError(f"a bucket's sums are not those of epoch {plan.epoch}")
    return np.frombuffer(b"".join(blobs), "<i8").astype(np.int64).reshape(-1, width)


def averages(size: int, parts: Mapping[int, tuple[Plan, Ints, Powers]]) -> Averages:
    """Return the averages at places 0..size-1, of all epochs there; NaN where n is 0.

    `parts`: by epoch the plan, the place of each row of sums, and these rows. As `sums.average`:
    the variance is the empirical one with one more observation of the largest possible. Raises
    CountsError where a sum stands at the integers' end.
    """
    if any(rows.counts.max(initial=0) == _MOST for _, _, rows in parts.values()):
        raise CountsError(AT_THE_END)
    n, weight = np.zeros(size, np.int64), np.zeros(size)
    mean, spread = np.zeros(size), np.zeros(size)
    for plan, places, rows in parts.values():
        np.add.at(n, places, stream_reports(plan, rows.counts))
        np.add.at(weight, places, stream_reports(plan, rows.weights))
    nothing = n == 0
    weight[nothing] = 1
    for epoch in sorted(parts):
        plan, places, rows = parts[epoch]
        own, square = stream_reports(plan, rows.weights), stream_reports(plan, rows.squares)
        some = np.where(own > 0, own, 1)
        centre, squares = _spread(plan.stream_mechanism, rows, some)
        np.add.at(mean, places, own / weight[places] * centre)
        np.add.at(spread, places, squares + (square / some) ** 2 * _largest(plan.stream_mechanism))
    mean[nothing] = np.nan
    return Averages(n, mean, np.where(nothing, np.nan, np.sqrt(spread) / weight))


def stream_reports(plan: Plan, rows: Any) -> Any:
    """Return how many reports each row of sums is of, or what they weigh."""
    return rows @ _counting(plan.stream_mechanism)


def _spread(mechanism: Mechanism, rows: Powers, own: Floats) -> tuple[Floats, Floats]:
    """Return the average of each row of a weight `own`, and the sum of squares about it."""
    branches = _branches(mechanism)
    total = np.zeros(len(own))
    for at, start, step, is_affine in branches:
        total += start * rows.weights[:, at]
        if is_affine:
            total += step * rows.weights[:, at + 1]
    centre = total / own
    squares = np.zeros(len(own))
    for at, start, step, is_affine in branches:
        off = start - centre
        squares += off * off * rows.squares[:, at]
        if is_affine:
            more = 2 * off * step * rows.squares[:, at + 1]
            squares += more + step * step * rows.squares[:, at + 2]
    return centre, np.maximum(squares, 0)


def _code_count(plan: Plan) -> int:
    return plan.stream_mechanism.code_count + plan.survey_mechanism.code_count


@lru_cache(maxsize=256)
def _branches(mechanism: Mechanism) -> tuple[tuple[int, float, float, bool], ...]:
    """Return (column, value of code 0, what a code adds, is affine) of each branch or code."""
    found: list[tuple[int, float, float, bool]] = []
    at = 0
    for (_, first, channel), decoder in zip(mechanism.branches, mechanism.decoders, strict=True):
        values = [mechanism.decode_exact(first + j) for j in range(min(2, channel.code_count))]
        if isinstance(decoder, Affine):
            found.append((at, float(values[0]), float(values[-1] - values[0]), True))
            at += MOMENTS
            continue
        for j in range(channel.code_count):
            found.append((at, mechanism.decode(first + j), 0.0, False))
            at += 1
    return tuple(found)


@lru_cache(maxsize=256)
def _terms(mechanism: Mechanism) -> Ints:
    """Return what one report of each code adds to the sums: a row for each code."""
    blocks = []
    for (_, _, channel), decoder in zip(mechanism.branches, mechanism.decoders, strict=True):
        code = np.arange(channel.code_count, dtype=np.int64)
        if isinstance(decoder, Affine):
            blocks.append(np.stack([np.ones_like(code), code, code * code], axis=1))
        else:
            blocks.append(np.eye(channel.code_count, dtype=np.int64))
    terms = np.zeros((mechanism.code_count, sum(block.shape[1] for block in blocks)), np.int64)
    row = column = 0
    for block in blocks:
        height, width = block.shape
        terms[row : row + height, column : column + width] = block
        row, column = row + height, column + width
    return terms


@lru_cache(maxsize=256)
def _counting(mechanism: Mechanism) -> Ints:
    """Return 1 for each column that counts reports."""
    counting = np.zeros(_terms(mechanism).shape[1], np.int64)
    counting[[at for at, _, _, _ in _branches(mechanism)]] = 1
    return counting


@lru_cache(maxsize=256)
def _largest(mechanism: Mechanism) -> float:
    span = mechanism.high - mechanism.low
    return mechanism.worst_variance + span * span / 4
