"""Whatever befalls a device with sums: no slot leaves twice, no window costs more than its ε."""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.config.summed_streams import sum_terms
from tests.agent.curated import Bench
from tests.agent.samples import SLOT_S
from tests.agent.summed import BOTH, SUMS, SumsBench

WIDE = 4
ALL = "least_share = 0\n"
SHARES = (BOTH + ALL + "cells = 24\n", BOTH + ALL, BOTH.replace("0.5", "0.75") + ALL, SUMS + ALL)


pytestmark = pytest.mark.usefixtures("runtime")


WAYS: tuple[dict[str, Any], ...] = (
    {"stream": "", "window": (4, 4)},
    {"stream": SUMS + ALL, "window": (8, 4)},
    {"stream": BOTH + ALL, "window": (8, 4)},
    {"stream": BOTH.replace("0.5", "0.75") + ALL, "window": (8, 4)},
    {"stream": BOTH + ALL, "window": (8, 6)},
)


def test_every_change_of_mode_share_or_window_begins_with_its_silence_AGT_35(
    tmp_path: Path,
) -> None:
    """Each way of paying into each other one, every pair once; the longer of two windows counts."""
    pairs = [(one, two) for one in range(len(WAYS)) for two in range(one + 1, len(WAYS))]
    bench, wide = SumsBench(tmp_path / "s.db", **WAYS[0]), 4
    for way in [*[at for pair in pairs for at in pair][1:], 0]:
        bench.restart(**WAYS[way])
        before, wide = wide, WAYS[way]["window"][1]
        most, paid = max(before, wide), list[bool]()
        for _ in range(most + 3):
            ledger, running = bench.journal.ledger(), bench.running
            bench.push(500)
            after = bench.journal.ledger()
            assert ledger is not None
            assert after is not None
            paid.append(after.reports > ledger.reports or bench.running != running)
        assert not any(paid[:wide]), (way, paid)
        assert all(paid[most + 1 :]), (way, paid)
    bench.journal.close()


def test_a_curator_after_sums_takes_no_slot_of_theirs_even_where_the_clock_went_back_AGT_35(
    tmp_path: Path,
) -> None:
    bench = SumsBench(tmp_path / "s.db")
    bench.day()
    bench.push(500)
    (row,) = bench.sums.released()
    bench.journal.close()
    bench.clock.step(-40 * SLOT_S)
    curator = Bench(tmp_path / "s.db", clock=bench.clock)
    assert curator.curated.series()[0].series == row.until_s // SLOT_S - 1


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
