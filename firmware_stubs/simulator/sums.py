"""Sums of simulated homes, by the agent's own code: slots in, a frame out at a period's end."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from agent.claims.batches import Batch, Numbering
from agent.config.summed_streams import SumTerms
from agent.curator.sums import RunningSum, added, begin_sum, packed
from edge_ldp.period_sums import PeriodLayout, scale_for
from edge_ldp.protocol.plan import Policy
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from edge_ldp.ratio import Epsilon

WINDOW = 97  # slots, any of which together cost ε


def sum_terms_of(policy: Policy, shape: tuple[int, int, int, int], epsilon: Epsilon) -> SumTerms:
    """Return what every home's sums are made by; `shape`: days, cells, offset, block hours.

    Raises ParameterError.
    """
    layout = PeriodLayout.of_hours(policy.slot_seconds, *shape)
    span = policy.ceiling - policy.low
    scale = scale_for(layout, WINDOW, span, epsilon)
    return SumTerms(
        FIRST_SUMS_KEY, layout, policy.low, span, scale, policy.unit, policy.stream, least=1
    )


class HomesSums:
    """What runs in each home; `series` numbers the releases, `draw(n)` gives 0..n-1 for noise."""

    def __init__(
        self, terms: SumTerms, homes: int, series: int, draw: Callable[[int], int]
    ) -> None:
        self.terms = terms
        self.released = 0  # by each home
        self.totals: list[int] = []  # of all homes, by period: known of simulated homes only
        self._series = series
        self._draw = draw
        self._running: list[RunningSum | None] = [None] * homes

    def take(self, first_slot: int, values: NDArray[np.int64]) -> Iterator[list[Batch]]:
        """Add slots of every home (homes, slots); yield each home's batch at a period's end."""
        for at in range(values.shape[1]):
            slot = first_slot + at
            for home, value in enumerate(values[:, at].tolist()):
                running = self._running[home] or begin_sum(self.terms, slot)
                self._running[home] = added(running, slot, value)
            if self.terms.layout.period(slot + 1) != self.terms.layout.period(slot):
                yield self._release()

    def _release(self) -> list[Batch]:
        ended = [one for one in self._running if one is not None]
        self._running = [None] * len(self._running)
        self.released += 1
        self.totals.append(sum(sum(one.sums) for one in ended))
        numbering = Numbering(self.released, self._series, 0)
        return [packed(one, numbering, self._draw) for one in ended]
