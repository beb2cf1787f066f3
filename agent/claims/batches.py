"""Batches: how waiting reports are packed.

A batch is numbered and its bytes are fixed when it is packed; every sending is bit for bit the
same. It is kept until the aggregator's receipt covers it (`agent.claims.delivery`), under a number
of this state's own that only rises; on the wire numbers begin again with each series.
Source: docs/design.md, Values and reports, Messages; docs/adr/0027-series.md.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from agent.claims.pipeline import Report
from edge_ldp.device.frame import HEAD_BYTES, MAX_OFFSET, MAX_REPORTS, PAIR_BYTES, encode


class Key(NamedTuple):
    """Which batch of which stream, by this state's own number."""

    stream: int
    number: int


class Named(NamedTuple):
    """What a batch is called on the wire."""

    stream: int
    series: int
    number: int


class Numbering(NamedTuple):
    """How a stream's next batch is numbered: `following` is its own number, less `base` the wire's.

    `series` 0: the numbers of frames v1, which began with a slot; only states of older versions
    have them, and their next batch begins a series.
    """

    following: int = 1
    series: int = 0
    base: int = 0

    def begun(self, series: int) -> "Numbering":
        """Return the same at the beginning of another series: its next batch is number 1."""
        return Numbering(self.following, series, self.following - 1)


class BatchSeries(NamedTuple):
    """What a state knows of a series: its own numbers base + 1 .. last are 1, 2, 3 … on the wire.

    `slot_seconds`: how long the slots of its reports are, 0 where that is not known.
    """

    stream: int
    base: int
    series: int
    slot_seconds: int
    last: int

    @property
    def made(self) -> int:
        """The highest number that was given on the wire; 0: none."""
        return self.last - self.base


class Batch(NamedTuple):
    """A packed batch: its bytes never change again."""

    key: Key
    payload: bytes
    last_slot: int
    reports: int


def random_series(draw: Callable[[int], int]) -> int:
    """Return a number for a series that begins: 32 bits but 0; `draw(n)` is one of 0 to n − 1."""
    return 1 + draw((1 << 32) - 1)


def pack(
    reports: Sequence[Report], numbering: Mapping[int, Numbering], most: int = MAX_REPORTS
) -> list[Batch]:
    """Return the batches that carry these reports, numbered as `numbering[stream]` says.

    Reports come in rising slots per stream; each plan has its own batches of at most `most` reports
    within 65,535 slots.
    """
    batches: list[Batch] = []
    for stream, of_stream in groupby(sorted(reports), key=lambda report: report.stream):
        following, series, base = numbering[stream]
        for number, run in enumerate(_runs(of_stream, most), following):
            slots, codes = [r.slot for r in run], [r.code for r in run]
            tag = run[0].tag if series else 0
            payload = encode(stream, number - base, run[0].epoch, slots, codes, series, tag)
            batches.append(Batch(Key(stream, number), payload, slots[-1], len(run)))
    return batches


def fitting(room_bytes: int) -> int:
    """Return how many reports a frame of so many bytes holds, at least one."""
    return max(1, min(MAX_REPORTS, (room_bytes - HEAD_BYTES) // PAIR_BYTES))


def _runs(reports: Iterable[Report], most: int) -> Iterable[list[Report]]:
    run: list[Report] = []
    for report in reports:
        if run and (
            (report.epoch, report.tag) != (run[0].epoch, run[0].tag)
            or len(run) == most
            or report.slot - run[0].slot > MAX_OFFSET
        ):
            yield run
            run = []
        run.append(report)
    if run:
        yield run
