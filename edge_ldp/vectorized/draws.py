"""Draws over arrays: words of the entropy stream in the scalar order, and the codes they give."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device.channel import Wave
from edge_ldp.device.draw import WORD_BYTES, WORD_RANGE, limit_of
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.table import Profile, Table
from edge_ldp.entropy import read_source

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.device.channel import Channel
    from edge_ldp.device.draw import Entropy

    Ints = NDArray[np.int64]
    WordArray = NDArray[np.uint64]


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


def over_limit(words: WordArray, n: int) -> NDArray[np.bool_]:
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
