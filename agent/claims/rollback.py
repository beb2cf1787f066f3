"""Whether this state is an older copy of itself, told from what the aggregator has received.

Every batch is numbered and stored before it is sent. So a receipt for a batch that this state never
made proves that another copy of it went on: a restored disk image, or a clone that runs elsewhere.
So does what the device said of itself, retained, if it tells of batches or reports not made here.
Source: docs/faults.md, AGT-25; docs/privacy.md.
"""

from collections.abc import Iterable, Mapping

from edge_ldp.protocol.messages import Receipt, StreamReceipt, StreamStatus

LAST_BATCH = (1 << 32) - 1
ROOM = 1 << 24  # numbers that must be left, so that a forged receipt cannot use them up


def is_rolled_back(receipt: Receipt, following: Mapping[int, int], begun_slot: int) -> bool:
    """Say whether a receipt knows batches that this state did not make.

    following: the next batch number of each stream. A stream that this state never numbered counts
    if a batch was received whose number, which is never above its slots, is of a time when this
    state already reported: from `begun_slot` on.
    """
    return any(one.highest >= following.get(one.stream, begun_slot) for one in _plausible(receipt))


def told_by(streams: Iterable[StreamStatus]) -> Receipt:
    """Return the batches that a device said it had made, as a receipt would name them."""
    return Receipt(tuple(StreamReceipt(one.stream, one.next - 1) for one in streams))


def made_more(published: Iterable[StreamStatus], own: Iterable[StreamStatus]) -> bool:
    """Say whether more reports were told of than this state made, in a life that began alike."""
    made = {(one.stream, one.first): one.created for one in own}
    return any(one.created > made.get((one.stream, one.first), one.created) for one in published)


def numbers_after(
    receipt: Receipt, following: Mapping[int, int], slot: int, streams: Iterable[int]
) -> dict[int, int]:
    """Return the number of each stream's next batch, above all that any copy is known to have."""
    received = {one.stream: one.highest + 1 for one in _plausible(receipt)}
    return {
        stream: max(received.get(stream, 0), following.get(stream, 0), slot)
        for stream in {*streams, *received}
    }


def _plausible(receipt: Receipt) -> Iterable[StreamReceipt]:
    return (one for one in receipt.streams if one.highest <= LAST_BATCH - ROOM)
