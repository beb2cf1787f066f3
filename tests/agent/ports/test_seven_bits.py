"""A parity bit that an adapter hands through (SER-35, I05)."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.meters.linky import LinkyMeter
from agent.ports.seven_bits import SevenBits
from tests.agent.meters.samples import EVERY_CAPTURE, reasons, values

CASES = Path(__file__).parents[1] / "meters" / "cases"


def with_parity(data: bytes, *, odd: bool = False) -> bytes:
    return bytes(byte | 0x80 * (byte.bit_count() % 2 != odd) for byte in data)


@given(st.binary(max_size=60).map(lambda b: bytes(x & 0x7F for x in b)), st.booleans())
def test_SER_35_text_comes_out_as_it_was_with_either_parity_or_none(
    text: bytes,
    odd: bool,  # noqa: FBT001 (drawn)
) -> None:
    assert SevenBits("O" if odd else "E").stripped(with_parity(text, odd=odd)) == text
    assert SevenBits("E").stripped(text) == text, "an adapter that takes it off by itself"


def test_SER_35_a_flipped_bit_reads_as_nul_once_parity_is_seen() -> None:
    line = SevenBits("E")
    assert line.stripped(with_parity(b"abcde")) == b"abcde"
    for bit in range(8):
        damaged = bytes((with_parity(b"1")[0] ^ 1 << bit,))
        assert line.stripped(damaged) == b"\0"


@pytest.mark.parametrize("name", ["T01.raw", "T02.raw", "T03.raw", "T04.raw"])
def test_SER_35_a_linky_behind_a_bridge_of_eight_bits_is_read(name: str) -> None:
    text = (CASES / "linky" / name).read_bytes()
    line = SevenBits("E")
    for size in (1, 50, len(text)):
        sent = with_parity(text)
        meter, raw = LinkyMeter(), LinkyMeter()
        events = [
            e
            for at in range(0, len(sent), size)
            for e in meter.feed(line.stripped(sent[at : at + size]))
        ]
        assert values(events[-1]) == values(raw.feed(text)[-1])
    assert "" not in reasons([*LinkyMeter().feed(with_parity(text))]), "as it is it is noise"


@pytest.mark.skipif(not EVERY_CAPTURE.is_dir(), reason="the large collection is not beside us")
def test_SER_35_the_reported_case_I05() -> None:
    sent = (EVERY_CAPTURE / "field" / "T01_parity8.raw").read_bytes()
    (telegram,) = [
        e for e in LinkyMeter().feed(SevenBits("E").stripped(sent)) if not reasons([e])[0]
    ]
    assert values(telegram) == {"apparent_power": 1230, "energy_import": 39_071_184}
