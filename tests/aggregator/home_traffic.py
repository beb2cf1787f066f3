"""Frames of a few homes as flushes: late, twice and out of order, and the same always."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import uuid4

import numpy as np

from aggregator.counting.records import Changes, Record
from aggregator.counting.refusals import Codes, Rules, StreamRules
from aggregator.counting.tally import Tally, merge
from aggregator.intake.intake import commit
from aggregator.replay.comparison import tally_of_rows
from aggregator.store.contract import Reader, Store
from edge_ldp.device.frame import encode
from edge_ldp.protocol.messages import topic
from edge_ldp.service.mqtt import Message

SLOT_S, CODES, REPORTS = 900, 40, 12
FIRST_SLOT = 1_700_000_000 // SLOT_S
NOW_S = float((FIRST_SLOT + 2000) * SLOT_S)
RULES = Rules(
    streams={1: StreamRules(SLOT_S, 4, {1: Codes(np.ones(CODES, dtype=bool), 0)})},
    devices=None,
    max_devices=100,
    window_s=365 * 86_400,
    tolerance_s=300,
    now_s=NOW_S,
)
CLOSED = replace(RULES, is_open=False)


def report(device: str, batch: int) -> Message:
    """Return a device's frame; each batch follows the one before, with a day off now and then."""
    first = FIRST_SLOT + batch * REPORTS + batch // 5 * 200
    codes = [(len(device) + batch * slot) % CODES for slot in range(REPORTS)]
    slots = range(first, first + REPORTS)
    return Message(topic("demo", "report", device), encode(1, batch, 1, slots, codes))


def take(store: Store, *messages: Message, rules: Rules = RULES) -> Changes:
    return commit(store, fleet="demo", messages=messages, rules=rules, name=uuid4())


def flushes(devices: Iterable[str], batches: int) -> list[list[Message]]:
    """Return flushes of all frames: every third twice, of three batches the first one last."""
    moved = [at + (1, 1, -2)[at % 3] for at in range(batches)]
    frames = [report(device, at + 1) for at in moved for device in devices]
    twice = [one for at, frame in enumerate(frames) for one in [frame] * (1 + (at % 3 == 0))]
    return [twice[at : at + 5] for at in range(0, len(twice), 5)]


@dataclass(frozen=True)
class Seen:
    """What a store shows of stream 1, by group."""

    tally: Tally
    presence: dict[str, list[tuple[int, int]]]
    records: list[tuple[tuple[str, int], Record]]
    apart: int


def seen(reader: Reader) -> Seen:
    """Return everything that must not depend on what was held in between."""
    groups = reader.groups()
    parts = [tally_of_rows({1: reader.counts(1, 0, 1 << 32, of)}, of) for of in groups.values()]
    return Seen(
        tally=merge(parts),
        presence={name: reader.presence(1, of) for name, of in groups.items()},
        records=list(reader.records()),
        apart=sum(int(row.counts.sum()) for row in reader.held_counts()),
    )
