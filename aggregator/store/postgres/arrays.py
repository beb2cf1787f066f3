"""Columns of many rows as PostgreSQL takes and gives them at once, not value by value.

psycopg encodes and decodes each value of each row by itself; of a flush that took longer than to
settle it. So whole arrays are sent, in their binary form, and what is asked for comes as one row:
texts joined by line ends, numbers by spaces, blobs one after the other with their sizes.
"""

import struct
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np
from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

_HEAD = struct.Struct(">iiIii")  # dimensions, nulls, type of elements, how many, the first's place
_SIZE = struct.Struct(">i")
_INTEGER = np.dtype([("size", ">i4"), ("value", ">i8")])


class _Array(bytes):
    __slots__ = ()


class _Texts(_Array):
    __slots__ = ()


class _Blobs(_Array):
    __slots__ = ()


class _Integers(_Array):
    __slots__ = ()


class _Whole(Dumper):
    format = Format.BINARY

    def dump(self, obj: _Array) -> bytes:
        return bytes(obj)


class _TextsDumper(_Whole):
    oid = 1009  # text[]


class _BlobsDumper(_Whole):
    oid = 1001  # bytea[]


class _IntegersDumper(_Whole):
    oid = 1016  # bigint[]


def learn(db: Connection[Any]) -> None:
    """Let a connection take what `texts`, `blobs` and `bigints` return."""
    db.adapters.register_dumper(_Texts, _TextsDumper)
    db.adapters.register_dumper(_Blobs, _BlobsDumper)
    db.adapters.register_dumper(_Integers, _IntegersDumper)


def texts(values: Sequence[str]) -> _Texts:
    """Return texts without line ends as an array."""
    return _Texts(_array(25, "\n".join(values).encode().split(b"\n") if values else []))


def blobs(values: Sequence[bytes]) -> _Blobs:
    """Return blobs as an array."""
    return _Blobs(_array(17, values))


def bigints(values: Sequence[int]) -> _Integers:
    """Return numbers of up to 8 bytes as an array."""
    rows = np.empty(len(values), _INTEGER)
    rows["size"], rows["value"] = 8, values
    return _Integers(_head(20, len(values)) + rows.tobytes())


def split_blobs(blob: bytes, sizes: str) -> list[bytes]:
    """Return blobs that are joined; `sizes`: of each, with spaces between."""
    ends = accumulate(map(int, sizes.split()), initial=0)
    return [blob[begin:end] for begin, end in pairwise(ends)]


def _array(oid: int, values: Sequence[bytes]) -> bytes:
    sizes = map(_SIZE.pack, map(len, values))
    pairs = chain.from_iterable(zip(sizes, values, strict=True))
    return b"".join([_head(oid, len(values)), *pairs])


def _head(oid: int, size: int) -> bytes:
    return _HEAD.pack(1, 0, oid, size, 1) if size else _HEAD.pack(0, 0, oid, 0, 0)[:12]
