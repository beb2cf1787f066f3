"""Messages in, one transaction each flush, acknowledgements out: never the other way round."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

from aggregator.released import read_released, settle_released, wanted_released
from aggregator.settle import read_frame, settle, wanted
from aggregator.shell.archive import settled_in
from edge_ldp.device.errors import EdgeLdpError, WireError
from edge_ldp.messages import name_in_topic, parse_status, topic
from edge_ldp.strict_json import MessageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from uuid import UUID

    from aggregator.config import AggregatorConfig
    from aggregator.due import Due
    from aggregator.guard import Rules
    from aggregator.records import Arrival, Changes, Known
    from aggregator.released import ReleasedArrival
    from aggregator.shell.archive_spool import Spool
    from aggregator.shell.keeper import Keeper
    from aggregator.shell.store import Store
    from edge_ldp.messages import Status
    from edge_ldp.shell.mqtt import Link, Message

    MakeRules: TypeAlias = Callable[[], Rules]

MAX_STATUS_BYTES = 1 << 14
GAP_DELAY_S = 1.0  # real: what was only reordered has arrived by then


@dataclass(frozen=True, slots=True)
class Flush:
    """What one flush of messages holds; `broken`: messages by reason that are not ours."""

    arrivals: Sequence[Arrival]
    statuses: Mapping[str, Status]
    broken: Mapping[str, int]
    released: Sequence[ReleasedArrival] = ()

    @property
    def devices(self) -> frozenset[str]:
        """Everyone who is in it."""
        reporters = {one.device for one in self.arrivals} | {one.device for one in self.released}
        return frozenset(reporters | self.statuses.keys())


def read_messages(fleet: str, messages: Sequence[Message]) -> Flush:
    """Sort and decode messages; of several statuses of a device the last one stands."""
    arrivals: list[Arrival] = []
    released: list[ReleasedArrival] = []
    statuses: dict[str, Status] = {}
    broken: Counter[str] = Counter()
    for message in messages:
        try:
            if device := name_in_topic(fleet, "report", message.topic):
                arrivals.append(read_frame(device, message.payload))
            elif device := name_in_topic(fleet, "stream", message.topic):
                released.append(read_released(device, message.payload))
            elif device := name_in_topic(fleet, "status", message.topic):
                if message.payload:  # an empty one only clears a retained status
                    statuses[device] = _read_status(message.payload)
            else:
                broken["identity"] += 1
        except WireError:
            broken["frame"] += 1
        except EdgeLdpError:
            broken["status"] += 1
    return Flush(arrivals, statuses, broken, released)


def topics(fleet: str) -> list[str]:
    """Return what the aggregator subscribes to."""
    return [topic(fleet, kind, "+") for kind in ("report", "stream", "status")]


class Intake:
    """Takes in messages of one link after the other."""

    def __init__(
        self,
        config: AggregatorConfig,
        keeper: Keeper,
        due: Due,
        make_rules: MakeRules,
        spool: Spool | None = None,
    ) -> None:
        self._spool = spool
        self._fleet = config.fleet
        self._limit = config.intake.flush_messages
        self._wait_s = config.intake.flush_ms / 1000
        self._interval_s = config.intake.receipt_interval_s / config.clock.rate  # real seconds
        self._keeper = keeper
        self._due = due
        self._make_rules = make_rules

    async def run(self, link: Link) -> None:
        """Take in messages until the link is lost (LinkLostError) or the store is unusable."""
        while True:
            messages = await self._gather(link)
            work = partial(
                commit,
                fleet=self._fleet,
                messages=messages,
                rules=self._make_rules(),
                name=uuid4(),  # one for all attempts
                spool=self._spool,
            )
            changes = await self._keeper.call(work)
            for message in messages:
                link.ack(message)
            self._note(changes)

    async def _gather(self, link: Link) -> list[Message]:
        """Return a flush: full, or as far as it came within the flush time of its first message.

        The time bound matters: a broker sends no more than its window before we acknowledge.
        """
        messages = [await link.receive(), *link.receive_ready(self._limit - 1)]
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._wait_s
        while len(messages) < self._limit:
            try:
                async with asyncio.timeout_at(deadline):
                    messages.append(await link.receive())
            except TimeoutError:
                break
            messages += link.receive_ready(self._limit - len(messages))
        return messages

    def _note(self, changes: Changes) -> None:
        now = asyncio.get_running_loop().time()
        for device in changes.statuses:
            self._due.note(device, now)
        for device in changes.gapped:
            self._due.note(device, now + GAP_DELAY_S)
        for device in changes.news:
            self._due.note(device, now + self._interval_s)


def commit(  # noqa: PLR0913 (what one flush is made of)
    store: Store,
    *,
    fleet: str,
    messages: Sequence[Message],
    rules: Rules,
    name: UUID | None = None,
    spool: Spool | None = None,
) -> Changes:
    """Settle one flush durably and return what it changed; acknowledging may follow.

    `name`: the same at every repetition of a flush. With a spool, what is counted is durable there
    before the store commits it.
    """
    if spool is not None:
        spool.resolve(settled_in(store))
    flush = read_messages(fleet, messages)
    keys = wanted(flush.arrivals, flush.statuses) | wanted_released(flush.released)

    def decide(known: Known) -> Changes:
        changes = settle(flush.arrivals, flush.statuses, flush.broken, known, rules)
        changes = settle_released(flush.released, flush.statuses, known, rules, changes)
        if spool is not None:
            spool.put(changes.counted)
        return changes

    committed = store.update(keys, flush.devices, int(rules.now_s), decide, name)
    if spool is not None:
        spool.confirm()
    return committed


def _read_status(payload: bytes) -> Status:
    if len(payload) > MAX_STATUS_BYTES:
        raise MessageError("size", "status", f"at most {MAX_STATUS_BYTES} bytes")
    return parse_status(payload)
