"""Messages in, one transaction each flush, acknowledgements out: never the other way round."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import compress
from typing import TypeAlias
from uuid import UUID

from aggregator.archive.spool import Spool
from aggregator.config import AggregatorConfig
from aggregator.counting.curated import read_released, settle_released, wanted_released
from aggregator.counting.frames import FrameBatch
from aggregator.counting.period_sums import SumsArrival, read_sums, settle_sums, wanted_sums
from aggregator.counting.records import Again, Changes, Key, Known, ReleasedArrival
from aggregator.counting.refusals import Rules
from aggregator.counting.seen_batches import Outcome
from aggregator.counting.settle import NONE, settle, wanted
from aggregator.courier.courier import AnyLink
from aggregator.intake.last_times import OUTRUN, LastTimes
from aggregator.intake.quota import Quota
from aggregator.intake.receipt_schedule import Delays, ReceiptSchedule
from aggregator.intake.shed import Shed
from aggregator.store.contract import Store, new_flush
from aggregator.store.store_thread import StoreThread
from edge_ldp.device.errors import EdgeLdpError, WireError
from edge_ldp.device.sums_frame import MAGIC as SUMS
from edge_ldp.protocol.frames import split_frames
from edge_ldp.protocol.messages import Status, name_in_topic, parse_status, topic
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.mqtt import Message

MakeRules: TypeAlias = Callable[[], Rules]
Heed: TypeAlias = Callable[[str, bytes], None]
RulesFor: TypeAlias = Callable[[Store, FrameBatch, Rules], Rules]

MAX_STATUS_BYTES = 1 << 14
_KINDS = ("report", "stream", "status")  # what devices send
TOLD_AT = 10_000  # messages refused unread: their number is stored by then
HEAP_BYTES = 1 << 22  # more than any column of a usual flush


@dataclass(frozen=True, slots=True)
class Flush:
    """What one flush of messages holds; `broken`: messages by reason that are not ours."""

    frames: FrameBatch
    statuses: Mapping[str, Status]
    broken: Mapping[str, int]
    released: Sequence[ReleasedArrival] = ()
    sums: Sequence[SumsArrival] = ()

    @property
    def devices(self) -> frozenset[str]:
        """Everyone who is in it."""
        own = {one.device for one in self.released} | {one.device for one in self.sums}
        return frozenset(own | {*self.frames.names} | self.statuses.keys())


def read_messages(fleet: str, messages: Sequence[Message]) -> Flush:
    """Sort and decode messages; of several statuses of a device the last one stands.

    An empty message where something of ours goes tries the right to publish, or clears a status
    that the broker kept: it is none of what is counted.
    """
    reports: list[tuple[str, bytes]] = []
    released: list[ReleasedArrival] = []
    statuses: dict[str, Status] = {}
    broken: Counter[str] = Counter()
    for message in messages:
        try:
            kind, device = _sort(fleet, message.topic)
            if not device:
                broken["identity"] += 1
            elif not message.payload:
                continue
            elif kind == "report":
                reports.append((device, message.payload))
            elif kind == "stream":
                released.append(read_released(device, message.payload))
            else:
                statuses[device] = _read_status(message.payload)
        except WireError:
            broken["frame"] += 1
        except EdgeLdpError:
            broken["status"] += 1
    frames, sums = _read_reports(reports, broken)
    return Flush(frames, statuses, broken, released, sums)


def _read_reports(
    messages: Sequence[tuple[str, bytes]], broken: Counter[str]
) -> tuple[FrameBatch, list[SumsArrival]]:
    """Decode messages of reports: each as one frame, as nearly all are; what is none, in parts."""
    frames, whole = FrameBatch.read(messages)
    sums: list[SumsArrival] = []
    parts: list[tuple[str, bytes]] = []
    places: list[int] = []
    for at, (device, payload) in enumerate(messages):
        if whole[at]:
            continue
        try:
            found = split_frames(payload)
            reports = [(device, one) for one in found if not one.startswith(SUMS)]
            parts += reports
            places += [at] * len(reports)
            sums += [read_sums(device, one) for one in found if one.startswith(SUMS)]
        except WireError:
            broken["frame"] += 1
    if parts:
        more, are_whole = FrameBatch.read(parts)
        broken.update(["frame"] * are_whole.count(False))  # nothing, not 0, where all are whole
        came = [*compress(range(len(whole)), whole), *compress(places, are_whole)]
        frames = frames.merged(more, came)
    return frames, sums


def _sort(fleet: str, given: str) -> tuple[str, str]:
    """Return of what kind a topic is and whose, or empty strings where it is none of ours."""
    for kind in _KINDS:
        if device := name_in_topic(fleet, kind, given):
            return kind, device
    return "", ""


def topics(fleet: str, share: str | None = None) -> list[str]:
    """Return what the aggregator subscribes to, or what workers share among them.

    Statuses are not shared: two of one device would overtake each other (`status_topic`).
    """
    reports = [topic(fleet, kind, "+") for kind in ("report", "stream")]
    if share is None:
        return [*reports, status_topic(fleet)]
    return [f"$share/{share}/{one}" for one in reports]


def status_topic(fleet: str) -> str:
    """Return where devices say how they are: retained, so that it can be heard at any time."""
    return topic(fleet, "status", "+")


class Intake:
    """Takes in messages of one link after the other; `heed` hears what aggregators publish."""

    def __init__(  # noqa: PLR0913 (what it works with)
        self,
        config: AggregatorConfig,
        keeper: StoreThread,
        due: ReceiptSchedule,
        make_rules: MakeRules,
        *,
        last_times: LastTimes,
        spool: Spool | None = None,
        rules_for: RulesFor | None = None,
        heed: Heed | None = None,
    ) -> None:
        self._heed = heed
        self._others = tuple(topic(config.fleet, kind, "") for kind in ("plan", "presence"))
        self._last_times = last_times
        self._spool = spool
        self._fleet = config.fleet
        self._limit = config.intake.flush_messages
        self._window = max(self._limit, config.broker.window)
        self._wait_s = config.intake.flush_ms / 1000
        self._keeper = keeper
        self._due = due
        self._make_rules = make_rules
        self._rules_for = rules_for
        self._delays = Delays.of(
            config.intake.receipt_interval_s / config.clock.rate,
            shared=config.broker.share is not None,
        )
        self._quota = Quota(config.intake.quota_messages, config.intake.receipt_interval_s)
        self._shed = Shed(config.fleet)
        self._unread = 0  # and not yet told
        self._statuses = status_topic(config.fleet).removesuffix("+")

    async def run(self, link: AnyLink) -> None:
        """Take in messages until the link is lost (LinkLostError) or the store is unusable."""
        while True:
            messages, accepted = await self._gather(link)
            now = asyncio.get_running_loop().time()
            again = self._shed.take() if self._shed.due(now) else {}
            if again or any(
                one.payload and not one.topic.startswith(self._statuses) for one in accepted
            ):
                self._last_times.note("report")
            rules = self._make_rules()
            work = partial(
                commit,
                fleet=self._fleet,
                messages=accepted,
                rules=rules,
                name=new_flush(),  # one for all attempts
                spool=self._spool,
                unread=self._unread,
                rules_for=self._rules_for,
                again=again,
            )
            changes = await self._keeper.call(work)
            self._unread = 0
            self._last_times.note("commit")
            self._shed.told(again, changes)
            self._shed.learn(accepted, changes)
            self._charge(accepted, changes, rules.now_s)
            if any(reason == Outcome.OUTRUN for reason, _ in changes.refused):
                self._last_times.note(OUTRUN)
            for message in messages:
                link.ack(message)
            self._due.flushed(changes, asyncio.get_running_loop().time(), self._delays)

    async def _gather(self, link: AnyLink) -> tuple[list[Message], list[Message]]:
        """Return a flush, full or what came in the flush time, and what of it is settled.

        The time bound matters: a broker sends no more than its window before we acknowledge. What
        is refused unread, or came before, is acknowledged without a transaction, unless one is due
        anyway.
        """
        loop = asyncio.get_running_loop()
        taken: list[Message] = []
        accepted: list[Message] = []
        deadline, waits = self._shed.due_at, False
        while len(accepted) < self._limit and len(taken) < self._window:
            try:
                async with asyncio.timeout_at(deadline):
                    came = [await link.receive()]
            except TimeoutError:
                break
            came += link.receive_ready(self._limit - len(accepted) - 1)
            taken += came
            came = self._from_devices(came)
            within = self._within_quota(came)
            fresh, again = self._shed.parted(within, loop.time())
            accepted += fresh
            if again:
                self._quota.charge(_sent(again), self._make_rules().now_s)
            self._unread += len(came) - len(within)
            if accepted:
                if not waits:
                    deadline, waits = loop.time() + self._wait_s, True
                continue
            while taken:  # in order: nothing earlier waits for its acknowledgement
                link.ack(taken.pop(0))
            deadline = self._shed.due_at
            if self._unread >= TOLD_AT or self._shed.due(loop.time()):
                break
        return taken, accepted

    def _from_devices(self, messages: list[Message]) -> list[Message]:
        """Return the messages but for what aggregators publish, us or others; raises RivalError."""
        if self._heed is None:
            return messages
        for one in messages:
            if one.topic.startswith(self._others):
                self._heed(one.topic, one.payload)
        return [one for one in messages if not one.topic.startswith(self._others)]

    def _within_quota(self, messages: list[Message]) -> list[Message]:
        """Return the messages but for those of devices over their quota."""
        if not self._quota.refuses_any:
            return messages
        over = self._quota.over(self._make_rules().now_s)
        return [one for one in messages if _sender(one) not in over]

    def _charge(self, messages: Sequence[Message], changes: Changes, now_s: float) -> None:
        """Charge devices for what brought nothing new: nothing, where everything counted.

        Of a message of several batches each is charged.
        """
        new = changes.counted.frames.devices
        new += [one.device for one in changes.released] + [one.device for one in changes.summed]
        if changes.refused or len(new) < len(messages):
            self._quota.charge(_sent(messages) - Counter(new), now_s)


def commit(  # noqa: PLR0913 (what one flush is made of)
    store: Store,
    *,
    fleet: str,
    messages: Sequence[Message],
    rules: Rules,
    name: UUID | None = None,
    spool: Spool | None = None,
    unread: int = 0,
    rules_for: RulesFor | None = None,
    again: Mapping[Key, Again] = NONE,
) -> Changes:
    """Settle one flush durably and return what it changed; acknowledging may follow.

    `name`: the same at every repetition of a flush. With a spool, what is counted is durable there
    before the store commits it. `unread`: messages over a quota, which are only counted.
    `rules_for` returns what these frames are judged by in place of `rules`. `again`: what was
    settled before and came again, undecoded.
    """
    _keep_heap()
    name = name or new_flush()
    if spool is not None:
        spool.resolve(store.committed)
    flush = read_messages(fleet, messages)
    if rules_for is not None:
        rules = rules_for(store, flush.frames, rules)
    broken = {**flush.broken, "rate": unread} if unread else flush.broken
    own = wanted_released(flush.released) | wanted_sums(flush.sums)
    keys = wanted(flush.frames, flush.statuses) | own | again.keys()

    def decide(known: Known) -> Changes:
        changes = settle(flush.frames, flush.statuses, broken, known, rules, again)
        changes = settle_sums(flush.sums, known, rules, changes)
        changes = settle_released(flush.released, flush.statuses, known, rules, changes)
        if spool is not None:
            spool.put(changes.counted, name.bytes, changes.summed)
        return changes

    devices = flush.devices | {device for device, _ in again}
    committed = store.update(keys, devices, int(rules.now_s), decide, name)
    if spool is not None:
        spool.confirm()
    return committed


@cache
def _keep_heap() -> None:
    """Let memory that a flush frees be the next one's, once: to get it anew took a tenth of it.

    The C library gives back what is free above twice the largest block that was ever freed.
    """
    bytearray(HEAP_BYTES)


def _sent(messages: Iterable[Message]) -> Counter[str]:
    """Return how many batches each device sent."""
    sent = Counter[str]()
    for message in messages:
        sent[_sender(message)] += _batches(message.payload)
    return sent


def _sender(message: Message) -> str:
    return message.topic.rsplit("/", 1)[-1]  # or whatever the end of a foreign topic is


def _batches(payload: bytes) -> int:
    """Return how many batches there are in a message; one for a message that is something else."""
    try:
        return len(split_frames(payload))
    except WireError:
        return 1


def _read_status(payload: bytes) -> Status:
    if len(payload) > MAX_STATUS_BYTES:
        raise MessageError("size", "status", f"at most {MAX_STATUS_BYTES} bytes")
    return parse_status(payload)
