"""The frame of a curated stream: one encoding, and every other byte string refused by name."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.errors import ParameterError, WireError
from edge_ldp.device.frame import decode as decode_report
from edge_ldp.protocol.released import (
    HEAD_BYTES,
    MAX_BYTES,
    MAX_VALUES,
    PAIR_BYTES,
    PublicDesign,
    ReleasedFrame,
    decode_released,
    encode_released,
    read_design,
)

VECTORS = Path(__file__).parents[1] / "vectors" / "released-v1.json"
DESIGN = PublicDesign(
    name="power",
    unit="W",
    slot_seconds=900,
    kind="consistent",
    fanout=96,
    chunk=672,
    pruned=1,
    smoother="recent",
    missing="skip",
    ceiling=43_470,
    epsilon=(1, 10),
    paid=(1, 10),
)
FRAME = ReleasedFrame(
    stream=0,
    batch=7,
    series=1000,
    position=670,
    theta=3200,
    design=DESIGN,
    slots=(1671, 1673),
    values=(-12_345, 1 << 40),
)


def build(given: dict[str, Any]) -> ReleasedFrame:
    fields, design = dict(given), dict(given["design"])
    del fields["design"]
    for table, names in ((design, ("epsilon", "paid")), (fields, ("slots", "values"))):
        table.update({name: tuple(table[name]) for name in names})
    return ReleasedFrame(**fields, design=PublicDesign(**design))


@pytest.mark.parametrize("vector", json.loads(VECTORS.read_text())["good"])
def test_golden_frames_are_written_and_read_as_ever(vector: dict[str, Any]) -> None:
    frame, payload = build(vector["frame"]), bytes.fromhex(vector["payload"])
    assert encode_released(frame) == payload
    assert decode_released(payload) == frame


@pytest.mark.parametrize(
    "vector", json.loads(VECTORS.read_text())["bad"], ids=lambda vector: vector["what"]
)
def test_malformed_frames_are_refused_by_name_REP_01_REP_06(vector: dict[str, Any]) -> None:
    with pytest.raises(WireError) as refused:
        decode_released(bytes.fromhex(vector["payload"]))
    assert refused.value.reason == vector["reason"]


frames = st.builds(
    lambda first, gaps, values, position, theta, numbering: replace(
        FRAME,
        numbering=numbering,
        series=first - 1 - position - 700,
        position=position,
        theta=theta,
        slots=tuple(first + sum(gaps[:at]) for at in range(len(values))),
        values=tuple(values),
    ),
    st.integers(10_000, (1 << 32) - 100_000),
    st.lists(st.integers(1, 1000), min_size=20, max_size=20),
    st.lists(st.integers(-(1 << 63), (1 << 63) - 1), min_size=1, max_size=20),
    st.integers(0, 650),
    st.integers(1, 43_470),
    st.just(0) | st.integers(1, (1 << 32) - 1),
)


@given(frames)
def test_what_is_written_is_what_is_read(frame: ReleasedFrame) -> None:
    payload = encode_released(frame)
    assert decode_released(payload) == frame
    assert len(payload) <= MAX_BYTES
    assert len(payload) == len(encode_released(replace(frame, values=(0,) * len(frame.values))))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_back_to_themselves_or_refused(payload: bytes) -> None:
    try:
        frame = decode_released(payload)
    except WireError:
        return
    assert encode_released(frame) == payload


@given(frames.map(encode_released), st.integers(0), st.integers(0, 255))
def test_a_frame_with_another_byte_is_read_back_to_itself_or_refused(
    payload: bytes, place: int, byte: int
) -> None:
    at = place % len(payload)
    changed = payload[:at] + bytes([byte]) + payload[at + 1 :]
    try:
        frame = decode_released(changed)
    except WireError:
        assert at < len(payload) - 8, "any eight bytes are a value"
        return
    assert encode_released(frame) == changed


def test_every_changed_byte_gives_another_frame_or_none() -> None:
    payload = encode_released(FRAME)
    refused = set()
    for at in range(len(payload)):
        changed = bytearray(payload)
        changed[at] ^= 1
        try:
            assert decode_released(bytes(changed)) != FRAME
        except WireError:
            refused.add(at)
    assert {0, 1, 2, 3} <= refused  # magic, version, flags
    pairs = len(payload) - 2 * PAIR_BYTES
    values = {pairs + at for at in (*range(2, 10), *range(12, 20))}
    assert not values & refused


def test_a_frame_of_a_series_is_longer_by_the_number_of_it_alone() -> None:
    first, second = encode_released(FRAME), encode_released(replace(FRAME, numbering=0x04030201))
    assert second == b"LR\x02" + first[3:9] + b"\x01\x02\x03\x04" + first[9:]
    with pytest.raises(WireError, match="numbering"):
        decode_released(second[:9] + bytes(4) + second[13:])


def test_neither_kind_of_frame_is_taken_for_the_other() -> None:
    with pytest.raises(WireError, match="magic"):
        decode_report(encode_released(FRAME))
    report = bytes.fromhex("4c440100") + bytes(HEAD_BYTES)
    with pytest.raises(WireError, match="magic"):
        decode_released(report)


@pytest.mark.parametrize(
    "changes",
    [
        {"slots": (), "values": ()},
        {"slots": (1671,) * (MAX_VALUES + 1), "values": (0,) * (MAX_VALUES + 1)},
        {"values": (1,)},
        {"values": (1, 1 << 63)},
        {"slots": (1673, 1671)},
        {"slots": (1671, 1671 + 65_536)},
        {"stream": 16},
        {"stream": -1},
        {"batch": 1 << 32},
        {"theta": 0},
        {"theta": 43_471},
        {"series": 1671},
        {"position": 671},  # the chunk ends with it
        {"position": 100_000},  # more values than slots
        {"design": replace(DESIGN, epsilon=(2, 20))},
        {"design": replace(DESIGN, epsilon=(0, 1))},
        {"design": replace(DESIGN, kind="tree")},
        {"design": replace(DESIGN, name="Power")},
        {"design": replace(DESIGN, unit="")},
        {"design": replace(DESIGN, fanout=70_000)},
        {"design": replace(DESIGN, chunk=0)},
    ],
)
def test_what_cannot_be_carried_is_refused_when_written(changes: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        encode_released(replace(FRAME, **changes))


def test_a_design_alone_is_read_back_whole_or_not_at_all() -> None:
    block = DESIGN.encode()
    assert read_design(block) == DESIGN
    for broken in (block[:-1], block + b"x", b""):
        with pytest.raises(WireError):
            read_design(broken)
