"""Killed anywhere: what was committed goes on, noise is neither lost nor drawn again.

The store is one slot of bytes, as a device's: the state is committed, then its release is sent. A
kill falls before the commit or between commit and sending; the device then starts from what the
store holds and pushes the readings of the slots after it.
"""

import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge_ldp.continual import Curator, Design, Release, parse_state
from tests.edge_ldp.continual.paths import Uniform, noise_from
from tests.edge_ldp.continual.streams import DESIGNS, READINGS, run

BEFORE, AFTER = "before the commit", "after the commit"
KILLS = st.dictionaries(st.integers(0, 199), st.sampled_from([BEFORE, AFTER]), max_size=6)
STEADY = [name for name in DESIGNS if name != "sequential"]  # whose last readings are in memory


class Killed(Exception):  # noqa: N818 - no error of the product
    pass


class Device:
    """A curator, its store, and whatever left the device."""

    def __init__(self, design: Design, draw: Uniform) -> None:
        self.design, self.draw = design, draw
        self.store: bytes | None = None
        self.sent: list[Release] = []
        self.keys: list[str] = []
        self.start()

    def start(self) -> None:
        state = None if self.store is None else parse_state(self.store)
        self.curator = Curator(self.design, draw=self.draw, state=state)

    def take(self, reading: int, kill: str | None) -> None:
        release = self.curator.push(reading)
        if kill == BEFORE:
            raise Killed
        self.store = self.curator.state().to_json()
        self.keys += [chunk["key"] for chunk in json.loads(self.store)["chunk"]]
        if kill == AFTER:
            raise Killed
        self.sent.append(release)


def lived(design: Design, kills: dict[int, str], draw: Uniform) -> Device:
    """Return a device that took all readings, killed on the way as said, once each."""
    device = Device(design, draw)
    left = dict(kills)
    at = 0
    while at < 200:
        try:
            device.take(READINGS[at], left.pop(at, None))
        except Killed:
            device.start()
            at = device.curator.state().slot
        at += 1
    return device


@pytest.mark.parametrize("name", STEADY)
@settings(max_examples=10)
@given(kills=KILLS)
def test_whatever_was_sent_is_what_an_unkilled_device_would_have_sent(
    name: str, kills: dict[int, str]
) -> None:
    """Chunks draw their keys from one tape, so a key drawn twice or lost would show at once.

    But for a kill before a chunk's first commit: nothing was sent of that chunk, and it begins anew
    with another key; and while θ's readings are collected, they are collected anew.
    """
    design = DESIGNS[name]
    starts = {design.readings + k * design.shape.chunk for k in range(9)}
    waits = range(design.readings if not design.renewal else 200)
    kills = {at: kind for at, kind in kills.items() if at not in starts and at not in waits}
    device = lived(design, kills, noise_from(5))
    want = {release.slot: release for release in run(design, [*READINGS[:200]])}
    assert all(release == want[release.slot] for release in device.sent)
    lost = {at for at, kind in kills.items() if kind == AFTER}
    assert {release.slot for release in device.sent} == set(range(200)) - lost
    assert device.curator.account.released == sum(r.value is not None for r in want.values())


@pytest.mark.parametrize("name", DESIGNS)
@settings(max_examples=10)
@given(kills=KILLS)
def test_no_two_chunks_ever_have_one_key_and_no_slot_is_sent_twice(
    name: str, kills: dict[int, str]
) -> None:
    device = lived(DESIGNS[name], kills, noise_from(6))
    slots = [release.slot for release in device.sent]
    assert slots == sorted(set(slots))
    runs = [key for at, key in enumerate(device.keys) if at == 0 or key != device.keys[at - 1]]
    assert len(runs) == len(set(runs)) <= device.curator.account.chunks


@pytest.mark.parametrize("name", DESIGNS)
def test_a_reading_pushed_again_from_the_same_state_gives_the_same_release(name: str) -> None:
    """Killed before the commit: the second release tells no more than the first would have."""
    device = Device(DESIGNS[name], noise_from(7))
    for at, reading in enumerate(READINGS[:150]):
        in_chunk = device.store is not None and json.loads(device.store)["chunk"]
        if in_chunk:
            state = parse_state(device.store or b"")
            twice = [
                Curator(device.design, draw=noise_from(at), state=state).push(reading)
                for _ in range(2)
            ]
            assert twice[0] == twice[1]
        device.take(reading, None)


@pytest.mark.parametrize("kill", [BEFORE, AFTER])
def test_the_key_is_gone_from_store_and_memory_when_the_last_value_was_committed(kill: str) -> None:
    """Killed at the chunk's last value: before its commit the key is still needed, after it not."""
    design = DESIGNS["public"]
    device = Device(design, noise_from(8))
    for reading in READINGS[:63]:
        device.take(reading, None)
    key = device.keys[-1]
    noise = device.curator.chunk.noise  # type: ignore[union-attr] # it has begun
    with pytest.raises(Killed):
        device.take(READINGS[63], kill)
    assert not noise.key
    assert (key.encode() in (device.store or b"")) == (kill == BEFORE)
    device.start()
    if kill == BEFORE:
        device.take(READINGS[63], None)
    assert key.encode() not in (device.store or b"")
    device.take(READINGS[64], None)
    assert device.keys[-1] != key


@pytest.mark.parametrize("name", DESIGNS)
@settings(max_examples=10)
@given(cuts=st.sets(st.integers(0, 199), max_size=5))
def test_every_chunks_budget_adds_up_over_restarts(name: str, cuts: set[int]) -> None:
    """Every reading that θ used or that was released is charged for just that, once."""
    design = DESIGNS[name]
    draw = noise_from(9)
    curator = Curator(design, draw=draw)
    released = keys = 0
    for at, reading in enumerate(READINGS[:200]):
        if at in cuts:
            curator = Curator(design, draw=draw, state=parse_state(curator.state().to_json()))
        began = curator.chunk is None
        made = curator.push(reading)
        released += made.value is not None
        keys += began and made.value is not None
    account = curator.account
    *theta, stream = account.charges
    assert (stream.runs, stream.readings, stream.epsilon) == (keys, released, design.epsilon)
    for charge in theta:
        assert charge.readings == charge.runs * design.readings
    spent = sum((charge.epsilon for charge in account.charges if charge.runs), Fraction(0))
    assert account.epsilon_per_reading <= min(spent, design.epsilon_per_reading)
