"""Perturb and decode arrays of values.

This package is the only part of the library that needs NumPy, and the agent never imports it. Words
are consumed report by report in the scalar order (branch coin, rounding, channel); a rejected word
is handled by the scalar kernel, so no byte is used differently. Source: docs/design.md, The kernel.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.checks import MECHANISM, integer_in, is_masked, taking
from edge_ldp.device.channel import Wave
from edge_ldp.device.draw import WORD_BYTES, WORD_RANGE, Draw, limit_of
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS, Randomizer
from edge_ldp.device.table import Profile, Table
from edge_ldp.entropy import Checked, read_source

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from edge_ldp.arrays import Floats, Ints, Truths, WordArray
    from edge_ldp.device.channel import Channel
    from edge_ldp.entropy import Entropy
    from edge_ldp.mechanisms import Mechanism

_CHUNK = 1 << 16  # reports at a time: bounds memory at about 10 MB
_MAX_PRODUCT = 1 << 62  # (value − low)·(size − 1) must fit an int64


@taking(mechanism=MECHANISM)
def perturb_many(
    mechanism: Mechanism, values: ArrayLike, *, entropy: Entropy | None = None
) -> Ints:
    """Return one code for each value (integers, unit of the stream), shape as given, flat.

    `entropy(size) -> bytes` is the operating system's unless given. Cost: O(n), at most 2^16
    reports' words in memory. Raises ParameterError for values that are not integers.
    """
    given = _integers("values", values)
    r = mechanism.randomizer
    if max((r.high - r.low) * mechanism.size, abs(r.low), abs(r.high)) >= _MAX_PRODUCT:
        raise ParameterError("high", "(high - low) * size, low and high within 2**62")
    if given.dtype == np.uint64:  # casting would wrap
        given = np.minimum(given, np.uint64(_MAX_PRODUCT))
    clamped = np.clip(given.ravel().astype(np.int64), r.low, r.high)
    words = Words(entropy or Checked(os.urandom))
    parts = [_perturb(r, clamped[at : at + _CHUNK], words) for at in range(0, len(clamped), _CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


@taking(n=integer_in(1, 1 << 63), count=integer_in(0, 1 << 31))
def draw_many(n: int, count: int, *, entropy: Entropy | None = None) -> Ints:
    """Return `count` uniform integers in 0..n-1, as `count` calls of the scalar draw would.

    Raises ParameterError unless 1 ≤ n ≤ 2**63.
    """
    return accepted_words(Words(entropy or Checked(os.urandom)), n, count).astype(np.int64)


@taking(mechanism=MECHANISM)
def decode_table(mechanism: Mechanism) -> Floats:
    """Return `decode(code)` for every code, length code_count, unit of the stream."""
    return np.array([mechanism.decode(code) for code in range(mechanism.code_count)])


@taking(mechanism=MECHANISM)
def decode_many(mechanism: Mechanism, codes: ArrayLike) -> Floats:
    """Return the unbiased estimate of each code, unit of the stream; raises ParameterError."""
    given = _integers("codes", codes)
    if given.size and not 0 <= given.min() <= given.max() < mechanism.code_count:
        raise ParameterError("codes", f"0..{mechanism.code_count - 1}")
    return np.take(decode_table(mechanism), given)


def _integers(name: str, given: ArrayLike) -> NDArray[np.signedinteger | np.unsignedinteger]:
    if is_masked(given):
        raise ParameterError(name, "an array of integers, none of them masked")
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, OverflowError) as exc:  # rows of unequal length
        raise ParameterError(name, "an array of integers") from exc
    if array.size and array.dtype.kind not in "iu":
        raise ParameterError(name, "an array of integers")
    return array if array.size else array.astype(np.int64)


def _perturb(r: Randomizer, values: Ints, words: Words) -> Ints:
    width = len(r.channels) - 1 + (r.encoder != BUCKETS) + 1
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


def _try_perturb(r: Randomizer, values: Ints, words: WordArray) -> tuple[Ints, Truths]:
    """Return (codes, rows with a refused word); codes of such rows mean nothing."""
    first, refused = _try_branch(r, r.channels[0], values, words[:, -2:])
    if len(r.channels) == 1:
        return first, refused
    second, also_refused = _try_branch(r, r.channels[1], values, words[:, -2:])
    second += r.channels[0].code_count
    num, den = r.coin
    # both branches for every row: a third of the time that picking rows apart and together takes
    is_second = remainder(words[:, 0], den) >= np.uint64(num)
    refused = np.where(is_second, also_refused, refused) | over_limit(words[:, 0], den)
    return np.where(is_second, second, first), refused


def _try_branch(
    r: Randomizer, channel: Channel, values: Ints, words: WordArray
) -> tuple[Ints, Truths]:
    span = r.high - r.low
    drawn = words[:, -1]
    refused = over_limit(drawn, channel.total)
    if r.encoder == BUCKETS:
        index = (values - r.low) * channel.d // (span + 1)
    else:
        scaled = (values - r.low) * (channel.d - 1)
        index = scaled // span
        index += remainder(words[:, 0], span).view(np.int64) < scaled - index * span
        refused |= over_limit(words[:, 0], span)
    return sample_many(channel, index, remainder(drawn, channel.total)), refused


class Words:
    """Words of the entropy stream in order, with some put back."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self._held = b""

    def take(self, count: int) -> WordArray:
        """Return the next `count` words."""
        return np.frombuffer(self.read(count * WORD_BYTES), "<u8")

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes; raises EntropyError when the source fails."""
        missing = size - len(self._held)
        if missing > 0:
            self._held += read_source(self._entropy, missing)
        taken, self._held = self._held[:size], self._held[size:]
        return taken

    def put_back(self, words: WordArray) -> None:
        """Return unused words to the front of the stream."""
        self._held = words.tobytes() + self._held


def accepted_words(words: Words, n: int, count: int) -> WordArray:
    """Return `count` uniform integers below n, as `count` calls of a scalar draw would."""
    drawn = words.take(count)
    refused = over_limit(drawn, n)
    while refused.any():
        kept = drawn[~refused]
        drawn = np.concatenate([kept, words.take(count - len(kept))])
        refused = over_limit(drawn, n)
    return remainder(drawn, n)


def over_limit(words: WordArray, n: int) -> Truths:
    """Say which words must be drawn again to give a uniform integer below n."""
    limit = limit_of(n)
    if limit == WORD_RANGE:
        return np.zeros(words.shape, bool)
    return words >= np.uint64(limit)


def remainder(words: WordArray, n: int) -> WordArray:
    """Return words % n; NumPy divides by one number with a multiplication, but not so for %."""
    if n & (n - 1) == 0:
        return words & np.uint64(n - 1)
    divisor = np.uint64(n)
    return words - words // divisor * divisor


def sample_many(channel: Channel, index: Ints, u: WordArray) -> Ints:
    """Return one code for each input, given what `draw(channel.total)` gave for it."""
    if isinstance(channel, Table):
        return _from_table(channel, index, u)
    if isinstance(channel, Profile):
        return _from_profile(channel, index, u)
    if isinstance(channel, Wave):
        return _from_wave(channel, index, u)
    raise ParameterError("channel", "a Wave, Profile or Table")


def _from_wave(wave: Wave, index: Ints, u: WordArray) -> Ints:
    near = np.uint64(wave.near_total)
    far = _beyond((u - near) // np.uint64(wave.r_den), index, wave.c)
    return np.where(u < near, index + (u // np.uint64(wave.r_num)).view(np.int64), far)


def _from_profile(profile: Profile, index: Ints, u: WordArray) -> Ints:
    sums = np.array(profile.sums, np.uint64)
    far = _beyond((u - sums[-1]) // np.uint64(profile.r_den), index, profile.c)
    return np.where(u < sums[-1], index + np.searchsorted(sums, u, side="right"), far)


def _beyond(k: WordArray, index: Ints, c: int) -> Ints:
    """Return the k-th code outside the input's window; k wrapped around where it lies inside."""
    far = k.view(np.int64)
    return far + np.where(far < index, 0, 2 * c + 1)


def _from_table(table: Table, index: Ints, u: WordArray) -> Ints:
    codes = np.empty(len(u), np.int64)
    for row, sums in enumerate(table.sums):  # few rows: a plan carries them all
        chosen = index == row
        codes[chosen] = np.searchsorted(np.array(sums, np.uint64), u[chosen], side="right")
    return codes
