"""The same draws over arrays: from the same bytes the same codes as the scalar kernel.

The only module of the library that needs NumPy, and the agent never imports it. Words are consumed
report by report in the scalar order (branch coin, rounding, channel); a rejected word is handled by
the scalar kernel, so no byte is used differently. Source: DESIGN §4.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device import frame
from edge_ldp.device.draw import WORD_BYTES, WORD_RANGE, Draw, limit_of
from edge_ldp.device.errors import EntropyError, ParameterError, WireError
from edge_ldp.device.randomizer import BUCKETS, Randomizer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.device.channel import Wave
    from edge_ldp.device.draw import Entropy
    from edge_ldp.mechanisms import Mechanism

    Ints = NDArray[np.int64]
    Words = NDArray[np.uint64]

_CHUNK = 1 << 16  # reports at a time: bounds memory at about 10 MB
_MAX_PRODUCT = 1 << 62  # (value − low)·(size − 1) must fit an int64


def perturb_many(
    mechanism: Mechanism, values: ArrayLike, *, entropy: Entropy | None = None
) -> Ints:
    """Return one code for each value (integers, unit of the stream), shape as given, flat.

    `entropy(size) -> bytes` is the operating system's unless given. Cost: O(n), at most 2^16
    reports' words in memory. Raises ParameterError for values that are not integers.
    """
    given = np.asarray(values)
    if given.dtype.kind not in "iu":
        raise ParameterError("values", "an array of integers in the stream's unit")
    r = mechanism.randomizer
    if max((r.high - r.low) * mechanism.size, abs(r.low), abs(r.high)) >= _MAX_PRODUCT:
        raise ParameterError("high", "(high - low) * size, low and high within 2**62")
    if given.dtype == np.uint64:  # casting would wrap
        given = np.minimum(given, np.uint64(_MAX_PRODUCT))
    clamped = np.clip(given.ravel().astype(np.int64), r.low, r.high)
    words = _Words(entropy or os.urandom)
    parts = [_perturb(r, clamped[at : at + _CHUNK], words) for at in range(0, len(clamped), _CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def draw_many(n: int, count: int, *, entropy: Entropy | None = None) -> Ints:
    """Return `count` uniform integers in 0..n-1, as `count` calls of the scalar draw would.

    Raises ParameterError unless 1 ≤ n ≤ 2**63.
    """
    if not 1 <= n <= 1 << 63:
        raise ParameterError("n", "1..2**63")
    words = _Words(entropy or os.urandom)
    drawn = words.take(count)
    refused = _refused(drawn, n)
    while refused.any():
        kept = drawn[~refused]
        drawn = np.concatenate([kept, words.take(count - len(kept))])
        refused = _refused(drawn, n)
    return (drawn % np.uint64(n)).astype(np.int64)


def decode_table(mechanism: Mechanism) -> NDArray[np.float64]:
    """Return `decode(code)` for every code, length code_count, unit of the stream."""
    return np.array([mechanism.decode(code) for code in range(mechanism.code_count)])


def decode_many(mechanism: Mechanism, codes: ArrayLike) -> NDArray[np.float64]:
    """Return the unbiased estimate of each code, unit of the stream; raises ParameterError."""
    given = np.asarray(codes)
    if given.size and not 0 <= given.min() <= given.max() < mechanism.code_count:
        raise ParameterError("codes", f"0..{mechanism.code_count - 1}")
    return np.take(decode_table(mechanism), given)


def frame_arrays(payload: bytes) -> tuple[frame.Header, Ints, Ints]:
    """Return (header, slots, codes) of a frame; raises WireError as `frame.decode` does."""
    head = frame.decode_header(payload)
    pairs = np.frombuffer(payload, "<u2", offset=frame.HEAD_BYTES).reshape(-1, 2).astype(np.int64)
    offsets = pairs[:, 0]
    slots = offsets + head.first_slot
    if offsets[0] or (np.diff(offsets) <= 0).any() or slots[-1] >= 1 << 32:
        frame.decode(payload)  # raises, naming the byte
        raise WireError("order", frame.HEAD_BYTES)
    return head, slots, pairs[:, 1]


def encode_frame(stream: int, batch: int, epoch: int, slots: Ints, codes: Ints) -> bytes:
    """Return the bytes that `frame.encode` gives for the same batch, or raise what it raises."""
    if not 1 <= len(slots) <= frame.MAX_REPORTS or len(codes) != len(slots) or slots[-1] >> 32:
        return frame.encode(stream, batch, epoch, slots.tolist(), codes.tolist())  # raises
    pairs = np.stack([slots - slots[0], codes], axis=1)
    if pairs.min() < 0 or pairs.max() > frame.MAX_OFFSET or (np.diff(slots) <= 0).any():
        return frame.encode(stream, batch, epoch, slots.tolist(), codes.tolist())  # raises
    first = (int(slots[0]), int(codes[0]))
    head = frame.encode(stream, batch, epoch, first[:1], first[1:])[: frame.HEAD_BYTES - 2]
    return head + struct.pack("<H", len(slots)) + pairs.astype("<u2").tobytes()


class _Words:
    """Words of the entropy stream in order, with some put back."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._held = b""

    def take(self, count: int) -> Words:
        """Return the next `count` words."""
        return np.frombuffer(self.read(count * WORD_BYTES), "<u8")

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        missing = size - len(self._held)
        if missing > 0:
            fresh = self._entropy(missing)
            if len(fresh) != missing:
                raise EntropyError("the entropy source gave fewer bytes than asked for")
            self._held += fresh
        taken, self._held = self._held[:size], self._held[size:]
        return taken

    def put_back(self, words: Words) -> None:
        """Return unused words to the front of the stream."""
        self._held = words.tobytes() + self._held


def _perturb(r: Randomizer, values: Ints, words: _Words) -> Ints:
    width = len(r.waves) - 1 + (r.encoder != BUCKETS) + 1
    done: list[Ints] = []
    while len(values):
        drawn = words.take(width * len(values))
        codes, refused = _try_perturb(r, values, drawn.reshape(-1, width))
        if not refused.any():
            done.append(codes)
            break
        bad = int(np.argmax(refused))
        words.put_back(drawn[bad * width :])
        scalar = Draw(words.read, block_words=1)
        done += [codes[:bad], np.array([r.perturb(int(values[bad]), scalar)], np.int64)]
        values = values[bad + 1 :]
    return np.concatenate(done)


def _try_perturb(r: Randomizer, values: Ints, words: Words) -> tuple[Ints, NDArray[np.bool_]]:
    """Return (codes, rows with a refused word); codes of such rows mean nothing."""
    if len(r.waves) == 1:
        return _try_wave(r, r.waves[0], values, words)
    num, den = r.coin
    refused = _refused(words[:, 0], den)
    second = words[:, 0] % np.uint64(den) >= np.uint64(num)
    codes = np.empty(len(values), np.int64)
    for wave, offset, chosen in (
        (r.waves[0], 0, ~second),
        (r.waves[1], r.waves[0].code_count, second),
    ):
        part, part_refused = _try_wave(r, wave, values[chosen], words[chosen, 1:])
        codes[chosen] = part + offset
        refused[chosen] |= part_refused
    return codes, refused


def _try_wave(
    r: Randomizer, wave: Wave, values: Ints, words: Words
) -> tuple[Ints, NDArray[np.bool_]]:
    span = r.high - r.low
    refused = _refused(words[:, -1], wave.total)
    if r.encoder == BUCKETS:
        index = (values - r.low) * wave.d // (span + 1)
    else:
        index, rest = np.divmod((values - r.low) * (wave.d - 1), span)
        index += (words[:, 0] % np.uint64(span)).astype(np.int64) < rest
        refused |= _refused(words[:, 0], span)
    u = words[:, -1] % np.uint64(wave.total)
    near = np.uint64(wave.near_total)
    is_near = u < near
    # uint64 wraps below; only the rows of the right kind are used
    far = ((u - near) // np.uint64(wave.r_den)).astype(np.int64)
    far += np.where(far < index, 0, 2 * wave.c + 1)
    return np.where(is_near, index + (u // np.uint64(wave.r_num)).astype(np.int64), far), refused


def _refused(words: Words, n: int) -> NDArray[np.bool_]:
    limit = limit_of(n)
    if limit == WORD_RANGE:
        return np.zeros(words.shape, bool)
    return words >= np.uint64(limit)
