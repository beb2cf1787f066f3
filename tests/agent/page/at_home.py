"""A home with a page, on a clock that stands still."""

from pathlib import Path
from typing import Any

from agent.config.sections import PageTable
from agent.link.uplink import Vitals
from agent.page.gather import Household
from agent.page.record import LeftRecord
from agent.page.server import Page
from tests.agent.samples import make_plan
from tests.agent.state.device_bench import Bench

WELL = Vitals("ok", {"telegram_s": 7, "commit_s": None, "link_s": 60, "receipt_s": 5})


class PageBench(Bench):
    """A device that is kept record of; `vitals` is how the agent says that it is."""

    vitals = WELL

    def start(self, *, trusted: bool = True) -> None:
        super().start(trusted=trusted)
        self.record = LeftRecord(self.journal, self.config.slot_seconds, self.clock.now)
        self.device.core.kept = self.record
        self.household = Household(self.device, self.record, lambda: self.vitals)

    def page(self, **table: Any) -> Page:
        return Page(PageTable(**table), self.household)

    def report(self, slots: int, *, confirmed: bool = True) -> None:
        """Let slots pass, each a report; a receipt covers them all."""
        for _ in range(slots):
            self.live(1)
            self.send()
            if confirmed:
                (account,) = self.status.streams
                self.hear(account.next - 1)


def at_home(state: Path, **changes: Any) -> PageBench:
    """Return a home past its silence, under a plan."""
    bench = PageBench(state, **changes)
    plan = make_plan(3, ceiling=bench.config.streams[0].ceiling)
    assert bench.device.accept_plan("power", plan.to_json()) is None
    bench.pass_slots(2)
    return bench
