"""This device's state, as feed and link see it: slots and plans in, batches and status out.

What both modes share is the core's; what a closed slot gives, and whether plans are taken, is the
mode's: codes for a crowd (`agent.state.local_mode`) or released values (`agent.curator.mode`).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from agent.claims import rollback
from agent.claims.batches import Key, Named
from agent.claims.delivery import Delivery
from agent.claims.slots import SlotValues
from agent.config import AgentConfig
from agent.state.core import DeviceCore
from agent.state.manifest import manifest
from edge_ldp.protocol.frames import MAX_FRAMES
from edge_ldp.protocol.messages import MAX_STREAMS, Receipt, Status, StreamStatus, parse_receipt
from edge_ldp.protocol.plan_bounds import Refusal
from edge_ldp.protocol.released import FIRST_KEY
from edge_ldp.protocol.signing import RECEIPT_CONTEXT, Keyring, plan_bytes
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.version import __version__

_OF_NOTHING = Receipt(()).to_json()


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
    def life(self) -> rollback.ReportingLife:
        """When this state reported."""

    @property
    def is_silent(self) -> bool:
        """Whether the silence after a word of copies still lasts."""

    def suspect(self, told: Sequence[rollback.Told]) -> None:
        """Begin anew, as a state that may be a copy, and give up nothing that was sent."""

    def roll_back(self, told: Sequence[rollback.Told], *, is_proof: bool) -> None:
        """Give up all that waits, as a copy. Proven: begin anew, and count what the other spent."""

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
        is_over = closed.at is not None or (  # a stream's own slots its sums count by themselves
            closed.slot < self.slot and core.count.take(core.clock.monotonic())
        )
        if self._mode.is_open and is_over and core.can_store():
            self._mode.take(closed, online=online)

    def flush(self, *, online: bool) -> None:
        """Make durable what closed slots gave."""
        self._mode.flush(online=online)

    def pack_waiting(self, *, at_once: bool = False) -> None:
        """Pack what waits, if it is time for a batch (or `at_once`)."""
        self._mode.flush(online=True)
        if self.core.is_doubted:
            return
        if at_once or self.core.may_pack(online=True):
            self.core.pack_waiting()
            self._mode.pack_waiting()

    def reconfigure(self, config: AgentConfig, keyring: Keyring | None) -> None:
        """Go by a configuration that only tightens this one (agent.config.changes).

        Plans in force that it no longer allows, or that no key of the ring signed, are dropped. A
        smaller window is a new one: it begins after the silence that every new window has.
        """
        old = self.core.config
        self.core.keyring = keyring
        self.core.reconfigure(config)
        self._mode.reconfigure(old, keyring)

    def accept_plan(self, name: str, payload: bytes) -> str | None:
        """Put a plan in force, or return why not (`AcceptedPlans.accept`)."""
        return self._mode.accept_plan(name, payload)

    def read_receipt(self, payload: bytes) -> Receipt | None:
        """Return the receipt in a payload, which a key signed where there are keys.

        None where it need not be: an aggregator that knows no batch of this device cannot know
        whether it takes signed ones, and says unsigned that it has nothing. Raises MessageError,
        also for another device's.
        """
        keyring, device = self.core.keyring, self.core.config.device.id
        if keyring is not None and payload == _OF_NOTHING:
            return None
        found = plan_bytes(payload) if keyring is None else keyring.open(payload, RECEIPT_CONTEXT)
        receipt = parse_receipt(found)
        if receipt.device not in ("", device):
            raise MessageError("value", "device", "this device's name")
        return receipt

    def accept_receipt(self, receipt: Receipt, *, is_live: bool = True) -> int:
        """Delete the batches that a receipt covers and return how many; `is_live`: not retained.

        One of batches that this state never made tells that it is an older copy. Signed, that is
        proof: all that waits is given up and counted, and the mode begins anew. Else it may be a
        lie: the mode begins anew, at most once in a silence, nothing is given up before its end,
        and a receipt that says otherwise ends the doubt.
        """
        core = self.core
        own, told = core.journal.series(), core.journal.told()
        news = rollback.news_of_copies(receipt, own, told, self._mode.life)
        if news:
            self._hear(news, is_proof=core.keyring is not None)
            return 0
        if core.is_doubted and is_live and (untrue := rollback.denied(receipt, told, own)):
            core.believe_again(untrue)
        return core.settle(receipt, is_live=is_live)

    def accept_own_status(self, status: Status) -> None:
        """Begin anew when what this device said last shows that it may be an older copy since.

        Anybody who holds the broker may have written it, so it is no proof.
        """
        journal = self.core.journal
        told, life = journal.told(), self._mode.life
        news = rollback.news_of_copies(
            rollback.told_by(status.streams), journal.series(), told, life
        )
        news += rollback.made_more(status.streams, journal.status())
        if news:
            self._hear(news, is_proof=False)

    def _hear(self, news: list[rollback.Told], *, is_proof: bool) -> None:
        """Act on what tells of a copy; a word that is no proof begins one silence at a time."""
        if is_proof:
            self._mode.roll_back(news, is_proof=True)
        elif not (self.core.is_doubted or self._mode.is_silent):
            self._mode.suspect(news)

    def _on_wire(self, keys: Iterable[Key]) -> list[Named]:
        """Return what batches that are kept are called in their frames."""
        series = self.core.journal.series()
        found = []
        for stream, number in keys:
            of = next(o for o in reversed(series) if o.stream == stream and o.base < number)
            found.append(Named(stream, of.series, number - of.base))
        return found

    def take_messages(self, room_bytes: int) -> Iterator[tuple[Key, list[Named], bytes]]:
        """Take what is to be sent now: each message's first batch, all its batches, their bytes.

        A message of several batches is of at most `room_bytes`. While it is in doubt whether this
        state is a copy nothing goes: another code of its slots may be known.
        """
        delivery, payload_of = self.core.delivery, self.core.journal.payload
        while not self.core.is_doubted and (first := delivery.take()) is not None:
            keys, payload = [first], payload_of(first)
            if payload is None:  # settled meanwhile
                delivery.failed(first)
                delivery.forget(keys)
                continue
            while len(keys) < MAX_FRAMES and (key := delivery.following(first)) is not None:
                more = payload_of(key)
                if len(payload) + len(more or b"") > room_bytes:
                    break
                delivery.join(first, key)
                if more is None:
                    delivery.forget([key])
                    continue
                keys.append(key)
                payload += more
            yield first, self._on_wire(keys), payload

    def housekeeping(self) -> None:
        """Give a turn that is due, and give up reports beyond the age limit.

        Age follows monotonic time: a clock that jumps ahead, or is not sane, expires nothing.
        """
        core = self.core
        core.delivery.overdue(core.clock.monotonic())
        if core.is_doubted and self._mode.is_open and not self._mode.is_silent:
            told = [one for one in core.journal.told() if not one.is_settled]
            self._mode.roll_back(told, is_proof=False)  # in a whole silence nobody denied it
        if self._mode.is_open and not core.storage.is_held:
            core.storage.done(core.give_up_old)
            core.storage.done(self._mode.keep)

    def status(self, state: str) -> Status:
        """Return what may be said of this device: counts, plans, ledger; nothing about values."""
        return Status(
            state=state,
            software=__version__,
            streams=_told_of(map(self._mode.described, self.core.journal.status())),
            ledger=self._mode.spent(),
            refusals=tuple(one.code for one in self._mode.refusals),
            refused=tuple(f"{one.code}: {one.words}" for one in self._mode.refusals),
            manifest=manifest(self.core.config),
        )


def _told_of(accounts: Iterable[StreamStatus]) -> tuple[StreamStatus, ...]:
    """Return as many accounts as a status holds: those in use first."""
    every = sorted(accounts, key=lambda one: (not one.epoch, one.oldest == one.next))
    reports = [one for one in every if one.stream < FIRST_KEY][:MAX_STREAMS]
    released = [one for one in every if one.stream >= FIRST_KEY]
    return tuple(sorted([*reports, *released], key=lambda one: one.stream))
