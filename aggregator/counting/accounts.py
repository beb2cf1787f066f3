"""How the account of a device and stream follows from its frames and from what it says of itself.

Created = counted + rejected + expired + pending, at every moment. Source: docs/design.md, Messages,
The aggregator.
"""

from aggregator.counting.records import Record
from aggregator.counting.seen_batches import ArrivedBatch, DeviceState, Outcome, close_gaps
from edge_ldp.protocol.messages import StreamStatus

SLACK_S = 2 * 86_400


def is_plausible(status: StreamStatus, slot_seconds: int, now_s: float) -> bool:
    """Say whether a device can have made what it says: at most a report a slot, ever.

    A state tells the slot in which its account began, or an earlier one; clocks of devices may be
    ahead by SLACK_S. What is not plausible would stand in everybody's totals.
    """
    slots = int(now_s + SLACK_S) // slot_seconds
    since = status.begun if status.begun <= slots else 0
    return max(status.created, status.expired) <= slots - since + 1


def with_status(old: Record, status: StreamStatus) -> Record:
    """Return the record with what its device says of the stream.

    Nothing is taken from an old word of a state that is gone (a broker's that lost the newer one),
    and no account of a new state whose later batches came before this word: the next one has it.
    """
    if status.begun < old.first:
        return old
    state = close_gaps(old.state, status)
    is_new = 0 < old.first < status.begun
    if is_new and state.series == status.series and state.highest >= status.next:
        return old._replace(state=state)
    return old._replace(
        state=state,
        created=status.created,
        expired=status.expired,
        first=status.begun,
        next=status.next,
        before=_before(old, status, is_new=is_new),
    )


def _before(old: Record, status: StreamStatus, *, is_new: bool) -> int:
    """Return what was settled under states that the device lost; `status` is of the present one."""
    settled, highest = old.counted + old.rejected, old.state.highest
    if is_new and (highest < status.first or old.state.series != status.series):
        return settled
    if (is_new or old.before) and old.state.series == status.series and highest < status.next:
        # batches of a new state came before its first word: whatever it did not make is older
        return max(old.before, settled + status.expired - status.created)
    return old.before


def account(
    record: Record, state: DeviceState, outcome: Outcome, batch: ArrivedBatch, reports: int
) -> Record:
    """Return the record with its new state and one frame's reports put where they belong."""
    if outcome in (Outcome.NEW, Outcome.LATE) and batch.counts:
        lowest = batch.first_slot if record.first_slot is None else record.first_slot
        lowest = min(lowest, batch.first_slot)
        return record._replace(state=state, first_slot=lowest, counted=record.counted + reports)
    if outcome.settles:
        return record._replace(state=state, rejected=record.rejected + reports)
    if outcome is Outcome.CONFLICT:
        return record._replace(state=state, conflicts=record.conflicts + reports)
    if outcome is Outcome.DUPLICATE:
        return record._replace(state=state, duplicates=record.duplicates + reports)
    return record._replace(state=state)
