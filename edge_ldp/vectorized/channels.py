"""Channels over arrays: the code that `sample` gives for each input and drawn number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edge_ldp.device.channel import Wave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.table import Profile, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edge_ldp.device.channel import Channel

    Ints = NDArray[np.int64]
    Drawn = NDArray[np.uint64]


def sample_many(channel: Channel, index: Ints, u: Drawn) -> Ints:
    """Return one code for each input, given what `draw(channel.total)` gave for it."""
    if isinstance(channel, Table):
        return _from_table(channel, index, u)
    if isinstance(channel, Profile):
        return _from_profile(channel, index, u)
    if isinstance(channel, Wave):
        return _from_wave(channel, index, u)
    raise ParameterError("channel", "a Wave, Profile or Table")


def _from_wave(wave: Wave, index: Ints, u: Drawn) -> Ints:
    near = np.uint64(wave.near_total)
    far = _beyond((u - near) // np.uint64(wave.r_den), index, wave.c)
    return np.where(u < near, index + (u // np.uint64(wave.r_num)).view(np.int64), far)


def _from_profile(profile: Profile, index: Ints, u: Drawn) -> Ints:
    sums = np.array(profile.sums, np.uint64)
    far = _beyond((u - sums[-1]) // np.uint64(profile.r_den), index, profile.c)
    return np.where(u < sums[-1], index + np.searchsorted(sums, u, side="right"), far)


def _beyond(k: Drawn, index: Ints, c: int) -> Ints:
    """Return the k-th code outside the input's window; k wrapped around where it lies inside."""
    far = k.view(np.int64)
    return far + np.where(far < index, 0, 2 * c + 1)


def _from_table(table: Table, index: Ints, u: Drawn) -> Ints:
    codes = np.empty(len(u), np.int64)
    for row, sums in enumerate(table.sums):  # few rows: a plan carries them all
        chosen = index == row
        codes[chosen] = np.searchsorted(np.array(sums, np.uint64), u[chosen], side="right")
    return codes
