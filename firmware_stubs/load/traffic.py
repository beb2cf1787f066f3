"""The traffic of a fleet, round by round: frames as devices make them, disturbed on their way.

A round is one frame of every device and stream. Everything follows from the seed, so a run can be
made again; what must be counted is known from the making.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from firmware_stubs.fleet.homes import randomise
from firmware_stubs.load.lies import LIES, Frame, tell
from firmware_stubs.load.truth import Truth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from edge_ldp.plan import Plan

    Ints = NDArray[np.int64]

SPREAD = 0.9  # of the logarithm of a load
CENTRE = 0.05  # of the range: a typical load
MAX_DELAY = 8  # rounds; so many gaps are open at once, 64 are allowed


@dataclass(frozen=True, slots=True)
class Spec:
    """How much and how badly; `window_s` is the aggregator's re-send window.

    `reports`: of a frame; `duplicates`, `delayed`: shares of honest frames; `liars`: of devices.
    """

    devices: int
    rounds: int
    reports: int
    seed: int
    window_s: int
    duplicates: float = 0.01
    delayed: float = 0.02
    liars: float = 0.02


@dataclass(frozen=True, slots=True)
class Source:
    """One stream: its plans in the order they are used, its buckets and its first slot."""

    plans: Sequence[Plan]
    bucket_slots: int
    first_slot: int


@dataclass(frozen=True, slots=True)
class Round:
    """Messages (device, frame) in sending order; at `last_s` (UTC) all their slots are over."""

    messages: Sequence[tuple[str, bytes]]
    last_s: int


class Traffic:
    """Makes a run's rounds once; `truth` is complete after the last."""

    def __init__(self, spec: Spec, sources: Sequence[Source]) -> None:
        self.spec = spec
        self.truth = Truth()
        self.names = [f"load-{at:07}" for at in range(spec.devices)]
        self._sources = sources
        self._rng = np.random.default_rng(spec.seed)
        self._liars = self._rng.random(spec.devices) < spec.liars
        self._constant = self._liars & (self._rng.random(spec.devices) < 1 / (LIES + 1))
        self._later: list[tuple[int, int, str, bytes]] = []
        self._made = 0

    def rounds(self) -> Iterator[Round]:
        """Yield the rounds, and at last one with what was delayed beyond them."""
        last_s = 0
        for at in range(self.spec.rounds):
            now: list[tuple[str, bytes]] = []
            for source in self._sources:
                plan = source.plans[at * len(source.plans) // self.spec.rounds]
                now += self._of_stream(source, plan, at)
                end = source.first_slot + (at + 1) * self.spec.reports
                last_s = max(last_s, end * plan.slot_seconds)
            now = [now[one] for one in self._rng.permutation(len(now)).tolist()]
            yield Round([*self._due(at), *now], last_s)
        rest = list(self._due(self.spec.rounds + MAX_DELAY + 1))
        if rest:
            yield Round(rest, last_s)

    def _of_stream(self, source: Source, plan: Plan, at: int) -> Iterator[tuple[str, bytes]]:
        spec = self.spec
        first = source.first_slot + at * spec.reports
        slots = np.arange(first, first + spec.reports)
        codes = randomise(plan, self._values(plan), self._rng.bytes)
        codes[self._constant] = plan.reporter().code_count - 1
        honest = ~self._liars | self._constant
        lying = ~honest & (at % 2 == 1)
        buckets = np.tile(slots // source.bucket_slots, int((~lying).sum()))
        self.truth.count(plan.stream_id, plan.epoch, buckets, codes[~lying].ravel())
        delays, copies = self._fates(honest)
        for device, name in enumerate(self.names):
            frame = Frame(plan, at + 1, slots, codes[device])
            if lying[device]:
                yield from self._lie(source, frame, name, at)
                continue
            payload = frame.payload
            if delays[device]:
                self._put(at + int(delays[device]), name, payload)
            else:
                yield name, payload
            if copies[device]:
                self._put(at + int(copies[device]), name, payload)
                self.truth.refuse("duplicate", spec.reports)

    def _lie(self, source: Source, frame: Frame, name: str, at: int) -> Iterator[tuple[str, bytes]]:
        kind = int(self._rng.integers(LIES))
        lie = tell(kind, frame, self.spec.window_s)
        broken = lie.reason == "frame"
        self.truth.refuse(lie.reason, 0 if broken else self.spec.reports)
        if not lie.settles:
            buckets = frame.slots // source.bucket_slots
            self.truth.count(frame.plan.stream_id, frame.plan.epoch, buckets, frame.codes)
        if lie.after:
            yield name, frame.payload
            self._put(at + 1, name, lie.payload)
            return
        yield name, lie.payload
        if not lie.settles:
            self._put(at + 1, name, frame.payload)

    def _fates(self, honest: NDArray[np.bool_]) -> tuple[Ints, Ints]:
        """Return rounds that each device's frame is late, and after which a copy comes; 0: none."""
        fates = []
        for share in (self.spec.delayed, self.spec.duplicates):
            chosen = honest & (self._rng.random(len(honest)) < share)
            fates.append(np.where(chosen, self._rng.integers(1, MAX_DELAY + 1, len(honest)), 0))
        return fates[0], fates[1]

    def _values(self, plan: Plan) -> Ints:
        """Return plausible loads of every device and slot, in the plan's range."""
        shape = (self.spec.devices, self.spec.reports)
        width = plan.ceiling - plan.low
        drawn = plan.low + width * CENTRE * np.exp(SPREAD * self._rng.standard_normal(shape))
        return np.clip(drawn, plan.low, plan.ceiling).astype(np.int64)

    def _put(self, at: int, name: str, payload: bytes) -> None:
        self._made += 1
        heapq.heappush(self._later, (at, self._made, name, payload))

    def _due(self, at: int) -> Iterator[tuple[str, bytes]]:
        while self._later and self._later[0][0] <= at:
            _, _, name, payload = heapq.heappop(self._later)
            yield name, payload
