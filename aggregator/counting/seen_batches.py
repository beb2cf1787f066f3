"""What was settled of one device and stream, in bounded memory, so that nothing counts twice.

Per (device, stream): the highest batch settled, the last slot counted, at most 512 open gaps, of
which a receipt tells the lowest 64. A batch above the highest is new and its slots must lie above
the last slot; one inside a gap must fit the gap's slot bounds; any other was settled before.
Settled means counted, or rejected for good by `refusals`: a rejected batch moves the batch numbers,
never the slots, so a device whose clock ran away is not locked out by it. Source: docs/design.md,
Messages, The aggregator; docs/faults.md, REP-04..06, AGG-19, AGG-26.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from edge_ldp.protocol.messages import MAX_GAPS, Receipt, StreamReceipt, StreamStatus

KEPT_DIGESTS = 8
OPEN_GAPS = 512  # a thousand batches at once, every second one at a worker that hangs: AGG-26
DIGEST = struct.Struct("<I8s")  # batch, digest


class Outcome(StrEnum):
    """What becomes of one batch."""

    NEW = "new"
    LATE = "late"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"  # a batch number seen before, with other bytes
    SLOTS = "slots"  # its slots do not fit between its neighbours': settled, never counted
    OUTRUN = "outrun"  # more batches than slots since 1970: neither counted nor settled
    GAP_LIMIT = "gap_limit"  # would open one gap too many: neither counted nor settled

    @property
    def settles(self) -> bool:
        """Say whether the batch is covered by the receipt from now on, and was not before."""
        return self in (Outcome.NEW, Outcome.LATE, Outcome.SLOTS)


@dataclass(frozen=True, slots=True)
class Gap:
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


@dataclass(frozen=True, slots=True)
class ArrivedBatch:
    """What settling needs to know of one frame; `counts` is False for a refused one."""

    number: int
    first_slot: int
    last_slot: int
    digest: bytes
    counts: bool = True


@dataclass(frozen=True, slots=True)
class DeviceState:
    """Dedupe state of one device and stream; the default is that of a device never heard of.

    `floor`: batches below it were never made or given up, by the device's own status.
    `digests`: of the last 8 batches settled, oldest first, as DIGEST packs them.
    """

    highest: int = 0
    last_slot: int = -1
    floor: int = 0
    gaps: tuple[Gap, ...] = ()
    digests: bytes = b""

    def receipt(self, stream: int) -> StreamReceipt:
        """Return this state's part of the device's receipt, which holds no more than MAX_GAPS.

        Where there are more it ends below the first that it does not tell: what was settled above
        is told by later ones.
        """
        gaps = tuple((gap.first, gap.last) for gap in self.gaps[:MAX_GAPS])
        more = self.gaps[MAX_GAPS:]
        return StreamReceipt(stream, more[0].first - 1 if more else self.highest, gaps)


@dataclass(frozen=True, slots=True)
class Placed:
    """Outcome of one batch, and the counted slots next to it: -1 and None where there are none."""

    outcome: Outcome
    after: int = -1
    before: int | None = None


def place(state: DeviceState, batch: ArrivedBatch) -> tuple[DeviceState, Placed]:
    """Settle one batch: return the new state and what became of the batch.

    Batches of one device that arrive together are placed in the order of their numbers. Cost: O(1)
    without gaps, else O(gaps). A batch is counted iff the outcome is new or late and it `counts`.
    """
    if batch.number < 1 or batch.number > batch.last_slot + 1:
        return state, Placed(Outcome.OUTRUN)  # highest must not be driven to where none can follow
    if batch.number > state.highest:
        return _place_above(state, batch)
    at = next((i for i, g in enumerate(state.gaps) if g.first <= batch.number <= g.last), None)
    if at is None:
        known = dict(DIGEST.iter_unpack(state.digests)).get(batch.number, batch.digest)
        same = known == batch.digest
        return state, Placed(Outcome.DUPLICATE if same else Outcome.CONFLICT)
    return _place_in_gap(state, batch, at)


def is_settled(state: DeviceState, batch: int) -> bool:
    """Say whether a state covers a batch.

    A batch that a flush counts was not covered before the flush and is covered after it: this tells
    whether the flush was committed.
    """
    in_gap = any(gap.first <= batch <= gap.last for gap in state.gaps)
    return batch <= state.highest and not in_gap


def close_gaps(state: DeviceState, status: StreamStatus) -> DeviceState:
    """Close the gap parts that the device says it never made or has given up.

    Only these close: what a device still keeps stays open until it comes. `floor` only rises.
    """
    floor = max(state.floor, status.oldest)  # oldest >= first (messages.parse_status)
    kept = (replace(g, first=max(g.first, floor)) for g in state.gaps if g.last >= floor)
    return replace(state, floor=floor, gaps=tuple(kept))


def build_receipt(states: Iterable[tuple[int, DeviceState]]) -> Receipt:
    """Return the receipt of one device from its (stream, state) pairs."""
    return Receipt(tuple(state.receipt(stream) for stream, state in sorted(states, key=_stream)))


def _place_above(state: DeviceState, batch: ArrivedBatch) -> tuple[DeviceState, Placed]:
    first_missing = max(state.highest + 1, state.floor)
    gaps = state.gaps
    if first_missing < batch.number:
        if len(gaps) >= OPEN_GAPS:
            return state, Placed(Outcome.GAP_LIMIT)
        gaps = (*gaps, Gap(first_missing, batch.number - 1, state.last_slot, None))
    fits = batch.first_slot > state.last_slot
    moved = _moved(state, batch, gaps, counts=fits and batch.counts)
    return moved, Placed(Outcome.NEW, state.last_slot) if fits else Placed(Outcome.SLOTS)


def _place_in_gap(state: DeviceState, batch: ArrivedBatch, at: int) -> tuple[DeviceState, Placed]:
    gap = state.gaps[at]
    parts = (
        replace(gap, last=batch.number - 1),
        replace(gap, first=batch.number + 1),
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
    last_slot = state.last_slot
    if counts:
        gaps = tuple([_bound(gap, batch) for gap in gaps])
        last_slot = max(last_slot, batch.last_slot)
    digests = state.digests + DIGEST.pack(batch.number, batch.digest)
    digests = digests[-KEPT_DIGESTS * DIGEST.size :]
    return DeviceState(max(state.highest, batch.number), last_slot, state.floor, gaps, digests)


def _bound(gap: Gap, batch: ArrivedBatch) -> Gap:
    """Return the gap beside a counted batch: the same one where that tells nothing new."""
    if gap.first > batch.number:
        return gap if gap.after >= batch.last_slot else replace(gap, after=batch.last_slot)
    is_known = gap.before is not None and gap.before <= batch.first_slot
    return gap if is_known else replace(gap, before=batch.first_slot)


def _stream(pair: tuple[int, DeviceState]) -> int:
    return pair[0]
