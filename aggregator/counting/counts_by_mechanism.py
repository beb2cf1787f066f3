"""Counts of codes sorted by what they tell: sums and surveys by plan epoch, or by mechanism.

A plan's codes are its stream codes, then its survey codes (docs/design.md, Messages). Reports of
one mechanism have one likelihood, whatever their epoch, so their counts add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from aggregator.counting.classes import unweighted
from aggregator.counting.tally import dense, saturated
from edge_ldp.errors import CountsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aggregator.counting.classes import Weights
    from aggregator.counting.tally import CountRows
    from edge_ldp import Mechanism
    from edge_ldp.protocol.plan import Plan

    Ints = NDArray[np.int64]


def split(plan: Plan, codes: Ints, counts: Any) -> tuple[Any, Any]:
    """Return (stream counts, survey counts) of one epoch, one entry for each code; or weights.

    Raises CountsError when a code is not the plan's: the table is damaged.
    """
    first_survey = plan.stream_mechanism.code_count
    code_count = first_survey + plan.survey_mechanism.code_count
    if len(codes) and not 0 <= codes.min() <= codes.max() < code_count:
        raise CountsError(f"a code outside those of epoch {plan.epoch}")
    together = dense(codes, counts, code_count)
    return together[:first_survey], together[first_survey:]


def split_epochs(
    plans: Mapping[int, Plan], epochs: Ints, codes: Ints, counts: Any
) -> dict[int, tuple[Any, Any]]:
    """Return {epoch: (stream counts, survey counts)} for the epochs that have counts, rising."""
    found = {}
    for epoch in sorted(set(epochs.tolist())):
        if epoch not in plans:
            raise CountsError(f"of epoch {epoch}, which was never issued")
        here = epochs == epoch
        found[epoch] = split(plans[epoch], codes[here], counts[here])
    return found


def weigh_epochs(
    plans: Mapping[int, Plan], rows: CountRows, weights: Weights
) -> dict[int, list[list[Any]]]:
    """Return [stream counts, survey counts] of epochs, each a list: counts, and what they weigh.

    Beside counts stand the sums of their reports' weights and of these squared, where weights
    differ. Whole reports are added up first, so that it is the same to the bit however rows were.
    Raises CountsError.
    """
    found: dict[int, list[list[Any]]] = {}
    whose = rows.whose if weights.differ else np.zeros(len(rows.whose), np.int64)
    order = np.argsort(whose, kind="stable")
    for at in np.split(order, np.flatnonzero(np.diff(whose[order])) + 1):
        mine = rows.some(at)
        for epoch, pair in split_epochs(plans, mine.epoch, mine.code, mine.count).items():
            powers = [weights.powers(mine.whose[:1], counts) for counts in pair]
            found[epoch] = _plus(found[epoch], powers) if epoch in found else powers
    return {epoch: found[epoch] for epoch in sorted(found)}


def _plus(some: list[list[Any]], more: list[list[Any]]) -> list[list[Any]]:
    return [list(map(saturated, *both)) for both in zip(some, more, strict=True)]


def merge_epochs(
    plans: Mapping[int, Plan], rows: CountRows, weights: Weights | None = None
) -> dict[Mechanism, list[Any]]:
    """Return the counts of every mechanism, sums and surveys, of equal ones added up.

    In lists, as in `weigh_epochs`. In order of first use; none that counted nothing. Raises
    CountsError.
    """
    merged: dict[Mechanism, list[Any]] = {}
    for epoch, parts in weigh_epochs(plans, rows, weights or unweighted()).items():
        plan = plans[epoch]
        for mechanism, powers in zip(
            (plan.stream_mechanism, plan.survey_mechanism), parts, strict=True
        ):
            if powers[0].any():
                so_far = merged.get(mechanism, [np.zeros_like(one) for one in powers])
                merged[mechanism] = list(map(saturated, so_far, powers))
    return merged
