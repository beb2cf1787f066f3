"""Who reported in a cell of counts: enough hashes of devices' names to tell a crowd, and no more.

A cell is withheld by how many devices' reports are in it, so that many have to be known, exactly,
however cells are united: hours to days, the hours of a month, groups. Streams and surveys are told
apart: a mean is of the former, a density of the latter. From ENOUGH devices on only that stands.
Two names with one hash count as one, which withholds more, not less. Where a store does not know
(cells from before it kept this), nobody is named, and a figure's own reports bound how few devices
they can be of (`at_least`).

A set is two bytes, how many hashes of streams and of surveys follow, and these (u32, little-endian,
rising); after a count of ENOUGH there are none. Nobody at all is b"".
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from edge_ldp.arrays import Ints
from edge_ldp.errors import RowError

ENOUGH = 64  # a crowd that need not be counted further
NOBODY = b""
STREAMS = 0
KINDS = (STREAMS, 1)
_CROWD = range(ENOUGH)
_HEAD = struct.Struct("BB")


@lru_cache(1 << 17)
def hash_of(device: str) -> int:
    """Return what stands for a device: the first 32 bits of its name's SHA-256.

    Without a key: whoever reads the store reads the names, too, and an archive gives the same.
    """
    return int.from_bytes(sha256(device.encode()).digest()[:4], "big")


def pack_reporters(streams: Sequence[int], surveys: Sequence[int]) -> bytes:
    """Return the set of these hashes, which differ and rise in each kind."""
    if not (streams or surveys):
        return NOBODY
    told = [
        *(streams if len(streams) < ENOUGH else ()),
        *(surveys if len(surveys) < ENOUGH else ()),
    ]
    head = min(len(streams), ENOUGH), min(len(surveys), ENOUGH)
    return struct.pack(f"<BB{len(told)}I", *head, *told)


def unpack_reporters(blob: bytes) -> tuple[set[int] | None, set[int] | None]:
    """Return the hashes of a set's streams and surveys, None: of ENOUGH; raises RowError."""
    if not blob:
        return set(), set()
    streams, surveys = _HEAD.unpack_from(blob) if len(blob) >= _HEAD.size else (ENOUGH + 1, 0)
    first, second = (size % ENOUGH for size in (streams, surveys))
    told = first + second
    if max(streams, surveys) > ENOUGH or len(blob) != _HEAD.size + 4 * told:
        raise RowError("a bucket's reporters do not parse")
    hashes = struct.unpack_from(f"<{told}I", blob, _HEAD.size)
    return (
        None if streams == ENOUGH else set(hashes[:first]),
        None if surveys == ENOUGH else set(hashes[first:]),
    )


def united(blobs: Iterable[bytes]) -> bytes:
    """Return the set of whoever is in any of these; raises RowError."""
    different = {*blobs} - {NOBODY}
    if len(different) < 2:  # noqa: PLR2004 (nothing to unite)
        return next(iter(different), NOBODY)
    sums: list[set[int] | None] = [set(), set()]
    for blob in different:
        for kind, found in enumerate(unpack_reporters(blob)):
            so_far = sums[kind]
            if so_far is not None:
                sums[kind] = None if found is None else _capped(so_far | found)
        if sums == [None, None]:
            break
    return pack_reporters(*(_CROWD if one is None else sorted(one) for one in sums))


def less(blob: bytes, devices: Iterable[str]) -> bytes:
    """Return the set without these devices; raises RowError.

    Of a kind with ENOUGH nobody is named, so nobody is known to be left: its reports bound how few.
    """
    gone = {hash_of(device) for device in devices}
    kinds = unpack_reporters(blob)
    return pack_reporters(*(() if one is None else sorted(one - gone) for one in kinds))


def renamed(blob: bytes, old: int, new: int) -> bytes:
    """Return the set in which another hash stands for who has `old`; raises RowError."""
    if old not in {hashed for one in unpack_reporters(blob) for hashed in one or ()}:
        return blob
    kinds = [
        _CROWD if one is None else sorted({new if hashed == old else hashed for hashed in one})
        for one in unpack_reporters(blob)
    ]
    return pack_reporters(*kinds)


def at_least(blob: bytes, kind: int) -> int:
    """Return how many devices reported at least: exact below ENOUGH; O(1)."""
    return blob[kind] if blob else 0


def reporters_of(
    cells: Ints, owners: Ints, surveys: NDArray[np.bool_], devices: Sequence[str]
) -> Mapping[int, bytes]:
    """Return who reported by cell, of reports in columns: cell, place in `devices`, whether survey.

    Cells times devices are below 2**62. Cost: one sort.
    """
    bits = len(devices).bit_length()
    keys = np.sort((cells << 1 | surveys) << bits | owners)
    keys = keys[np.append(True, keys[1:] != keys[:-1])]
    begins = np.flatnonzero(np.diff(keys >> bits, prepend=-1))
    kinds = (keys[begins] >> bits).tolist()
    ends = [*begins[1:].tolist(), len(keys)]
    hashes = np.array([hash_of(device) for device in devices])
    who = hashes[keys & (1 << bits) - 1]
    found: dict[int, list[Sequence[int]]] = {}
    for key, begin, end in zip(kinds, begins.tolist(), ends, strict=True):
        is_full = end - begin >= ENOUGH
        named = _CROWD if is_full else sorted({*who[begin:end].tolist()})
        found.setdefault(key >> 1, [(), ()])[key & 1] = named
    return {cell: pack_reporters(*both) for cell, both in found.items()}


def of_device(device: str, codes: Ints, surveys_from: int) -> bytes:
    """Return the set of a device that reported these codes; `surveys_from`: its plan's."""
    who = [hash_of(device)]
    surveys = codes >= surveys_from
    return pack_reporters([] if surveys.all() else who, who if surveys.any() else [])


def _capped(hashes: set[int]) -> set[int] | None:
    return hashes if len(hashes) < ENOUGH else None
