"""Whatever befalls a device with sums: no slot leaves twice, no window costs more than its ε."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from agent.config.summed_streams import sum_terms
from tests.agent.samples import SLOT_S
from tests.agent.summed import BOTH, SUMS, SumsBench, in_memory

WIDE = 4
ALL = "least_share = 0\n"
SHARES = (BOTH + ALL + "cells = 24\n", BOTH + ALL, BOTH.replace("0.5", "0.75") + ALL, SUMS + ALL)


@pytest.fixture(autouse=True)
def runtime() -> Iterator[Path]:
    with in_memory() as place:
        yield place


@dataclass(frozen=True)
class Paid:
    """What a slot paid, by the wall clock's number of it and by the true time."""

    label: int
    true_s: float
    cost: Fraction


class Watched(SumsBench):
    """A bench that notes what every slot paid once it left, and in which sum."""

    def __init__(self, state: Path) -> None:
        self.true_s = 0.0
        self.paid: list[Paid] = []
        self.summed: list[Paid] = []
        self.sent = 0
        super().__init__(state, SHARES[0])

    def look(self, label: int) -> None:
        """Note what became of a slot that was just closed."""
        left = len(self.sums.released())
        running = self.running[0].slots if self.running else 0
        if left > self.sent:
            assert left == self.sent + 1
            count = self.sums.released()[-1].slots if self.summed else 0
            assert count <= len(self.summed)
            self.paid += self.summed[:count]
            self.summed, self.sent = [], left
        if running < len(self.summed):
            self.summed = []
        if running > len(self.summed):
            assert running == len(self.summed) + 1
            self.summed.append(Paid(label, self.true_s, sum_terms(self.config)[0].per_slot))
        ledger = self.journal.ledger()
        reports = ledger.reports if ledger else 0
        self.paid += [Paid(label, self.true_s, Fraction(1))] * (reports - self.reported)
        self.reported = reports

    reported = 0

    def pass_slots(self, slots: int) -> None:
        self.true_s += slots * SLOT_S
        super().pass_slots(slots)


@pytest.mark.parametrize("seed", range(8))
def test_no_walk_of_clocks_restarts_and_shares_spends_more_than_the_window_AGT_36(
    tmp_path: Path, seed: int
) -> None:
    rng = Random(seed)  # noqa: S311 (what befalls, not what leaves)
    bench = Watched(tmp_path / "s.db")
    for _ in range(40):
        event = rng.randrange(12)
        if event == 0:
            bench.clock.step(rng.choice((-90, -20, -3, -1, 1, 3, 20, 90)) * SLOT_S)
        elif event == 1:
            bench.restart(rng.choice(SHARES))
        elif event == 2:
            bench.reboot(rng.randrange(3) * SLOT_S)
        elif event == 3:
            bench.restart()
        elif event == 4:
            bench.pass_slots(rng.randrange(50))
        for _ in range(rng.choice((1, 2, 5, 30))):
            bench.pass_slots(1)
            label = bench.device.slot - 1
            bench.close(rng.choice((500, 500, None)))
            bench.look(label)
    bench.journal.close()
    assert bench.sent > 0
    sums = [one for one in bench.paid if one.cost != 1]
    labels = [one.label for one in sums]
    assert len(set(labels)) == len(labels)
    for one in bench.paid:
        window = [other for other in bench.paid if 0 <= other.label - one.label < WIDE]
        assert sum(other.cost for other in window) <= 8
        since = [o.cost for o in bench.paid if 0 <= o.true_s - one.true_s < (WIDE - 0.5) * SLOT_S]
        assert sum(since) <= 8
