"""The vectorised settling does what the plain model does, to the bit, whatever comes."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.counting.code_sets import watch_mechanism
from aggregator.counting.frames import FrameBatch
from aggregator.counting.record_rows import RecordRows, record_row
from aggregator.counting.records import Changes, Key, Known, Member, Record, WatchKey
from aggregator.counting.refusals import Codes, Rules, StreamRules
from aggregator.counting.seen_batches import OPEN_GAPS, DeviceState, Gap
from aggregator.counting.settle import settle
from edge_ldp.device import frame
from edge_ldp.mechanisms import Hybrid
from edge_ldp.protocol.messages import Status, StreamStatus
from tests.aggregator.arrivals import read_frame
from tests.aggregator.counting import reference_settle

SLOT_S = 900
NOW = 20_000
MECHANISM = Hybrid(epsilon=1, low=0, high=100, size=32)
CODES = MECHANISM.code_count
WATCHED = Codes(np.arange(CODES) != 3, 0, watch_mechanism(MECHANISM))
LATER = Codes(np.ones(5, bool), (NOW - 30) * SLOT_S)
RULES = Rules(
    streams={
        1: StreamRules(SLOT_S, 4, {1: WATCHED, 2: LATER}),
        2: StreamRules(2 * SLOT_S, 1, {1: replace(WATCHED, watch=None), 2: WATCHED}),
    },
    devices=None,
    max_devices=4,
    window_s=35 * 86_400,
    tolerance_s=SLOT_S,
    now_s=float(NOW * SLOT_S),
)
CHANCES = (None, Fraction(8, 97), Fraction(8, 2 * 97))
DEVICES = [f"home{at}" for at in range(6)]
FAR = (2, 95, 96, 97, 98, 99, 200)  # a device that is silent for 97 slots of 900 s is away
Flush = tuple[FrameBatch, dict[str, Status], dict[str, int]]


class Fleet:
    """Devices that send good frames mostly, and now and then anything else; made by a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.batch = Counter[tuple[str, int]]()
        self.slot = {(name, stream): NOW // stream - 700 for name in DEVICES for stream in (1, 2)}
        self.sent: list[tuple[str, bytes]] = []

    def one_of(self, *given: int) -> int:
        return given[int(self.rng.integers(len(given)))]

    def members(self) -> dict[str, Member]:
        some = self.rng.random((len(DEVICES), 3)) < 0.15
        return {
            name: Member(self.one_of(0, 0, 1, 2), *map(bool, flags))
            for name, flags in zip(DEVICES, some.tolist(), strict=True)
            if self.rng.random() < 0.7
        }

    def frame(self) -> tuple[str, bytes]:
        """Return the next frame of some device, or one that is not as it should be."""
        device, stream = DEVICES[int(self.rng.integers(len(DEVICES)))], self.one_of(1, 1, 2)
        key = (device, stream)
        kind = self.one_of(*[0] * 14, *range(1, 9))
        if kind == 1 and self.sent:
            return self.sent[int(self.rng.integers(len(self.sent)))]
        self.batch[key] += self.one_of(1, 1, 1, 1, 2, 3)  # some come later, some never
        first = self.slot[key] + self.one_of(0, 0, 1, *FAR) // stream
        steps = [self.one_of(*[1] * 9, 2, *FAR) for _ in range(self.one_of(0, 1, 4, 20))]
        slots = np.cumsum([first, *steps]).tolist()
        self.slot[key] = slots[-1] + 1
        size = len(slots)
        codes = self.rng.choice([code for code in range(CODES) if code != 3], size)
        codes[:] = codes[0] if self.rng.random() < 0.2 else codes
        batch, epoch = self.batch[key], 1
        if kind == 2:
            batch = max(1, batch - self.one_of(1, 2, 3, 5))  # late, or a number used before
            slots = [slot - self.one_of(0, 20, 60) for slot in slots[:1]]
            codes = codes[:1]
        elif kind == 3:
            codes[-1] = self.one_of(3, CODES, 65_535)
        elif kind == 4:
            epoch = self.one_of(2, 2, 7)
            codes[:] = np.minimum(codes, self.one_of(2, 4, 5))
        elif kind == 5:
            batch = self.one_of(0, 500, NOW + 3000, 1 << 31)
        elif kind == 6:
            edge = self.one_of(NOW - 2, NOW - 1, NOW, NOW + 1, NOW - 3364, NOW - 3360, 40)
            slots, codes = [edge // stream], codes[:1]
        elif kind == 7:
            stream = 9
        payload = frame.encode(stream, batch, epoch, slots, codes.tolist())
        self.sent.append((device, payload))
        return device, payload

    def told(self, device: str) -> Status:
        """Return a status; its numbers need not fit the frames."""
        streams = []
        for stream in (1, 2, 9):
            first = self.one_of(1, 1, 1, 5)
            oldest = first + self.one_of(0, 0, 1, 3)
            following = max(oldest, self.batch[device, stream] + 1)
            streams.append(StreamStatus(stream, first, following, oldest, 500, 3))
        told = tuple(streams[: self.one_of(1, 2, 3)])
        return Status("online", "test", told, chance=CHANCES[self.one_of(0, 0, 1, 2)])

    def flush(self) -> Flush:
        frames = [read_frame(*self.frame()) for _ in range(self.one_of(0, 1, 5, 40, 80))]
        order = self.rng.permutation(len(frames)).tolist()
        heard = [name for name in DEVICES if self.rng.random() < 0.2]
        broken = {"frame": 2, "identity": 1} if self.rng.random() < 0.3 else {}
        came = FrameBatch.of(frames[at] for at in order)
        return came, {name: self.told(name) for name in heard}, broken


# every other batch is missing, but for one wider gap: one more gap would be too many
FULL = DeviceState(
    highest=2 * OPEN_GAPS + 2,
    last_slot=NOW - 400,
    gaps=(
        Gap(1, 3, -1, NOW - 400),
        *(Gap(2 * n + 3, 2 * n + 3, NOW - 400, None) for n in range(1, OPEN_GAPS)),
    ),
)


class Kept:
    """What a store would hold after some flushes; one device has all the gaps it may have."""

    def __init__(self, members: dict[str, Member]) -> None:
        self.records: dict[Key, Record] = {(DEVICES[0], 1): Record(FULL)}
        self.devices = frozenset([DEVICES[0], *members])
        self.watched: dict[WatchKey, bytes] = {}
        self.members = members

    def known(self) -> Known:
        rows = RecordRows({key: record_row(key, one) for key, one in self.records.items()})
        return Known(rows, self.devices, len(self.devices), self.watched, self.members)

    def take(self, changes: Changes) -> None:
        self.records = {**self.records, **changes.records}
        self.devices |= changes.enrolled
        self.watched = {**self.watched, **changes.watched}
        for device in changes.holds:
            self.members[device] = replace(self.members.get(device, Member()), held=True)


SEEDS = st.integers(0, (1 << 32) - 1)


@given(SEEDS, st.booleans(), st.sampled_from([None, frozenset(DEVICES[:4])]))
@settings(max_examples=60, deadline=None)
def test_settling_is_the_plain_model_to_the_bit(
    seed: int,
    marks_hold: bool,  # noqa: FBT001 (drawn)
    listed: frozenset[str] | None,
) -> None:
    fleet = Fleet(seed)
    rules = replace(RULES, marks_hold=marks_hold, devices=listed)
    kept = Kept(fleet.members())
    for _ in range(4):
        given_now = (*fleet.flush(), kept.known(), rules)
        found = settle(*given_now)
        assert found == reference_settle.settle(*given_now)
        kept.take(found)


def test_the_mixes_reach_every_outcome_and_reason() -> None:
    """What the property compares is not only frames that count, nor only refusals."""
    seen: set[str] = set()
    for seed in range(30):
        fleet = Fleet(seed)
        kept = Kept(fleet.members())
        rules = replace(RULES, devices=frozenset(DEVICES[:5]) if seed % 2 else None)
        for _ in range(4):
            found = settle(*fleet.flush(), kept.known(), rules)
            seen.update(str(reason) for reason, _ in found.refused)
            seen.update({"new"} if len(found.tally.parts) > 2 else ())
            seen.update({"marked"} if found.marked else ())
            seen.update({"gapped"} if found.gapped else ())
            seen.update({"held"} if found.held else ())
            kept.take(found)
    assert seen >= {"new", "marked", "gapped", "held", "device", "stream", "foreign", "range"}
    assert seen >= {"early", "late", "clock", "duplicate", "conflict", "slots", "outrun"}
    assert seen >= {"gap_limit", "frame", "identity"}
