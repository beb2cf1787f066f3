"""Reading curated streams from a store, for `edge-ldp aggregator released` and beside `status`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aggregator.released_sums import ChunkFacts, Value
from aggregator.shell import released_schema
from edge_ldp.released import FIRST_KEY, read_design

if TYPE_CHECKING:
    from aggregator.records import Record
    from aggregator.shell.sqlite_reader import SqliteReader
    from edge_ldp.released import PublicDesign


class Found(NamedTuple):
    """One device's curated stream: its key from 256, every chunk's facts, newest design."""

    device: str
    key: int
    chunks: dict[tuple[int, int], ChunkFacts]
    design: PublicDesign


def read_streams(reader: SqliteReader) -> list[Found]:
    """Return every curated stream that the store holds, by device and key."""
    query = """SELECT device, stream, series, chunk, theta, released_designs.design
        FROM released_chunks JOIN released_designs ON released_chunks.design = released_designs.id
        ORDER BY 1, 2, 3, 4"""
    found: dict[tuple[str, int], dict[tuple[int, int], ChunkFacts]] = {}
    designs: dict[bytes, PublicDesign] = {}
    with reader.reading() as db:
        if not released_schema.exist(db):
            return []
        for device, key, series, chunk, theta, block in db.execute(query):
            if block not in designs:
                designs[block] = read_design(block)
            facts = ChunkFacts(theta, designs[block])
            found.setdefault((device, key), {})[series, chunk] = facts
    return [Found(*whose, chunks, chunks[max(chunks)].design) for whose, chunks in found.items()]


def read_values(reader: SqliteReader, device: str, key: int, first: int, end: int) -> list[Value]:
    """Return the released values of slots first … end-1 in rising slots."""
    query = """SELECT slot, series, position, value FROM released_values
        WHERE device = ? AND stream = ? AND slot >= ? AND slot < ? ORDER BY slot"""
    with reader.reading() as db:
        return [Value(*row) for row in db.execute(query, (device, key, first, end))]


def read_span(reader: SqliteReader, device: str, key: int) -> tuple[int, int]:
    """Return the first slot that has a value, and the one after the last."""
    query = "SELECT min(slot), max(slot) + 1 FROM released_values WHERE device = ? AND stream = ?"
    with reader.reading() as db:
        first, end = db.execute(query, (device, key)).fetchone()
    return int(first), int(end)


def account_of(device: str, key: int, record: Record) -> dict[str, Any]:
    """Return what became of a curated stream's values, as in `status`."""
    return {
        "device": device,
        "number": key - FIRST_KEY,
        "created": record.counted + record.rejected + record.expired + record.pending,
        "counted": record.counted,
        "rejected": record.rejected,
        "expired": record.expired,
        "pending": record.pending,
        "duplicates": record.duplicates,
        "conflicts": record.conflicts,
        "highest_batch": record.state.highest,
        "gaps": [[gap.first, gap.last] for gap in record.state.gaps],
    }
