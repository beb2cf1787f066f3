"""Cold start: no ceiling is known. Surveys whose range grows sixteenfold until it holds the median.

A range that is too wide costs one survey of narrowing; one too narrow shows how much lies "at or
above", so the range goes up fast and the joint estimate brings it down again. From a first guess
a factor F too low, ⌈log₁₆ F⌉ surveys are spent on growing. Source: METHODS §4 (unbounded quantile,
its candidates βⁱ adapted to a survey's accuracy), derived here; measured: docs/adaptive-theta.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from aggregator.adaptive.likelihood import reports_of
from aggregator.errors import ArgumentError
from aggregator.estimate.joint import cells, joint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aggregator.adaptive.decide import Setting
    from aggregator.estimate.joint import Evidence

GROWTH = 16
BEYOND = 64  # the ceiling, over the range that holds the median: room for the tail
ENOUGH = 0.5  # of the mass within the range


def widened(setting: Setting, evidence: Sequence[Evidence]) -> tuple[Setting, bool]:
    """Return the setting to go on with after surveys up to `ceiling`, and whether it is found.

    Found: at least half of the values lie below the ceiling; the setting's ceiling is then put 64
    times further out, as nothing is known beyond. Not found: 16 times further, survey again. Use
    all surveys so far afterwards: they stay evidence. Raises NoReportsError, ArgumentError.
    """
    if setting.low >= setting.ceiling:
        raise ArgumentError("setting", "low < ceiling")
    span = setting.ceiling - setting.low
    edges = np.append(cells(setting.low, setting.ceiling), setting.ceiling + 1 + GROWTH * span)
    reports_of(evidence, edges)  # raises for none
    inside = 1 - float(joint(evidence, edges, smoothing=0).probabilities[-1])
    found = inside >= ENOUGH
    factor = BEYOND if found else GROWTH
    return replace(setting, ceiling=setting.low + factor * span), found
