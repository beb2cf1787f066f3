"""What was settled of one device and stream, in bounded memory, so that nothing counts twice.

Per (device, stream): the highest batch settled, the last slot counted, at most 512 open gaps, of
which a receipt tells the lowest 64. A batch above the highest is new and its slots must lie above
the last slot; one inside a gap must fit the gap's slot bounds; any other was settled before.
A device numbers its batches in a series, and begins another one when the old numbers are of no use.
A batch opens a series if all its slots lie above the last slot; the three series before stay open,
and every batch counts as later than those of the series before: so no number counts a slot twice.
Settled means counted, or rejected for good by `refusals`: a rejected batch moves the batch numbers,
never the slots, so a device whose clock ran away is not locked out by it. Source: docs/design.md,
Messages, The aggregator; docs/faults.md, REP-04..06, AGG-19, AGG-26; docs/adr/0027-series.md.
"""

import struct
from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from edge_ldp.protocol.messages import (
    MAX_GAPS,
    OLD_SERIES,
    Receipt,
    StreamReceipt,
    StreamStatus,
)

KEPT_DIGESTS = 8
OPEN_GAPS = 512  # a thousand batches at once, every second one at a worker that hangs: AGG-26
LAST_BATCH = 1 << 31  # of a series
_TOP = (1 << 32) - 1
DIGEST_BYTES = 8
DIGEST = struct.Struct(f"<I{DIGEST_BYTES}s")  # batch, digest


class Outcome(StrEnum):
    """What becomes of one batch."""

    NEW = "new"
    LATE = "late"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"  # a batch number seen before, with other bytes
    SLOTS = "slots"  # its slots do not fit between its neighbours': settled, never counted
    OUTRUN = "outrun"  # numbered as no device can have come to it: neither counted nor settled
    SERIES = "series"  # of a closed or unknown series, and not after all slots: neither, too
    GAP_LIMIT = "gap_limit"  # would open one gap too many: neither counted nor settled

    @property
    def settles(self) -> bool:
        """Say whether the batch is covered by the receipt from now on, and was not before."""
        return self in (Outcome.NEW, Outcome.LATE, Outcome.SLOTS)


class Gap(NamedTuple):
    """Batches first..last are missing; slots counted below end at `after`, above start at `before`.

    `after` is -1 and `before` None where nothing was counted on that side.
    """

    first: int
    last: int
    after: int
    before: int | None

    def fits(self, batch: "ArrivedBatch") -> bool:
        """Say whether the batch's slots lie between the gap's neighbours."""
        return self.after < batch.first_slot and (
            self.before is None or batch.last_slot < self.before
        )


class ArrivedBatch(NamedTuple):
    """What settling needs to know of one frame; `counts` is False for a refused one."""

    number: int
    first_slot: int
    last_slot: int
    digest: bytes
    counts: bool = True
    series: int = 0


class ClosedSeries(NamedTuple):
    """What was settled of a series before the present one; fields as in DeviceState.

    The last gap is of all batches above `highest`.
    """

    series: int
    highest: int
    floor: int
    gaps: tuple[Gap, ...]
    digests: bytes


class DeviceState(NamedTuple):
    """Dedupe state of one device and stream; the default is that of a device never heard of.

    `floor`: batches below it were never made or given up, by the device's own status.
    `digests`: of the last 8 batches settled, oldest first, as DIGEST packs them. `series`: that all
    these are of, 0 for frames v1; `earlier`: the series before, oldest first.
    """

    highest: int = 0
    last_slot: int = -1
    floor: int = 0
    gaps: tuple[Gap, ...] = ()
    digests: bytes = b""
    series: int = 0
    earlier: tuple[ClosedSeries, ...] = ()

    def receipt(self, stream: int) -> StreamReceipt:
        """Return what a receipt tells of the present series."""
        return StreamReceipt(stream, *_told(self), self.series)

    def receipts(self, stream: int) -> list[StreamReceipt]:
        """Return this state's parts of the device's receipt, of its present series first."""
        earlier = [StreamReceipt(stream, *_told(one), one.series) for one in self.earlier]
        return [self.receipt(stream)._replace(last=self.last_slot), *earlier]


class Placed(NamedTuple):
    """Outcome of one batch, and the counted slots next to it: -1 and None where there are none."""

    outcome: Outcome
    after: int = -1
    before: int | None = None


def place(state: DeviceState, batch: ArrivedBatch) -> tuple[DeviceState, Placed]:
    """Settle one batch: return the new state and what became of the batch.

    Batches of one device that arrive together are placed in the order of their numbers. Cost: O(1)
    without gaps, else O(gaps). A batch is counted iff the outcome is new or late and it `counts`.
    """
    last = LAST_BATCH if batch.series else batch.last_slot + 1
    if not 1 <= batch.number <= last:
        return state, Placed(Outcome.OUTRUN)  # highest must not be driven to where none can follow
    if batch.series != state.series:
        return _place_elsewhere(state, batch)
    if batch.number > state.highest:
        return _place_above(state, batch)
    at = next((i for i, g in enumerate(state.gaps) if g.first <= batch.number <= g.last), None)
    if at is None:
        known = dict(DIGEST.iter_unpack(state.digests)).get(batch.number, batch.digest)
        same = known == batch.digest
        return state, Placed(Outcome.DUPLICATE if same else Outcome.CONFLICT)
    return _place_in_gap(state, batch, at)


def is_settled(state: DeviceState, batch: int, series: int = 0) -> bool:
    """Say whether a state covers a batch of a series.

    A batch that a flush counts was not covered before the flush and is covered after it: this tells
    whether the flush was committed.
    """
    found = _known(state, series)
    if found is None:
        return False
    in_gap = any(gap.first <= batch <= gap.last for gap in found.gaps)
    return batch <= found.highest and not in_gap


def close_gaps(state: DeviceState, status: StreamStatus) -> DeviceState:
    """Close the gap parts that the device says it never made or has given up.

    Only these close: what a device still keeps stays open until it comes. `floor` only rises. A
    word about another series than the present one closes nothing: it may be an old one.
    """
    if status.series != state.series:
        if state.highest or state.earlier:
            return state
        state = state._replace(series=status.series, floor=0)
    floor = max(state.floor, status.oldest)  # oldest >= first (messages.parse_status)
    kept = (g._replace(first=max(g.first, floor)) for g in state.gaps if g.last >= floor)
    return state._replace(floor=floor, gaps=tuple(kept))


def build_receipt(
    states: Iterable[tuple[int, DeviceState]],
    store: str = "",
    at_s: int = 0,
    device: str = "",
    refused: int = 0,
) -> Receipt:
    """Return the receipt of one device from its (stream, state) pairs; `refused`: its reports.

    Of version 1, which names no store, for a device that has sent frames v1 alone.
    """
    pairs = sorted(states, key=_stream)
    parts = tuple(part for stream, state in pairs for part in state.receipts(stream))
    if not store or not any(part.series for part in parts):
        return Receipt(tuple(part._replace(last=-1) for part in parts))
    return Receipt(parts, store, at_s, device, refused)


def _told(of: DeviceState | ClosedSeries) -> tuple[int, tuple[tuple[int, int], ...]]:
    """Return the highest batch and the gaps that a receipt holds: no more than MAX_GAPS.

    Where there are more it ends below the first that it does not tell: what was settled above is
    told by later ones.
    """
    below = [gap for gap in of.gaps if gap.first <= of.highest] if of.gaps else []
    more = below[MAX_GAPS:]
    gaps = tuple((gap.first, gap.last) for gap in below[:MAX_GAPS])
    return more[0].first - 1 if more else of.highest, gaps


def _known(state: DeviceState, series: int) -> DeviceState | ClosedSeries | None:
    if series == state.series:
        return state
    return next((one for one in state.earlier if one.series == series), None)


def _closing(state: DeviceState) -> ClosedSeries:
    """Return the present series as one that another follows: what is on its way still fits."""
    rest = Gap(state.highest + 1, _TOP, state.last_slot, None)
    return ClosedSeries(
        state.series, state.highest, state.floor, (*state.gaps, rest), state.digests
    )


def _place_elsewhere(state: DeviceState, batch: ArrivedBatch) -> tuple[DeviceState, Placed]:
    """Place a batch of another series than the present one: of an earlier one, or of a new one."""
    at = next((i for i, one in enumerate(state.earlier) if one.series == batch.series), None)
    if at is not None:
        return _place_earlier(state, batch, at)
    if batch.first_slot <= state.last_slot:
        return state, Placed(Outcome.SERIES)
    earlier = (*state.earlier, _closing(state)) if state.highest else state.earlier
    begun = DeviceState(0, state.last_slot, 0, (), b"", batch.series, earlier[-OLD_SERIES:])
    return _place_above(begun, batch)


def _place_earlier(state: DeviceState, batch: ArrivedBatch, at: int) -> tuple[DeviceState, Placed]:
    """Place a batch of the earlier series at a place; the slots of later series stay above it."""
    one = state.earlier[at]
    alone = DeviceState(_TOP, state.last_slot, one.floor, one.gaps, one.digests, one.series)
    moved, placed = place(alone, batch)
    if moved is alone:
        return state, placed
    highest = max(one.highest, batch.number)
    now = ClosedSeries(one.series, highest, one.floor, moved.gaps, moved.digests)
    before, after, gaps = state.earlier[:at], state.earlier[at + 1 :], state.gaps
    if batch.counts and placed.outcome is Outcome.LATE:
        before = tuple(_before(other, batch) for other in before)
        after = tuple(s._replace(gaps=_after(s.gaps, batch)) for s in after)
        gaps = _after(gaps, batch)
    earlier = (*before, now, *after)
    return state._replace(last_slot=moved.last_slot, gaps=gaps, earlier=earlier), placed


def _before(one: ClosedSeries, batch: ArrivedBatch) -> ClosedSeries:
    """Return a series whose gaps all end below a counted batch of a later series."""
    first = batch.first_slot
    if all(gap.before is not None and gap.before <= first for gap in one.gaps):
        return one
    gaps = [
        gap if gap.before is not None and gap.before <= first else gap._replace(before=first)
        for gap in one.gaps
    ]
    return one._replace(gaps=tuple(gaps))


def _after(gaps: tuple[Gap, ...], batch: ArrivedBatch) -> tuple[Gap, ...]:
    """Return gaps that all begin above a counted batch of an earlier series."""
    return tuple(gap._replace(after=max(gap.after, batch.last_slot)) for gap in gaps)


def _place_above(state: DeviceState, batch: ArrivedBatch) -> tuple[DeviceState, Placed]:
    first_missing = max(state.highest + 1, state.floor)
    gaps = state.gaps
    if first_missing < batch.number:
        if len(gaps) >= OPEN_GAPS:
            return state, Placed(Outcome.GAP_LIMIT)
        gaps = (*gaps, Gap(first_missing, batch.number - 1, state.last_slot, None))
    if batch.first_slot <= state.last_slot:
        return _moved(state, batch, gaps, counts=False), Placed(Outcome.SLOTS)
    placed = Placed(Outcome.NEW, state.last_slot)
    return _moved(state, batch, gaps, counts=batch.counts), placed


def _place_in_gap(state: DeviceState, batch: ArrivedBatch, at: int) -> tuple[DeviceState, Placed]:
    gap = state.gaps[at]
    parts = (
        gap._replace(last=batch.number - 1),
        gap._replace(first=batch.number + 1),
    )
    left = tuple(part for part in parts if part.first <= part.last)
    if len(state.gaps) - 1 + len(left) > OPEN_GAPS:
        return state, Placed(Outcome.GAP_LIMIT)
    gaps = (*state.gaps[:at], *left, *state.gaps[at + 1 :])
    fits = gap.fits(batch)
    moved = _moved(state, batch, gaps, counts=fits and batch.counts)
    late = Placed(Outcome.LATE, gap.after, gap.before)
    return moved, late if fits else Placed(Outcome.SLOTS)


def _moved(
    state: DeviceState, batch: ArrivedBatch, gaps: tuple[Gap, ...], *, counts: bool
) -> DeviceState:
    """Return the state after a batch; the slots of one that counts bound its neighbours'."""
    highest, last_slot, floor, _, digests, series, earlier = state
    number, _, last, digest, *_ = batch
    if counts:
        gaps = tuple([_bound(gap, batch) for gap in gaps]) if gaps else gaps
        earlier = tuple([_before(one, batch) for one in earlier]) if earlier else earlier
        last_slot = max(last_slot, last)
    digests = (digests + DIGEST.pack(number, digest))[-KEPT_DIGESTS * DIGEST.size :]
    return DeviceState(max(highest, number), last_slot, floor, gaps, digests, series, earlier)


def _bound(gap: Gap, batch: ArrivedBatch) -> Gap:
    """Return the gap beside a counted batch: the same one where that tells nothing new."""
    if gap.first > batch.number:
        return gap if gap.after >= batch.last_slot else gap._replace(after=batch.last_slot)
    is_known = gap.before is not None and gap.before <= batch.first_slot
    return gap if is_known else gap._replace(before=batch.first_slot)


def _stream(pair: tuple[int, DeviceState]) -> int:
    return pair[0]
