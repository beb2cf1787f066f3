"""What receipts tell of this state's batches, and whether it is an older copy of itself.

Batches are numbered and stored before they are sent. So a receipt for a batch of our own series
that this state never made shows that another copy of it went on: a restored disk image, or a clone
that runs elsewhere. So does a slot counted under a series that is not ours while this state already
reported, and what the device said of itself, retained, if it tells of batches or reports not made
here. Whether such a word is proof depends on who may forge it (`agent.state.copies`).
Source: docs/faults.md, AGT-25, NET-24; docs/adr/0027-series.md; docs/privacy.md.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agent.claims.batches import BatchSeries
from edge_ldp.protocol.messages import Receipt, StreamReceipt, StreamStatus


class Told(NamedTuple):
    """Somebody told that batches up to `highest` of a series were received; ours made fewer.

    `is_settled`: it was acted upon, so it is no news.
    """

    stream: int
    series: int
    highest: int
    is_settled: bool = False


class ReportingLife(NamedTuple):
    """When this state reported: from `begun` on, up to its last slot `until`; it is slot `now`."""

    begun: int
    until: int
    now: int


def news_of_copies(
    receipt: Receipt, own: Iterable[BatchSeries], told: Iterable[Told], life: ReportingLife
) -> list[Told]:
    """Return what a receipt knows that this state did not make and was not told of before."""
    made = {(one.stream, one.series): one.made for one in own}
    for one in told:
        key = one.stream, one.series
        made[key] = max(made.get(key, 0), one.highest)
    return [
        Told(one.stream, one.series, one.highest)
        for one in receipt.streams
        if _is_news(one, made.get((one.stream, one.series)), life)
    ]


def _is_news(one: StreamReceipt, made: int | None, life: ReportingLife) -> bool:
    if made is not None and one.highest > made:
        return True
    # of a series that this state never had, which an earlier state may have: then its slots ended
    is_foreign = made is None and max(life.begun, life.until + 1) <= one.last
    return is_foreign and one.last <= life.now


def denied(receipt: Receipt, told: Iterable[Told], own: Iterable[BatchSeries]) -> list[Told]:
    """Return what a receipt shows not to be so: an aggregator's numbers never fall."""
    made = {(one.stream, one.series): one.made for one in own}
    heard = {(one.stream, one.series): one.highest for one in receipt.streams}
    return [
        one
        for one in told
        if not one.is_settled
        and heard.get(one[:2], 0) <= made.get(one[:2], max(0, one.highest - 1))
    ]


def as_kept(receipt: Receipt, own: Sequence[BatchSeries]) -> Receipt:
    """Return a receipt in this state's own numbers, of its own series, of what it really made.

    A series with numbers that this state never made is left out: whose they are is not known.
    """
    heard = {(one.stream, one.series): one for one in receipt.streams}
    found = []
    for of in own:
        one = heard.get((of.stream, of.series))
        if one is None or one.highest > of.made:
            continue
        gaps = tuple((of.base + first, of.base + last) for first, last in one.gaps)
        below = ((0, of.base),) if of.base else ()
        found.append(StreamReceipt(of.stream, of.base + one.highest, (*below, *gaps)))
    return Receipt(tuple(found), receipt.store)


def told_by(streams: Iterable[StreamStatus]) -> Receipt:
    """Return the batches that a device said it had made, as a receipt would name them."""
    return Receipt(
        tuple(StreamReceipt(one.stream, one.next - 1, series=one.series) for one in streams)
    )


def made_more(published: Iterable[StreamStatus], own: Iterable[StreamStatus]) -> list[Told]:
    """Return streams of which more reports were told than this state made, in the same account."""
    made = {(one.stream, one.begun): one.created for one in own}
    return [
        Told(one.stream, one.series, one.next - 1)
        for one in published
        if one.created > made.get((one.stream, one.begun), one.created)
    ]
