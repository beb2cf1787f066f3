"""Counts of codes sorted by what they tell: sums and surveys by plan epoch, or by mechanism.

A plan's codes are its stream codes, then its survey codes (docs/design.md, Messages). Reports of
one mechanism have one likelihood, whatever their epoch, so their counts add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from aggregator.counting.tally import dense, saturated
from edge_ldp.errors import CountsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from aggregator.counting.tally import CountRows
    from edge_ldp import Mechanism
    from edge_ldp.protocol.plan import Plan

    Ints = NDArray[np.int64]


def split(plan: Plan, codes: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Return (stream counts, survey counts) of one epoch, one entry for each code.

    Raises CountsError when a code is not the plan's: the table is damaged.
    """
    first_survey = plan.stream_mechanism.code_count
    code_count = first_survey + plan.survey_mechanism.code_count
    if len(codes) and not 0 <= codes.min() <= codes.max() < code_count:
        raise CountsError(f"a code outside those of epoch {plan.epoch}")
    together = dense(codes, counts, code_count)
    return together[:first_survey], together[first_survey:]


def split_epochs(
    plans: Mapping[int, Plan], epochs: Ints, codes: Ints, counts: Ints
) -> dict[int, tuple[Ints, Ints]]:
    """Return {epoch: (stream counts, survey counts)} for the epochs that have counts, rising."""
    found = {}
    for epoch in sorted(set(epochs.tolist())):
        if epoch not in plans:
            raise CountsError(f"of epoch {epoch}, which was never issued")
        here = epochs == epoch
        found[epoch] = split(plans[epoch], codes[here], counts[here])
    return found


def merge_epochs(plans: Mapping[int, Plan], rows: CountRows) -> dict[Mechanism, Ints]:
    """Return the counts of every mechanism, sums and surveys, of equal ones added up.

    In order of first use; none that counted nothing. Raises CountsError.
    """
    merged: dict[Mechanism, Ints] = {}
    for epoch, parts in split_epochs(plans, rows.epoch, rows.code, rows.count).items():
        plan = plans[epoch]
        for mechanism, counts in zip(
            (plan.stream_mechanism, plan.survey_mechanism), parts, strict=True
        ):
            if counts.any():
                merged[mechanism] = saturated(merged.get(mechanism, np.zeros_like(counts)), counts)
    return merged
