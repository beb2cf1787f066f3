"""This device's state, as feed and link see it: slots and plans in, batches and status out.

What both modes share is the core's; what a closed slot gives, and whether plans are taken, is the
mode's: codes for a crowd (`agent.state.local_mode`) or released values (`agent.curator.mode`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from agent.claims.batches import Key
from agent.claims.delivery import Delivery
from agent.claims.rollback import is_rolled_back, made_more, numbers_after, told_by
from agent.claims.slots import SlotValues
from agent.config import AgentConfig
from agent.state.core import DeviceCore
from agent.state.manifest import manifest
from edge_ldp.protocol.frames import MAX_FRAMES
from edge_ldp.protocol.messages import Receipt, Status, StreamStatus
from edge_ldp.protocol.plan import Refusal
from edge_ldp.protocol.signing import Keyring
from edge_ldp.version import __version__


class Mode(Protocol):
    """What a device does with its slots. `is_open`: its account is, so slots are counted."""

    @property
    def is_open(self) -> bool:
        """Whether slots are counted from a sane clock on."""

    @property
    def health(self) -> str:
        """Return "ok", or "degraded: " and why the mode is silent."""

    @property
    def refusals(self) -> Iterable[Refusal]:
        """The last reasons for which plans were refused, and their numbers."""

    def open(self) -> None:
        """Open the account, or do nothing if it is: the clock is sane."""

    def take(self, closed: SlotValues, *, online: bool) -> None:
        """Make what a closed slot gives."""

    def flush(self, *, online: bool) -> None:
        """Make durable what closed slots gave."""

    def pack_waiting(self) -> None:
        """Pack what waits beside the core's reports."""

    def keep(self) -> None:
        """Store what is to survive a restart without a slot, and give up what is too old."""

    def accept_plan(self, name: str, payload: bytes) -> str | None:
        """Put a plan in force, or return why not."""

    def reconfigure(self, old: AgentConfig, keyring: Keyring | None) -> None:
        """Go by the core's configuration, which only tightens the `old` one."""

    @property
    def begun_slot(self) -> int:
        """The first slot that this state may have reported."""

    def roll_back(self, following: Mapping[int, int]) -> None:
        """Give up all that waits and begin anew, with these batch numbers."""

    def described(self, account: StreamStatus) -> StreamStatus:
        """Return a stream's account with what the mode knows of it."""

    def spent(self) -> dict[str, int]:
        """Return what was spent, for the status."""


class Device:
    """While nothing can be stored, slots are given up and it waits.

    Raises StorageError when a commit fails for a reason that does not pass, and StuckEntropyError
    when the source of randomness repeats itself: both are for the process to end with.
    """

    def __init__(self, core: DeviceCore, mode: Mode) -> None:
        self.core = core
        self._mode = mode
        self._is_clock_sane = False

    @property
    def slot(self) -> int:
        """The slot that the clock is in."""
        return self.core.slot

    @property
    def delivery(self) -> Delivery:
        """Which batches to send now."""
        return self.core.delivery

    @property
    def health(self) -> str:
        """Return "ok", or why nothing is claimed: no storage, or a silence after a fault."""
        storage = self.core.storage
        return storage.health if storage.is_held else self._mode.health

    def trust_clock(self) -> None:
        """Open the mode's account, once the clock is sane: a new one's window is spent from now on.

        Without randomness it stays closed, and is tried again with every slot.
        """
        self._is_clock_sane = True
        self._mode.open()

    def close_slot(self, closed: SlotValues, *, online: bool) -> None:
        """Hand a closed slot to the mode.

        A slot that the clock has not finished, or beyond one per slot length of monotonic time, or
        closed before the clock was sane, or for which there is no randomness or no room to store,
        is given up.
        """
        if self._is_clock_sane:
            self._mode.open()
        core = self.core
        if (
            self._mode.is_open
            and closed.slot < self.slot
            and core.count.take(core.clock.monotonic())
            and core.can_store()
        ):
            self._mode.take(closed, online=online)

    def flush(self, *, online: bool) -> None:
        """Make durable what closed slots gave."""
        self._mode.flush(online=online)

    def pack_waiting(self, *, at_once: bool = False) -> None:
        """Pack what waits, if it is time for a batch (or `at_once`)."""
        self._mode.flush(online=True)
        if at_once or self.core.may_pack(online=True):
            self.core.pack_waiting()
            self._mode.pack_waiting()

    def reconfigure(self, config: AgentConfig, keyring: Keyring | None) -> None:
        """Go by a configuration that only tightens this one (agent.config.changes).

        Plans in force that it no longer allows, or that no key of the ring signed, are dropped. A
        smaller window is a new one: it begins after the silence that every new window has.
        """
        old = self.core.config
        self.core.reconfigure(config)
        self._mode.reconfigure(old, keyring)

    def limit_frames(self, room_bytes: int) -> None:
        """Pack no larger frames from now on: the broker takes none. Packed ones stay."""
        self.core.limit_frames(room_bytes)

    def accept_plan(self, name: str, payload: bytes) -> str | None:
        """Put a plan in force, or return why not (`AcceptedPlans.accept`)."""
        return self._mode.accept_plan(name, payload)

    def accept_receipt(self, receipt: Receipt, *, is_live: bool = True) -> int:
        """Delete the batches that a receipt covers and return how many; `is_live`: not retained.

        A receipt for batches that this state never made shows that it is an older copy: all that
        waits is given up, counted, and the mode begins anew.
        """
        core = self.core
        following = core.journal.numbers()
        if not is_rolled_back(receipt, following, self._mode.begun_slot):
            return core.settle(receipt, is_live=is_live)
        self._mode.roll_back(numbers_after(receipt, following, self.slot, following))
        return 0

    def accept_own_status(self, status: Status) -> None:
        """Begin anew when what this device said last shows that it is an older copy since."""
        core = self.core
        following = core.journal.numbers()
        receipt = told_by(status.streams)
        ours = core.journal.status()
        if made_more(status.streams, ours) or is_rolled_back(
            receipt, following, self._mode.begun_slot
        ):
            self._mode.roll_back(numbers_after(receipt, following, self.slot, following))

    def payload(self, key: Key) -> bytes | None:
        """Return the bytes of a batch, or None when it was settled meanwhile."""
        return self.core.journal.payload(key)

    def take_messages(self, room_bytes: int) -> Iterator[tuple[list[Key], bytes]]:
        """Take what is to be sent now: the batches of each message, and their bytes in a row.

        A message of several batches is of at most `room_bytes`.
        """
        delivery = self.core.delivery
        while (first := delivery.take()) is not None:
            keys, payload = [first], self.payload(first)
            if payload is None:  # settled meanwhile
                delivery.failed(first)
                delivery.forget(keys)
                continue
            while len(keys) < MAX_FRAMES and (key := delivery.following(first)) is not None:
                more = self.payload(key)
                if len(payload) + len(more or b"") > room_bytes:
                    break
                delivery.join(first, key)
                if more is None:
                    delivery.forget([key])
                    continue
                keys.append(key)
                payload += more
            yield keys, payload

    def housekeeping(self) -> None:
        """Give a turn that is due, and give up reports beyond the age limit.

        Age follows monotonic time: a clock that jumps ahead, or is not sane, expires nothing.
        """
        core = self.core
        core.delivery.overdue(core.clock.monotonic())
        if self._mode.is_open and not core.storage.is_held:
            core.storage.done(core.give_up_old)
            core.storage.done(self._mode.keep)

    def status(self, state: str) -> Status:
        """Return what may be said of this device: counts, plans, ledger; nothing about values."""
        return Status(
            state=state,
            software=__version__,
            streams=tuple(map(self._mode.described, self.core.journal.status())),
            ledger=self._mode.spent(),
            refusals=tuple(one.code for one in self._mode.refusals),
            refused=tuple(f"{one.code}: {one.words}" for one in self._mode.refusals),
            manifest=manifest(self.core.config),
        )
