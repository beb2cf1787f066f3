"""What was settled lately, so that the same again costs no decoding: hashes, in bounded memory.

A hash alone settles nothing: what came again is counted as a duplicate once the store's own record
says that its batch was settled, a second later and once for each device. Where it was not (a store
that lost commits), nothing is counted, no receipt covers it, and its device sends it again.
"""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aggregator.counting.records import Again, Changes, Key
from aggregator.counting.seen_batches import is_settled
from edge_ldp.device.errors import WireError
from edge_ldp.device.frame import Header, decode_header
from edge_ldp.protocol.frames import split_frames
from edge_ldp.protocol.messages import name_in_topic
from edge_ldp.service.mqtt import Message

PLACES = 1 << 19  # 4 MiB: the last half million messages, but for those that met on a place
TOLD_AFTER_S = 1.0
MOST = 10_000  # frames that wait to be told
CONFLICT = "conflict"


@dataclass(slots=True)
class Shed:
    """Messages that were settled, and those that came again and are not told yet."""

    fleet: str
    _seen: "array[int]" = field(default_factory=lambda: array("q", [0]) * PLACES, init=False)
    _again: dict[Key, Again] = field(default_factory=dict, init=False)
    _frames: int = field(default=0, init=False)
    _since: float = field(default=0.0, init=False)

    def parted(
        self, messages: Iterable[Message], now: float
    ) -> tuple[list[Message], list[Message]]:
        """Return the messages that are new, and those that came before, which wait to be told."""
        seen = self._seen
        fresh: list[Message] = []
        again: list[Message] = []
        for one in messages:
            mark = hash((one.topic, one.payload))
            came = seen[mark % PLACES] == mark and self._note(one, now)
            (again if came else fresh).append(one)
        return fresh, again

    def due(self, now: float) -> bool:
        """Say whether what came again is to be told."""
        return bool(self._again) and (self._frames >= MOST or now >= self._since + TOLD_AFTER_S)

    @property
    def due_at(self) -> float | None:
        """When what came again is to be told, None: nothing did."""
        return self._since + TOLD_AFTER_S if self._again else None

    def take(self) -> dict[Key, Again]:
        """Return, once, what came again."""
        found, self._again, self._frames = self._again, {}, 0
        return found

    def learn(self, messages: Iterable[Message], changes: Changes) -> None:
        """Remember which of a flush's messages were settled by it."""
        if any(reason == CONFLICT for reason, _ in changes.refused):
            return
        for one in messages:
            device = name_in_topic(self.fleet, "report", one.topic)
            if device and (not changes.refused or _covers(changes, device, one.payload)):
                mark = hash((one.topic, one.payload))
                self._seen[mark % PLACES] = mark

    def told(self, again: Mapping[Key, Again], changes: Changes) -> None:
        """Forget all, where the store does not know what it is said to have settled."""
        if not again.keys() <= changes.records.keys():
            self._seen = array("q", [0]) * PLACES

    def _note(self, message: Message, now: float) -> bool:
        device, heads = message.topic.rpartition("/")[2], _heads(message.payload)
        if not self._again:
            self._since = now
        for head in heads:
            key = (device, head.stream)
            found = self._again.setdefault(key, Again())
            found.messages += 1
            found.reports += head.count
            found.batches.add((head.batch, head.series))
        self._frames += len(heads)
        return bool(heads)


def _covers(changes: Changes, device: str, payload: bytes) -> bool:
    """Say whether a flush's records cover all batches of a message."""
    heads = _heads(payload)
    records = [changes.records.get((device, head.stream)) for head in heads]
    return bool(heads) and all(
        record is not None and is_settled(record.state, head.batch, head.series)
        for record, head in zip(records, heads, strict=True)
    )


def _heads(payload: bytes) -> list[Header]:
    try:
        return [decode_header(one) for one in split_frames(payload)]
    except WireError:
        return []
