"""Frames, good and hostile, into both stores, and the account that must come out in the end."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import numpy as np

from aggregator.counting.records import Changes, Key, Record
from aggregator.counting.refusals import Codes, Rules, StreamRules
from aggregator.intake.intake import commit
from aggregator.store.contract import LAST_BUCKET, Reader, Store
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import Status, StreamStatus, topic
from edge_ldp.service.broker import Message

FLEET, STREAM, SLOT_S, BUCKET, CODES = "demo", 1, 900, 4, 8
NOW = 2_000_000  # the slot that has just begun
WINDOW_S = 35 * 86_400


def rules(*, now: int = NOW, slot_s: int = SLOT_S, **changed: Any) -> Rules:
    """Return what goes: one stream, one plan that is older than everything, anyone enrols."""
    stream = StreamRules(slot_s, BUCKET, {1: Codes(np.ones(CODES, np.bool_), 0)})
    made = Rules({STREAM: stream}, None, 1000, WINDOW_S, 300, float(now * slot_s))
    return replace(made, **changed)


def report(
    batch: int, slots: Sequence[int], codes: Sequence[int] | None = None, **head: Any
) -> Message:
    made = encode(
        head.get("stream", STREAM), batch, head.get("epoch", 1), slots, codes or [1] * len(slots)
    )
    return raw(made, head.get("device", "home"))


def raw(payload: bytes, device: str = "home", kind: str = "report") -> Message:
    return Message(topic(FLEET, kind, device), payload)


def status(
    device: str, created: int, *, following: int, oldest: int | None = None, **told: Any
) -> Message:
    first = told.get("first", 1)
    kept = following if oldest is None else oldest
    one = StreamStatus(STREAM, first, following, kept, created, told.get("expired", 0))
    return raw(Status("online", told.get("software", "1"), (one,)).to_json(), device, "status")


class House:
    """A store, and what it says of itself."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def take(self, *messages: Message, by: Rules | None = None) -> Changes:
        return commit(self.store, fleet=FLEET, messages=messages, rules=by or rules(), name=uuid4())

    def counts(self) -> Counter[tuple[int, int]]:
        found = self.store.counts(STREAM, 0, LAST_BUCKET)
        pairs = zip(found.bucket.tolist(), found.code.tolist(), strict=True)
        return Counter(dict(zip(pairs, found.count.tolist(), strict=True)))

    def records(self) -> dict[Key, Record]:
        return dict(self.store.records())

    def refused(self) -> dict[str, int]:
        found = Counter[str]()
        for row in self.store.refused():
            found[row.reason] += row.messages
        return dict(found)

    def kept(self) -> tuple[Any, ...]:
        """Return everything but the numbers of refusals."""
        presence = self.store.presence(STREAM)
        return self.counts(), self.records(), presence, self.store.devices(), self.store.marks()


def assert_accounted(
    reader: Reader,
    created: Mapping[str, int],
    *,
    pending: int = 0,
    expired: int = 0,
    rejected: int | None = None,
) -> None:
    """Assert created = counted + rejected + expired + pending for every device, exactly.

    `created`: reports that each device made, by the truth of the test; `pending`, `expired` and,
    where it is given, `rejected`: of all together. The counts must hold what records say.
    """
    found = {device: one for (device, stream), one in reader.records() if stream == STREAM}
    assert {device: one.created for device, one in found.items()} == dict(created)
    for device, one in found.items():
        settled = one.counted + one.rejected + one.given_up
        assert settled + one.pending == created[device], (device, one)
    assert sum(one.pending for one in found.values()) == pending
    if rejected is not None:
        assert sum(one.rejected for one in found.values()) == rejected
    assert sum(one.given_up for one in found.values()) == expired
    assert sum(one.counted for one in found.values()) == int(reader.totals(STREAM).count.sum())
