"""Frames of reports as columns, as one flush brings them; one by one they are `Arrival`s."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2s
from typing import NamedTuple

import numpy as np

from aggregator.counting.seen_batches import DIGEST_BYTES
from edge_ldp.arrays import Ints
from edge_ldp.device.frame import Header
from edge_ldp.vectorized.frames import decode_columns

STREAM, BATCH, EPOCH, FIRST_SLOT, COUNT, SERIES, TAG = range(len(Header._fields))
_STREAM_BITS = 8


class Arrival(NamedTuple):
    """One well-formed frame as it came, from the device that its topic names."""

    device: str
    head: Header
    slots: Ints
    codes: Ints
    digest: bytes


class FrameBatch:
    """Well-formed frames: `heads` has a row for each field of a Header, a column for each frame.

    `owner`: the place of each one's device in `names`, which rise; `slots`, `codes`: of all
    reports, frame after frame.
    """

    def __init__(  # noqa: PLR0913, PLR0917 (its columns)
        self,
        names: Sequence[str],
        owner: Ints,
        digests: Sequence[bytes],
        heads: Ints,
        slots: Ints,
        codes: Ints,
    ) -> None:
        self.names, self.owner, self.digests = names, owner, digests
        self.heads, self.slots, self.codes = heads, slots, codes
        self.counts = heads[COUNT]
        self.ends = np.cumsum(self.counts)
        self.begins = self.ends - self.counts

    @classmethod
    def of(cls, arrivals: Iterable[Arrival]) -> "FrameBatch":
        """Return the same as columns."""
        found = [*arrivals]
        nothing = [np.zeros(0, np.int64)]
        heads = np.array([one.head for one in found], np.int64).reshape(-1, len(Header._fields))
        return cls(
            *_numbered([one.device for one in found]),
            [one.digest for one in found],
            heads.T,
            np.concatenate(nothing + [one.slots for one in found]),
            np.concatenate(nothing + [one.codes for one in found]),
        )

    @classmethod
    def read(cls, messages: Sequence[tuple[str, bytes]]) -> "tuple[FrameBatch, list[bool]]":
        """Return the frames among the payloads of devices, and which of the payloads are some."""
        whole, *columns = decode_columns([payload for _, payload in messages])
        if not whole.all():
            messages = [messages[at] for at in np.flatnonzero(whole).tolist()]
        digests = [blake2s(one, digest_size=DIGEST_BYTES).digest() for _, one in messages]
        return cls(
            *_numbered([device for device, _ in messages]), digests, *columns
        ), whole.tolist()

    def __len__(self) -> int:
        """How many there are."""
        return len(self.owner)

    def __iter__(self) -> Iterator[Arrival]:
        """Give one after the other."""
        rows = zip(self.devices, self.heads.T.tolist(), self.digests, strict=True)
        spans = zip(self.begins.tolist(), self.ends.tolist(), strict=True)
        for (device, head, digest), (begin, end) in zip(rows, spans, strict=True):
            slots, codes = self.slots[begin:end], self.codes[begin:end]
            yield Arrival(device, Header._make(head), slots, codes, digest)

    @property
    def devices(self) -> list[str]:
        """The device of each frame."""
        return [self.names[at] for at in self.owner.tolist()]

    @property
    def keys(self) -> set[tuple[str, int]]:
        """The devices and streams that there are."""
        return set(zip(self.devices, self.heads[STREAM].tolist(), strict=True))

    @cached_property
    def plans(self) -> tuple[list[tuple[int, int]], Ints]:
        """The plans that there are (stream, epoch), and the plan of each frame."""
        found, of = np.unique(
            self.heads[EPOCH] << _STREAM_BITS | self.heads[STREAM], return_inverse=True
        )
        named = zip((found & 0xFF).tolist(), (found >> _STREAM_BITS).tolist(), strict=True)
        return [*named], of.reshape(-1)

    @property
    def lasts(self) -> Ints:
        """The last slot of each frame."""
        lasts: Ints = self.slots[self.ends - 1]
        return lasts

    def merged(self, other: "FrameBatch", places: Sequence[int]) -> "FrameBatch":
        """Return these and the others by their places, equal ones in this order."""
        heads = np.concatenate([self.heads, other.heads], axis=1)
        slots, codes = (
            np.concatenate(pair) for pair in ((self.slots, other.slots), (self.codes, other.codes))
        )
        named = _numbered(self.devices + other.devices)
        both = FrameBatch(*named, [*self.digests, *other.digests], heads, slots, codes)
        return both.some(np.argsort(places, kind="stable"))

    def some(self, places: Ints) -> "FrameBatch":
        """Return those at the places, each at most once, in that order."""
        if np.array_equal(places, np.arange(len(self))):
            return self
        counts = self.counts[places]
        shifts = self.begins[places] - (np.cumsum(counts) - counts)
        reports = np.arange(counts.sum()) + np.repeat(shifts, counts)
        return FrameBatch(
            self.names,
            self.owner[places],
            [self.digests[at] for at in places.tolist()],
            self.heads[:, places],
            self.slots[reports],
            self.codes[reports],
        )

    def ordered(self) -> "FrameBatch":
        """Return them as they are settled: of a device by number, and from series to series."""
        stream, batch, _, first, _, series, _ = self.heads
        return self.some(np.lexsort((batch, np.where(series > 0, first, 0), stream, self.owner)))


def _numbered(devices: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the names that there are, rising, and the place of each in that list."""
    names = sorted(set(devices))
    at = {name: place for place, name in enumerate(names)}
    return names, np.array([at[name] for name in devices], np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class CountedFrames:
    """Frames that count, each with the group and the class of its device."""

    frames: FrameBatch
    groups: Ints
    classes: Ints

    @classmethod
    def of(cls, given: Iterable[tuple[Arrival, int, int]] = ()) -> "CountedFrames":
        """Return the same as columns."""
        found = [*given]
        whose = np.array([rest for _, *rest in found], np.int64).reshape(-1, 2)
        return cls(FrameBatch.of(one for one, _, _ in found), *whose.T)

    def some(self, places: Ints) -> "CountedFrames":
        """Return those at the places, each at most once, in that order."""
        return CountedFrames(self.frames.some(places), self.groups[places], self.classes[places])

    def __eq__(self, other: object) -> bool:
        """Say whether they are the same."""
        return isinstance(other, CountedFrames) and self._rows() == other._rows()

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        """How many there are."""
        return len(self.frames)

    def __iter__(self) -> Iterator[tuple[Arrival, int, int]]:
        """Give one after the other."""
        return zip(self.frames, self.groups.tolist(), self.classes.tolist(), strict=True)

    def _rows(self) -> list[tuple[object, ...]]:
        return [
            (device, head, slots.tolist(), codes.tolist(), digest, *whose)
            for (device, head, slots, codes, digest), *whose in self
        ]
