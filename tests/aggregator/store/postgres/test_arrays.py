"""Arrays encoded at once are those that the server reads; blobs joined are cut where they were."""

import pytest

from aggregator.store.postgres.arrays import bigints, blobs, split_blobs, texts
from aggregator.store.postgres.link import connect
from tests.postgres import PostgresServer

UNNEST = b"""SELECT array_agg(a), array_agg(b), array_agg(c)
    FROM unnest(%b::text[], %b::integer[], %b::bytea[]) AS x(a, b, c)"""


@pytest.mark.parametrize("size", [0, 1, 3])
def test_the_server_reads_arrays_as_they_were(server: PostgresServer, size: int) -> None:
    names = ["home-1", "", "zähler"][:size]
    numbers, parts = [0, -1, 1 << 30][:size], [b"\n\x00", b"", b"\xff"][:size]
    with connect(server.url("postgres"), None) as db:
        given = texts(names), bigints(numbers), blobs(parts)
        found = db.execute(UNNEST, given, binary=True).fetchone()
    assert found == ((names, numbers, parts) if size else (None, None, None))


def test_joined_blobs_come_apart() -> None:
    assert split_blobs(b"abcd", "1 0 3") == [b"a", b"", b"bcd"]
