"""Reading curated streams from a store, for `edge-ldp aggregator released` and beside `status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aggregator.answers.curated_sums import ChunkFacts, Value
from edge_ldp.protocol.released import read_design

if TYPE_CHECKING:
    from aggregator.store.contract import Reader
    from edge_ldp.protocol.released import PublicDesign


class CuratedStream(NamedTuple):
    """One device's curated stream: its key from 256, every chunk's facts, newest design."""

    device: str
    key: int
    chunks: dict[tuple[int, int], ChunkFacts]
    design: PublicDesign


def read_streams(reader: Reader) -> list[CuratedStream]:
    """Return every curated stream that the store holds, by device and key."""
    found: dict[tuple[str, int], dict[tuple[int, int], ChunkFacts]] = {}
    designs: dict[bytes, PublicDesign] = {}
    for row in reader.released_chunks():
        if row.design not in designs:
            designs[row.design] = read_design(row.design)
        facts = ChunkFacts(row.theta, designs[row.design])
        found.setdefault((row.device, row.key), {})[row.series, row.chunk] = facts
    return [
        CuratedStream(*whose, chunks, chunks[max(chunks)].design) for whose, chunks in found.items()
    ]


def read_values(reader: Reader, device: str, key: int, first: int, end: int) -> list[Value]:
    """Return the released values of slots first … end-1 in rising slots."""
    return [Value(*row) for row in reader.released_values(device, key, first, end)]


def read_span(reader: Reader, device: str, key: int) -> tuple[int, int]:
    """Return the first slot that has a value, and the one after the last."""
    return reader.released_span(device, key)
