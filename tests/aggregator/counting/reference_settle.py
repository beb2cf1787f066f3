"""What `settle` must give, written frame by frame and report by report: slow, and plain to read.

The model that the vectorised settling is compared with; only tests use it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise

import numpy as np

from aggregator.counting.accounts import with_status
from aggregator.counting.classes import class_of
from aggregator.counting.flush_counts import away_after
from aggregator.counting.frames import Arrival, CountedFrames
from aggregator.counting.records import (
    Changes,
    HeldCounts,
    Key,
    Known,
    Marked,
    Member,
    PresenceKey,
    Record,
    WatchKey,
)
from aggregator.counting.refusals import MARK_RATE, Codes, Reason, Rules, StreamRules
from aggregator.counting.reporters import hash_of, pack_reporters
from aggregator.counting.seen_batches import (
    DIGEST,
    KEPT_DIGESTS,
    OPEN_GAPS,
    DeviceState,
    Gap,
    Outcome,
)
from aggregator.counting.settlement import NO_STREAM
from aggregator.counting.tally import CODE_BITS, Part, Sparse, Tally
from aggregator.counting.watching import AGAIN, WatchState, from_bytes, look
from edge_ldp.protocol.messages import Status
from tests.aggregator.counting.reference_watch import begin_again, observe

Cell = tuple[int, int, int, int, int, int]  # stream, epoch, group, class, bucket, code
Place = tuple[int, int, int, int, int]  # stream, epoch, group, class, bucket
PLAIN = Member()


def settle(
    arrivals: Iterable[Arrival],
    statuses: Mapping[str, Status],
    broken: Mapping[str, int],
    known: Known,
    rules: Rules,
) -> Changes:
    """Return what `aggregator.counting.settle.settle` does."""
    model = Model(known, rules)
    model.told = {
        name: class_of(one.chance, one.effect) for name, one in statuses.items() if one.chance
    }
    for reason, messages in broken.items():
        model.refuse(reason, NO_STREAM, 0, messages)
    for one in sorted(arrivals, key=lambda one: (one.device, one.head.stream, one.head.batch)):
        model.take(one)
    heard = {}
    for device, status in statuses.items():
        if model.hears(device):
            heard[device] = status
            model.declare(device, status)
        else:
            model.refuse(Reason.DEVICE, NO_STREAM, 0, 1)
    return model.changes(heard)


class Model:
    """Everything that a flush changes, as it changes."""

    def __init__(self, known: Known, rules: Rules) -> None:
        self.known, self.rules = known, rules
        self.records = dict(known.records)
        self.devices = set(known.devices)
        self.changed: set[Key] = set()
        self.gapped: set[str] = set()
        self.settled: set[str] = set()
        self.cells: defaultdict[str | None, Counter[Cell]] = defaultdict(Counter)
        self.present: defaultdict[str | None, Counter[PresenceKey]] = defaultdict(Counter)
        self.who: defaultdict[Place, tuple[set[int], set[int]]] = defaultdict(
            lambda: (set(), set())
        )
        self.told: dict[str, int] = {}
        self.frames: list[tuple[Arrival, int, int]] = []
        self.messages: Counter[tuple[str, int]] = Counter()
        self.reports: Counter[tuple[str, int]] = Counter()
        self.codes: defaultdict[WatchKey, list[int]] = defaultdict(list)

    def hears(self, device: str) -> bool:
        if device in self.devices:
            return self.rules.hears(device, self.known.members.get(device))
        new = len(self.devices - self.known.devices)
        if not self.rules.enrols(device, self.known.device_count + new):
            return False
        self.devices.add(device)
        return True

    def refuse(self, reason: str, stream: int, reports: int, messages: int) -> None:
        self.messages[reason, stream] += messages
        self.reports[reason, stream] += reports

    def declare(self, device: str, status: Status) -> None:
        for told in status.streams:
            if told.stream not in self.rules.streams:
                continue
            key = (device, told.stream)
            self.records[key] = with_status(self.records.get(key, Record()), told)
            self.changed.add(key)

    def take(self, one: Arrival) -> None:
        head = one.head
        if not self.hears(one.device):
            self.refuse(Reason.DEVICE, NO_STREAM, head.count, 1)
            return
        reason = judge(one, self.rules)
        if reason in (Reason.STREAM, Reason.FOREIGN, Reason.EARLY, Reason.CLOCK):
            stream = NO_STREAM if reason is Reason.STREAM else head.stream
            self.refuse(reason, stream, head.count, 1)
            return
        key = (one.device, head.stream)
        old = self.records.get(key, Record())
        state, outcome, after, before = place(old.state, one, counts=reason is None)
        fits = outcome in (Outcome.NEW, Outcome.LATE)
        if fits and reason is None:
            self.count(one, after, before)
        else:
            settled = fits or outcome is Outcome.SLOTS
            self.refuse(reason if reason and settled else outcome, head.stream, head.count, 1)
        self.records[key] = account(old._replace(state=state), one, outcome, counts=reason is None)
        self.changed.add(key)
        self.settled.add(one.device)
        if len(state.gaps) > len(old.state.gaps) or outcome is Outcome.GAP_LIMIT:
            self.gapped.add(one.device)

    def count(self, one: Arrival, after: int, before: int | None) -> None:
        head = one.head
        rules = self.rules.streams[head.stream]
        member = self.known.members.get(one.device, PLAIN)
        where = one.device if member.held else None
        cls = 0 if member.held else self.told.get(one.device, member.cls)
        self.frames.append((one, member.group, cls))
        for slot, code in zip(one.slots.tolist(), one.codes.tolist(), strict=True):
            bucket = slot // rules.bucket_slots
            self.cells[where][head.stream, head.epoch, member.group, cls, bucket, code] += 1
            if not member.held:
                is_survey = code >= rules.plans[head.epoch].surveys_from
                cell = (head.stream, head.epoch, member.group, cls, bucket)
                self.who[cell][is_survey].add(hash_of(one.device))
        silence = away_after(rules.slot_seconds, cls)
        for slot in present(one.slots.tolist(), after, before, silence):
            self.present[where][head.stream, slot // rules.bucket_slots, member.group, cls] += 1
        watch = rules.plans[head.epoch].watch
        if watch is not None:
            self.codes[one.device, head.stream, watch.law] += one.codes.tolist()

    def changes(self, statuses: Mapping[str, Status]) -> Changes:
        watched, marked = self.looked()
        held = {
            device: HeldCounts(tally_of(cells), self.present[device])
            for device, cells in self.cells.items()
            if device is not None
        }
        members = {device: self.known.members.get(device, PLAIN) for device, _ in marked}
        holds = {name for name, one in members.items() if not (one.held or one.cleared)}
        return Changes(
            records={key: self.records[key] for key in self.changed},
            statuses=statuses,
            tally=tally_of(self.cells[None]),
            presence=self.present[None],
            refused={key: (n, self.reports[key]) for key, n in self.messages.items()},
            enrolled=frozenset(self.devices - self.known.devices),
            gapped=frozenset(self.gapped),
            settled=frozenset(self.settled),
            watched=watched,
            marked=marked,
            counted=CountedFrames.of(self.frames),
            held=held,
            holds=frozenset(holds if self.rules.marks_hold else ()),
            reporters={cell: pack_reporters(*map(sorted, both)) for cell, both in self.who.items()},
        )

    def looked(self) -> tuple[dict[WatchKey, bytes], dict[Key, Marked]]:
        watched, marked = {}, {}
        laws = {
            (stream, codes.watch.law): codes.watch
            for stream, rules in self.rules.streams.items()
            for codes in rules.plans.values()
            if codes.watch is not None
        }
        for key, codes in self.codes.items():
            watch = laws[key[1:]]
            before = self.known.watched.get(key)
            kept = observe(watch, from_bytes(before) if before else WatchState(), np.array(codes))
            after, marks = look(watch, kept, rate=MARK_RATE, devices=self.rules.triples)
            if after.looks > kept.looks and after.reports >= AGAIN:
                after = begin_again(after)
            watched[key] = after.to_bytes(len(watch.tails))
            if marks:
                worst = min(marks, key=lambda mark: mark.chance)
                marked[key[:2]] = Marked(**asdict(worst))
        return watched, marked


def judge(one: Arrival, rules: Rules) -> Reason | None:
    stream = rules.streams.get(one.head.stream)
    if stream is None:
        return Reason.STREAM
    plan = stream.plans.get(one.head.epoch)
    if plan is None or 0 != one.head.tag != plan.tag != 0:
        return Reason.PLAN if stream.is_retired else Reason.FOREIGN
    possible = plan.possible.tolist()
    if not all(code < len(possible) and possible[code] for code in one.codes.tolist()):
        return Reason.RANGE
    return judge_time(one, stream, plan, rules)


def judge_time(one: Arrival, stream: StreamRules, plan: Codes, rules: Rules) -> Reason | None:
    first, last = one.slots.tolist()[0], one.slots.tolist()[-1]
    if last * stream.slot_seconds > rules.now_s + rules.tolerance_s:
        return Reason.EARLY
    bucket_end = (first // stream.bucket_slots + 1) * stream.bucket_slots * stream.slot_seconds
    is_older = (first + 1) * stream.slot_seconds + max(3600, rules.tolerance_s) < plan.issued_s
    if bucket_end + rules.window_s < rules.now_s and not is_older:
        return Reason.LATE
    return Reason.CLOCK if is_older or bucket_end + rules.window_s < rules.closing_s else None


def place(
    state: DeviceState, one: Arrival, *, counts: bool
) -> tuple[DeviceState, Outcome, int, int | None]:
    """Return the state, the outcome and the counted slots next to the batch."""
    number, first, last = one.head.batch, one.slots.tolist()[0], one.slots.tolist()[-1]
    if number < 1 or number > last + 1:
        return state, Outcome.OUTRUN, -1, None
    if number > state.highest:
        after, before, outcome = state.last_slot, None, Outcome.NEW
        missing = max(state.highest + 1, state.floor)
        gaps = [*state.gaps, *([Gap(missing, number - 1, after, None)] if missing < number else [])]
    else:
        at = [k for k, gap in enumerate(state.gaps) if gap.first <= number <= gap.last]
        if not at:
            known = dict(DIGEST.iter_unpack(state.digests)).get(number, one.digest)
            same = known == one.digest
            return state, Outcome.DUPLICATE if same else Outcome.CONFLICT, -1, None
        gap = state.gaps[at[0]]
        after, before, outcome = gap.after, gap.before, Outcome.LATE
        parts = (gap._replace(last=number - 1), gap._replace(first=number + 1))
        left = [part for part in parts if part.first <= part.last]
        gaps = [*state.gaps[: at[0]], *left, *state.gaps[at[0] + 1 :]]
    if len(gaps) > OPEN_GAPS and len(gaps) > len(state.gaps):
        return state, Outcome.GAP_LIMIT, -1, None
    digests = state.digests + DIGEST.pack(number, one.digest)
    state = state._replace(
        highest=max(state.highest, number),
        gaps=tuple(gaps),
        digests=digests[-KEPT_DIGESTS * DIGEST.size :],
    )
    if not (after < first and (before is None or last < before)):
        return state, Outcome.SLOTS, -1, None
    if counts:
        bounded = tuple(bound(gap, number, first, last) for gap in gaps)
        state = state._replace(last_slot=max(state.last_slot, last), gaps=bounded)
    return state, outcome, after, before


def bound(gap: Gap, number: int, first: int, last: int) -> Gap:
    if gap.first > number:
        return gap._replace(after=max(gap.after, last))
    return gap._replace(before=first if gap.before is None else min(gap.before, first))


def account(record: Record, one: Arrival, outcome: Outcome, *, counts: bool) -> Record:
    reports = one.head.count
    if outcome in (Outcome.NEW, Outcome.LATE) and counts:
        first = one.slots.tolist()[0]
        lowest = first if record.first_slot is None else min(first, record.first_slot)
        return record._replace(counted=record.counted + reports, first_slot=lowest)
    if outcome in (Outcome.NEW, Outcome.LATE, Outcome.SLOTS):
        return record._replace(rejected=record.rejected + reports)
    if outcome is Outcome.CONFLICT:
        return record._replace(conflicts=record.conflicts + reports)
    if outcome is Outcome.DUPLICATE:
        return record._replace(duplicates=record.duplicates + reports)
    return record


def present(slots: Sequence[int], after: int, before: int | None, silence: int) -> Iterator[int]:
    """Yield the slots that a counted batch newly makes present."""
    if after >= 0 and before is not None and before - after <= silence:
        return
    points = [*([after] if after >= 0 else []), *slots, *([] if before is None else [before])]
    yield from slots
    for low, high in pairwise(points):
        if high - low <= silence:
            yield from range(low + 1, high)


def tally_of(cells: Counter[Cell]) -> Tally:
    parts: defaultdict[Part, list[tuple[int, int]]] = defaultdict(list)
    for (*part, bucket, code), count in cells.items():
        stream, epoch, group, cls = part
        parts[stream, epoch, group, cls].append((bucket << CODE_BITS | code, count))
    return Tally(
        {
            part: Sparse(*np.array(sorted(found), np.int64).reshape(-1, 2).T)
            for part, found in parts.items()
        }
    )
