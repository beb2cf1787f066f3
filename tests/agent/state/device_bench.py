"""A device on a clock that stands still and a real journal, step by step."""

from collections.abc import Callable
from pathlib import Path
from shutil import copytree, rmtree
from typing import Any

from agent.claims.batches import Key
from agent.claims.slots import SlotValues
from agent.state.journal import Journal
from edge_ldp.device.frame import decode
from edge_ldp.protocol.messages import Receipt, Status, StreamReceipt
from edge_ldp.protocol.signing import Keyring
from tests.agent.samples import DEVICE, SLOT_S, T0, StillClock, local_device, make_config, make_plan

Source = Callable[[int], bytes]
DAY_S = 86_400
TEN_YEARS_S = 3652 * DAY_S


class Bench:
    """A device that can be stopped, started again, and asked what is on its disk."""

    entropy: Source | None = None
    keyring: Keyring | None = None

    def __init__(
        self,
        state: Path,
        *,
        clock: StillClock | None = None,
        entropy: Source | None = None,
        keyring: Keyring | None = None,
        **changes: Any,
    ) -> None:
        self.state = state
        self.keyring = keyring
        self.entropy = entropy
        self.clock = clock or StillClock()
        self.config = make_config(state, **changes)
        self.start()

    def start(self, *, trusted: bool = True) -> None:
        self.journal = Journal(self.state)
        self.device = local_device(
            self.config, self.journal, self.clock, self.entropy, self.keyring
        )
        if trusted:
            self.device.trust_clock()

    def restart(self, *, trusted: bool = True, **changes: Any) -> None:
        self.journal.close()
        if changes:
            self.config = make_config(self.state, **changes)
        self.start(trusted=trusted)

    def pass_slots(self, slots: int = 1) -> None:
        self.clock.pass_s(slots * SLOT_S)

    def close(
        self, value: int | None = 500, *, online: bool = True, slot: int | None = None
    ) -> None:
        """Close the slot before the clock's (or `slot`)."""
        closed = self.device.slot - 1 if slot is None else slot
        values = (value,) * len(self.config.streams)
        self.device.close_slot(SlotValues(closed, values), online=online)

    def live(self, slots: int, *, online: bool = True, value: int = 500) -> None:
        """Let so many slots pass and close each."""
        for _ in range(slots):
            self.pass_slots()
            self.close(value, online=online)

    @property
    def made(self) -> list[tuple[int, int]]:
        """Every report on the disk, (slot, epoch), packed ones first."""
        packed = [decode(payload) for key in self.keys if (payload := self.payload(key))]
        return [(slot, frame.epoch) for frame in packed for slot in frame.slots] + [
            (report.slot, report.epoch) for report in self.journal.waiting()
        ]

    @property
    def keys(self) -> list[Key]:
        return self.journal.keys()

    def payload(self, key: Key) -> bytes | None:
        return self.device.core.journal.payload(key)

    def taken(self) -> list[Key]:
        """Take every batch that may be sent now."""
        return [first for first, _, _ in self.device.take_messages(0)]

    def send(self) -> list[Key]:
        """Send all that may go, and return it: the broker takes it."""
        sent = []
        while went := self.taken():
            for key in went:
                self.device.delivery.acknowledged(key, self.clock.monotonic())
            sent += went
        return sent

    def hear(self, highest: int, *gaps: tuple[int, int], live: bool = True) -> int:
        """Take an aggregator's receipt of the present series, and return how many it settled."""
        (account,) = self.status.streams
        heard = receipt(highest, *gaps, series=account.series)
        return self.device.accept_receipt(heard, is_live=live)

    @property
    def status(self) -> Status:
        return self.device.status("online")


def planned(state: Path, *, slots: int = 0, **changes: Any) -> Bench:
    """Return a device under a plan, so many slots later."""
    bench = Bench(state, **changes)
    assert bench.device.accept_plan("power", make_plan().to_json()) is None
    bench.pass_slots(slots)
    return bench


def receipt(highest: int, *gaps: tuple[int, int], series: int = 0, last: int = -1) -> Receipt:
    return Receipt((StreamReceipt(1, highest, gaps, series, last),), "0" * 16, T0, DEVICE)


def saved(bench: Bench, place: Path) -> Path:
    """Copy the stopped device's whole directory, lock and all."""
    bench.journal.close()
    copytree(bench.state.parent, place)
    bench.start()
    return place


def restored(bench: Bench, place: Path) -> None:
    bench.journal.close()
    rmtree(bench.state.parent)
    copytree(place, bench.state.parent)
    bench.start()
