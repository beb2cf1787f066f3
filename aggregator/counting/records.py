"""What the aggregator keeps of a device and stream, and what one flush changes: plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from aggregator.counting.frames import CountedFrames
from aggregator.counting.seen_batches import DeviceState, Gap
from aggregator.counting.tally import Tally
from edge_ldp.protocol.messages import Status
from edge_ldp.protocol.released import ReleasedFrame

Key = tuple[str, int]  # device, stream
Cell = tuple[int, int, int, int, int]  # stream, epoch, group, class, bucket
PresenceKey = tuple[int, int, int, int]  # stream, bucket, group, class
WatchKey = tuple[str, int, str]  # device, stream, law: what honest devices do at most


@dataclass(slots=True)
class Again:
    """Frames of a device and stream that came again, byte for byte: their (batch, series)."""

    messages: int = 0
    reports: int = 0
    batches: set[tuple[int, int]] = field(default_factory=set)


class Record(NamedTuple):
    """What is kept of one device and stream; counts are of reports.

    `created`, `expired`, `next`: by the device's last status, of its present account, which began
    in the slot `first`; `before`: reports settled under states that the device lost since.
    """

    state: DeviceState = DeviceState()
    first_slot: int | None = None
    counted: int = 0
    rejected: int = 0
    duplicates: int = 0
    conflicts: int = 0
    created: int = 0
    expired: int = 0
    first: int = 0
    next: int = 0
    before: int = 0

    @property
    def pending(self) -> int:
        """Reports made, and neither settled nor given up, as of the last status."""
        settled = self.counted + self.rejected - self.before
        return max(0, self.created - settled - self.expired)

    @property
    def missing(self) -> tuple[Gap, ...]:
        """The gaps of batches that the device can have made.

        Before its first status nobody knows the first batch of frames v1, whose number is that of a
        slot: what lies below all that came is no gap. From then on its own word has closed it.
        """
        gaps = self.state.gaps
        is_below = not self.first and not self.state.series and gaps and gaps[0].first == 1
        return gaps[1:] if is_below else gaps

    @property
    def given_up(self) -> int:
        """Reports that the device gave up and that never came: not those whose receipt was late."""
        settled = self.counted + self.rejected - self.before
        return min(self.expired, max(0, self.created - settled))


@dataclass(frozen=True, slots=True)
class Member:
    """What the operator, or a mark, decided about a device; the default is that of any device.

    `group`: what its counts belong to from now on; `revoked`: it may not report; `held`: its counts
    are kept apart; `cleared`: an operator released it, so that no mark holds it again; `cls`: how
    often it may report (`counting.classes`), by its last status.
    """

    group: int = 0
    revoked: bool = False
    held: bool = False
    cleared: bool = False
    cls: int = 0


@dataclass(frozen=True, slots=True)
class HeldCounts:
    """What one flush counts of a device that is held, as of class 0."""

    tally: Tally
    presence: Mapping[PresenceKey, int]


@dataclass(frozen=True, slots=True)
class Known:
    """What the store holds of the records asked for: missing ones were never heard of.

    `watched`: what is kept of these devices and streams for the bound per device, by law;
    `members`: of the devices asked for those that are not as any other; `retired`: streams that
    count nothing until an operator reinstates them; `claims`: device, stream's name, first and end
    second of each period whose sums are kept, of the devices that send any.
    """

    records: Mapping[Key, Record]
    devices: frozenset[str]
    device_count: int
    watched: Mapping[WatchKey, bytes] = field(default_factory=dict)
    members: Mapping[str, Member] = field(default_factory=dict)
    retired: frozenset[int] = frozenset()
    claims: Sequence[tuple[str, str, int, int]] = ()


@dataclass(frozen=True, slots=True)
class Marked:
    """A device that sent a set of codes (`name`) more often than honest ones do.

    `seen` of `reports` were in it; `bound`: its largest honest share; `chance`: of as many, at it.
    """

    name: str
    seen: int
    reports: int
    bound: float
    chance: float


@dataclass(frozen=True, slots=True)
class ReleasedArrival:
    """One well-formed frame of released values, from the device that its topic names."""

    device: str
    frame: ReleasedFrame
    digest: bytes

    @property
    def key(self) -> Key:
        """The device and stream, in records and receipts."""
        return self.device, self.frame.key


UNNAMED = "~"  # begins a name that no device can have: of sums whose home was erased


class KeptSums(NamedTuple):
    """One home's sums of a period as they are kept, with its group; `held`: they are in no total.

    `name`: of the stream; seconds UTC; `payload`: the frame as it came.
    """

    device: str
    name: str
    first_s: int
    end_s: int
    group: int
    held: bool
    payload: bytes


@dataclass(frozen=True, slots=True)
class Changes:
    """What one flush changes: records and statuses replace, everything else adds.

    `refused`: (reason, stream) → (messages, reports) of what was not counted; `enrolled`: devices
    without a row before; `gapped`: those that should get a receipt soon; `settled`: with any batch;
    `released`, `summed`: frames of curated streams, and periods' sums, to be stored; `watched`,
    which replaces, and `marked`: of the bound per device; `counted`: the frames behind `tally` and
    `held`, which the archive keeps, each with its group and class; `held`: by device in quarantine,
    what is counted of it; `holds`: devices that a mark holds from now on; `reporters`: whose
    reports are in the cells of `tally`.
    """

    records: Mapping[Key, Record]
    statuses: Mapping[str, Status]
    tally: Tally
    presence: Mapping[PresenceKey, int]
    refused: Mapping[tuple[str, int], tuple[int, int]]
    enrolled: frozenset[str]
    gapped: frozenset[str]
    settled: frozenset[str]
    released: tuple[ReleasedArrival, ...] = ()
    summed: tuple[KeptSums, ...] = ()
    watched: Mapping[WatchKey, bytes] = field(default_factory=dict)
    marked: Mapping[Key, Marked] = field(default_factory=dict)
    counted: CountedFrames = field(default_factory=CountedFrames.of)
    held: Mapping[str, HeldCounts] = field(default_factory=dict)
    holds: frozenset[str] = frozenset()
    reporters: Mapping[Cell, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Doubt:
    """What a record is of, when it is not known whether it was committed.

    `flush`: the id of the flush, empty in records of older versions; the rest is its first frame's.
    """

    flush: bytes
    device: str
    stream: int
    batch: int
    series: int = 0
