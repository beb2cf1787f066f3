"""The traffic of a simulated fleet, round by round: frames as devices make them, disturbed.

A round is one frame of every device and stream. Everything follows from the seed, so a run can be
made again and what must be counted is known from the making. That is why this generator is a
simulation's: whoever knows the seed knows the noise. A real device draws from its operating system
(`edge_ldp.entropy`), never from here.

Memory: one round's frames, those delayed (a share of MAX_DELAY rounds), and the truth's cells; so
O(devices), however many reports a run has.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edge_ldp.protocol.messages import Status, StreamStatus
from firmware_stubs.simulator.fleet import randomise
from studies.load.fates import (
    MAX_DELAY,
    SPREAD_CODES,
    Poison,
    Spec,
    draw_fates,
    draw_journeys,
)
from studies.load.lies import LIES, HonestFrame, tell
from studies.load.truth import ExpectedCounts

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from edge_ldp.protocol.plan import Plan

    Ints = NDArray[np.int64]

SPREAD = 0.9  # of the logarithm of a load
CENTRE = 0.05  # of the range: a typical load
SOFTWARE = "simulated-fleet 2"


class Sent(NamedTuple):
    """One frame on its way, from a device by its index.

    `settles`: the aggregator's receipt will cover its batch, and its device keeps it until then.
    `after`: goes out only when the batch is covered (a lie about what was counted).
    """

    device: int
    payload: bytes
    stream: int
    batch: int
    settles: bool = True
    after: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """One stream: its plans in the order they are used, its buckets and its first slot."""

    plans: Sequence[Plan]
    bucket_slots: int
    first_slot: int


@dataclass(frozen=True, slots=True)
class Round:
    """Messages in sending order; at `last_s` (UTC) all their slots are over.

    `renewed`: devices that lost their state before this round and must say so first.
    """

    at: int
    messages: Sequence[Sent]
    last_s: int
    renewed: Sequence[int] = ()


class Traffic:
    """Makes a run's rounds once; `truth` is complete after the last."""

    def __init__(self, spec: Spec, sources: Sequence[Source]) -> None:
        self.spec = spec
        self.truth = ExpectedCounts()
        self.names = [f"load-{at:07}" for at in range(spec.devices)]
        self.made = 0  # rounds
        self._sources = sources
        self._round_s = spec.reports * max(
            (source.plans[0].slot_seconds for source in sources), default=1
        )
        self._rng = np.random.default_rng(spec.seed)
        self._fates = draw_fates(spec, self._rng)
        self._since = np.zeros(spec.devices, np.int64)  # the round of each device's present state
        self._later: list[tuple[int, int, Sent]] = []
        self._put_away = 0

    def rounds(self) -> Iterator[Round]:
        """Yield the rounds, and at last one with what was delayed beyond them."""
        last_s = 0
        for at in range(self.spec.rounds):
            renewed = np.flatnonzero(self._fates.ends == at)
            self._since[renewed] = at
            now: list[Sent] = []
            for source in self._sources:
                plan = source.plans[at * len(source.plans) // self.spec.rounds]
                now += self._of_stream(source, plan, at)
                end = self._first_slot(source, at) + self.spec.reports
                last_s = max(last_s, end * plan.slot_seconds)
            now = [now[one] for one in self._rng.permutation(len(now)).tolist()]
            self.made = at + 1
            yield Round(at, [*self._due(at), *now], last_s, renewed.tolist())
        rest = list(self._due(self.spec.rounds + MAX_DELAY + 1))
        if rest:
            yield Round(self.spec.rounds, rest, last_s)

    def status(self, device: int, at: int, oldest: Mapping[int, int] | None = None) -> bytes:
        """Return a device's status before round `at`; `oldest` batch kept by stream, if any is."""
        streams = []
        for source in self._sources:
            stream = source.plans[0].stream_id
            first = self._first_batch(source, device)
            made = at - int(self._since[device])
            kept = (oldest or {}).get(stream, first + made)
            created = made * self.spec.reports
            streams.append(StreamStatus(stream, first, first + made, kept, created, 0))
        return Status("online", SOFTWARE, tuple(streams)).to_json()

    def delayed(self) -> dict[int, dict[int, int]]:
        """Return the oldest batch on its way of each stream, of devices that have any."""
        found: dict[int, dict[int, int]] = {}
        for _, _, one in self._later:
            if one.settles:
                mine = found.setdefault(one.device, {})
                mine[one.stream] = min(one.batch, mine.get(one.stream, one.batch))
        return found

    def created(self, device: int) -> int:
        """Return how many reports of each stream a device's present state made."""
        return (self.made - int(self._since[device])) * self.spec.reports

    def _first_batch(self, source: Source, device: int) -> int:
        """Return the first batch number: 1, or of any later state its first slot."""
        since = int(self._since[device])
        return self._first_slot(source, since) if since else 1

    def _first_slot(self, source: Source, at: int) -> int:
        """Return the first slot of a round: rounds of all streams begin at one time."""
        return source.first_slot + at * self._round_s // source.plans[0].slot_seconds

    def _of_stream(self, source: Source, plan: Plan, at: int) -> Iterator[Sent]:
        spec, fates = self.spec, self._fates
        first = self._first_slot(source, at)
        slots = np.arange(first, first + spec.reports)
        codes = self._codes(plan)
        lying = fates.lies & (at % 2 == 1)
        delays, copies = draw_journeys(spec, ~fates.lies, self._rng)
        # a frame that was not through when its device lost its state is gone for ever
        gone = (delays > 0) & (at < fates.ends) & (at + delays >= fates.ends)
        gone &= fates.ends < spec.rounds
        counted = ~lying & ~gone
        buckets = np.tile(slots // source.bucket_slots, int(counted.sum()))
        self.truth.count(plan.stream_id, plan.epoch, buckets, codes[counted].ravel())
        self.truth.gone += int(gone.sum()) * spec.reports
        for device in np.flatnonzero(~gone).tolist():
            batch = self._first_batch(source, device) + at - int(self._since[device])
            frame = HonestFrame(plan, batch, slots, codes[device])
            if lying[device]:
                yield from self._lie(source, frame, device, at)
                continue
            sent = Sent(device, frame.payload, plan.stream_id, batch)
            if delays[device]:
                self._put(at + int(delays[device]), sent)
            else:
                yield sent
            if copies[device]:
                self._put(at + int(copies[device]), sent._replace(settles=False))
                self.truth.refuse("duplicate", spec.reports)

    def _codes(self, plan: Plan) -> Ints:
        """Return a frame's codes of every device; shape (devices, reports)."""
        shape = (self.spec.devices, self.spec.reports)
        width = plan.ceiling - plan.low
        drawn = plan.low + width * CENTRE * np.exp(SPREAD * self._rng.standard_normal(shape))
        drawn[self._fates.poison == Poison.INPUT] = plan.ceiling
        values = np.clip(drawn, plan.low, plan.ceiling).astype(np.int64)
        codes = randomise(plan, values, self._rng.bytes)
        highest = plan.reporter().code_count - 1
        codes[self._fates.poison == Poison.POINT] = highest
        spread = self._fates.poison == Poison.SPREAD
        some = (int(spread.sum()), self.spec.reports)
        codes[spread] = highest - self._rng.integers(0, SPREAD_CODES, some)
        return codes

    def _lie(self, source: Source, frame: HonestFrame, device: int, at: int) -> Iterator[Sent]:
        kind = int(self._rng.integers(LIES))
        # no further back than buckets are open: beyond, the same lie would be `late`
        open_slots = self.spec.window_s // (2 * frame.plan.slot_seconds)
        back = min(int(frame.slots[0]) - source.first_slot, open_slots)
        lie = tell(kind, frame, self.spec.window_s, back=back)
        broken = lie.reason == "frame"
        self.truth.refuse(lie.reason, 0 if broken else self.spec.reports)
        key = (frame.plan.stream_id, frame.batch)
        honest = Sent(device, frame.payload, *key)
        lying = Sent(device, lie.payload, *key, settles=lie.settles, after=lie.after)
        if not lie.settles:
            buckets = frame.slots // source.bucket_slots
            self.truth.count(frame.plan.stream_id, frame.plan.epoch, buckets, frame.codes)
        yield honest if lie.after else lying
        if not lie.settles:
            self._put(at + 1, lying if lie.after else honest)

    def _put(self, at: int, sent: Sent) -> None:
        self._put_away += 1
        heapq.heappush(self._later, (at, self._put_away, sent))

    def _due(self, at: int) -> Iterator[Sent]:
        while self._later and self._later[0][0] <= at:
            yield heapq.heappop(self._later)[2]
