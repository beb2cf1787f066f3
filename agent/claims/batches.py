"""Batches: how waiting reports are packed.

A batch is numbered and its bytes are fixed when it is packed; every sending is bit for bit the
same. It is kept until the aggregator's receipt covers it (`agent.claims.delivery`).
Source: docs/design.md, Values and reports, Messages.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from agent.claims.pipeline import Report
from edge_ldp.device.frame import HEAD_BYTES, MAX_OFFSET, MAX_REPORTS, PAIR_BYTES, encode


class Key(NamedTuple):
    """Which batch of which stream."""

    stream: int
    number: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A packed batch: its bytes never change again."""

    key: Key
    payload: bytes
    last_slot: int
    reports: int


def pack(
    reports: Sequence[Report], following: dict[int, int], most: int = MAX_REPORTS
) -> list[Batch]:
    """Return the batches that carry these reports, numbered from `following[stream]` on.

    Reports come in rising slots per stream; each plan epoch has its own batches of at most `most`
    reports within 65,535 slots.
    """
    batches: list[Batch] = []
    numbers = dict(following)
    for stream, of_stream in groupby(sorted(reports), key=lambda report: report.stream):
        for run in _runs(of_stream, most):
            number = numbers[stream]
            numbers[stream] = number + 1
            slots = [report.slot for report in run]
            payload = encode(stream, number, run[0].epoch, slots, [r.code for r in run])
            batches.append(Batch(Key(stream, number), payload, slots[-1], len(run)))
    return batches


def fitting(room_bytes: int) -> int:
    """Return how many reports a frame of so many bytes holds, at least one."""
    return max(1, min(MAX_REPORTS, (room_bytes - HEAD_BYTES) // PAIR_BYTES))


def _runs(reports: Iterable[Report], most: int) -> Iterable[list[Report]]:
    run: list[Report] = []
    for report in reports:
        if run and (
            report.epoch != run[0].epoch
            or len(run) == most
            or report.slot - run[0].slot > MAX_OFFSET
        ):
            yield run
            run = []
        run.append(report)
    if run:
        yield run
