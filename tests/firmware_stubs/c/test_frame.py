"""Frames in C: what Python packs and refuses, byte by byte."""

import pytest

from edge_ldp.device import frame
from edge_ldp.device.errors import WireError
from tests.firmware_stubs.c.builds import Runner, Script
from tests.firmware_stubs.c.laws import random_words
from tests.firmware_stubs.c.vectors import joined

U32 = (1 << 32) - 1


def decoded(payload: bytes) -> str:
    """Return what Python makes of some bytes, as the runner prints it."""
    try:
        found = frame.decode(payload)
    except WireError as refused:
        return f"{refused.reason} {refused.offset}"
    pairs = [n for pair in zip(found.slots, found.codes, strict=True) for n in pair]
    return joined(
        (found.stream, found.series, found.batch, found.epoch, found.tag, len(found.slots), *pairs)
    )


def add_decode(script: Script, payload: bytes) -> None:
    script.add(f"decode {payload.hex() or '-'}", decoded(payload))


@pytest.mark.parametrize("series", [0, 5])
def test_every_changed_byte_and_every_cut_is_judged_as_in_python(run: Runner, series: int) -> None:
    good = frame.encode(3, 70_000, 9, [U32 - 300, U32 - 298, U32], [1, 65_535, 7], series)
    script = Script()
    for at in range(len(good)):
        for flipped in (1, 2, 0x80, 0xFF):
            changed = bytearray(good)
            changed[at] ^= flipped
            add_decode(script, bytes(changed))
        add_decode(script, good[:at])
    add_decode(script, good + b"\x00")
    reasons = {line.split()[0] for line in script.expected if line[0].isalpha()}
    assert reasons >= {"short", "magic", "version", "flags", "count", "length", "order"}
    assert run.differences(script) == []


def test_pairs_at_random_are_judged_as_in_python(run: Runner) -> None:
    noise = iter(random_words("pairs", 400))
    script = Script()
    for turn in range(300):
        count = 1 + turn % 3
        steps = b"".join(bytes([next(noise) % 3, 0, next(noise), 0]) for _ in range(count))
        first = U32 - turn % 4
        head = b"LD\x01\x00" + bytes(9) + first.to_bytes(4, "little")
        add_decode(script, head + count.to_bytes(2, "little") + steps)
    kinds = [line.startswith("order") for line in script.expected]
    assert 20 < sum(kinds) < 280
    assert run.differences(script) == []


def encode_command(slots: list[int], capacity: int | None = None) -> str:
    size = frame.HEAD_BYTES + frame.PAIR_BYTES * len(slots) if capacity is None else capacity
    pairs = joined(n for slot in slots for n in (slot, slot % 65_536))
    return f"encode 255 8 {U32} 1 9 {size} {len(slots)} {pairs}"


def test_slots_that_cannot_be_carried_are_refused_and_nothing_is_written(run: Runner) -> None:
    script = Script()
    for slots in (
        [],
        [5, 5],
        [5, 4],
        [U32, 0],
        [0, 65_536],
        [0, 1, 65_536],
        [1, 2, 2],
        list(range(1025)),
    ):
        script.add(encode_command(slots), "slots")
    script.add("encode 1 0 1 1 9 99 1 5 5", "series")
    script.add(encode_command([1, 2], 34), "storage")
    script.add(encode_command([1, 2], 0), "storage")
    assert run.differences(script) == []


def test_the_largest_frame_is_that_of_python(run: Runner) -> None:
    slots = [64 * at + at % 7 for at in range(1024)]
    made = frame.encode(255, U32, 1, slots, [slot % 65_536 for slot in slots], 8, 9)
    script = Script()
    script.add(encode_command(slots), made.hex())
    add_decode(script, made)
    assert run.differences(script) == []
