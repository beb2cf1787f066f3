from hypothesis import given
from hypothesis import strategies as st

from agent.meters.crc import crc16_arc
from firmware_stubs.meters.telegram import crc as crc_of_the_simulator


def by_definition(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0xA001 if crc & 1 else 0)
    return crc


def test_the_published_check_value() -> None:
    assert crc16_arc(b"123456789") == 0xBB3D
    assert crc16_arc(b"") == 0


@given(st.binary(max_size=64))
def test_the_table_gives_what_the_definition_gives(data: bytes) -> None:
    assert crc16_arc(data) == by_definition(data) == crc_of_the_simulator(data)
