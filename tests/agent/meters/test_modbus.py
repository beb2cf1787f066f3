"""Modbus RTU: real frames, numbers, silence, refusals, noise (SER-01..05, 12, 14, 22, 27)."""

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.meters.modbus import (
    ANSWER_MS,
    MAX_BACKOFF_MS,
    ModbusMeter,
    nano_of_float,
    request,
    sealed,
)
from agent.meters.reading import Asker, Discarded, Event, Send, Telegram
from agent.meters.scale import LIMIT, NANO, rounded
from firmware_stubs.meters.modbus import modbus_answer
from tests.agent.meters.samples import EVERY_CAPTURE, reasons, values
from tests.cost import costs_at_most
from tests.reached import reached

VALUES = (378, 6_657_459, 1001)  # 6,657.459 kWh is the nearest number of 32 bits: exact to the Wh
SHOWN = {"power": 378, "power_export": 0, "energy_import": 6_657_459, "energy_export": 1001}
Events = list[Event]


def answered(data: bytes, model: str = "sdm630", shown: tuple[int, int, int] = VALUES) -> bytes:
    return modbus_answer(data, shown, address=1, model=model)


def found(events: Events) -> list[Telegram | Discarded]:
    return [event for event in events if isinstance(event, Telegram | Discarded)]


def one_round(
    meter: ModbusMeter, reply: Callable[[bytes], bytes] = answered, *, start_ms: int = 10_000
) -> list[Telegram | Discarded]:
    """Let a meter ask until it has a telegram or gives up; answers come after 50 ms."""
    events: Events = []
    now_ms = max(meter.wake_ms, start_ms)
    waiting = meter.tick(now_ms)
    while waiting:
        event = waiting.pop(0)
        if isinstance(event, Send):
            now_ms += 50
            waiting += meter.feed(reply(event.data), now_ms)
            if not waiting and meter.wake_ms > now_ms:
                now_ms = meter.wake_ms
                waiting += meter.tick(now_ms) if now_ms - start_ms <= 2 * ANSWER_MS + 200 else []
        else:
            events.append(event)
    return found(events)


def test_the_published_check_value() -> None:
    assert sealed(b"123456789") == b"123456789\x37\x4b"


def test_requests_and_answers_of_a_real_meter() -> None:
    """The SDM230 of the capture: register 0x48 is 10,909.282 kWh, register 0x0C is 4551.5 W."""
    assert request(1, 0x0048, 2) == bytes.fromhex("010400480002f1dd")
    assert request(1, 0x000C, 2) == bytes.fromhex("0104000c0002b1c8")
    power = bytes.fromhex("010404458e3c355fb4")
    energy = sealed(b"\x01\x04\x08" + bytes.fromhex("462a7521") + bytes(4))
    meter = ModbusMeter(model="sdm230")
    assert meter.tick(0) == [Send(request(1, 0x000C, 2))]
    assert meter.feed(power, 60) == [Send(request(1, 0x0048, 4))]
    (telegram,) = found(meter.feed(energy, 120))
    assert values(telegram) == {
        "power": 4552,
        "power_export": 0,
        "energy_import": 10_909_282,
        "energy_export": 0,
    }
    assert meter.wake_ms == 1000


@pytest.mark.parametrize("model", ["sdm120", "sdm230", "sdm630"])
@pytest.mark.parametrize(
    ("power_w", "drawn", "given_w"), [(378, 378, 0), (-378, 0, 378), (0, 0, 0)]
)
def test_every_model_gives_exactly_what_it_was_told_to_show(
    model: str, power_w: int, drawn: int, given_w: int
) -> None:
    meter = ModbusMeter(model=model)
    (telegram,) = one_round(meter, lambda r: answered(r, model, (power_w, *VALUES[1:])))
    assert values(telegram) == {**SHOWN, "power": drawn, "power_export": given_w}


@pytest.mark.parametrize("shows", ["sdm120", "sdm230"])
def test_SER_27_another_model_under_the_largest_ones_map_is_never_read_as_0_W(shows: str) -> None:
    """It answers what it does not have with 0, and no fault."""
    meter = ModbusMeter(model="sdm630")
    (telegram,) = one_round(meter, lambda r: answered(r, shows))
    assert values(telegram) == SHOWN
    assert meter.lacks_phases
    (telegram,) = one_round(meter, answered, start_ms=meter.wake_ms)
    assert values(telegram) == SHOWN, "asked anew every round: phases come and go"
    assert not meter.lacks_phases


def test_SER_27_a_model_that_refuses_the_other_phases_is_refused() -> None:
    def refusing(asked: bytes) -> bytes:
        return sealed(b"\x01\x84\x02") if asked[2:4] == bytes(2) else answered(asked, "sdm230")

    assert reasons(one_round(ModbusMeter(model="sdm630"), refusing)) == ["refused"]
    (telegram,) = one_round(ModbusMeter(model="sdm230"), refusing)
    assert values(telegram) == SHOWN


@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 1000]))
def test_SER_14_a_number_is_taken_apart_exactly(bits: int, factor: int) -> None:
    (number,) = struct.unpack(">f", bits.to_bytes(4, "big"))
    scaled = nano_of_float(bits, factor)
    if not math.isfinite(number) or abs(Fraction(number) * factor * NANO) >= LIMIT:
        assert scaled is None or abs(scaled) == LIMIT - 1
    else:
        assert scaled == math.floor(Fraction(number) * factor * NANO)


@pytest.mark.parametrize(
    ("number", "whole"),
    [(0.5, 1), (0.49999997, 0), (-0.5, 0), (-0.0, 0), (1e-45, 0), (-1e-45, 0), (43_470.0, 43_470)],
)
def test_SER_14_a_number_is_rounded_half_up(number: float, whole: int) -> None:
    scaled = nano_of_float(int.from_bytes(struct.pack(">f", number), "big"), 1)
    assert scaled is not None
    assert rounded(scaled) == whole


@pytest.mark.parametrize("bits", ["7fc00000", "7f800000", "ff800000", "7f7fffff", "bf800000"])
def test_SER_14_what_no_register_shows_is_refused(bits: str) -> None:
    """No number, infinities, 3e38, and an energy below 0."""
    answers = [
        answered(request(1, 0x00, 6)),
        sealed(b"\x01\x04\x04" + bytes(4)),
        sealed(b"\x01\x04\x08" + bytes.fromhex(bits) + bytes(4)),
    ]
    meter = ModbusMeter()
    assert reasons(one_round(meter, lambda _: answers.pop(0))) == ["value"]


def test_SER_05_any_cut_of_an_answer_gives_the_same_telegram() -> None:
    for size in range(1, 9):

        def cut(data: bytes, size: int = size) -> list[bytes]:
            whole = answered(data)
            return [whole[a : a + size] for a in range(0, len(whole), size)]

        meter = ModbusMeter()
        waiting, events = meter.tick(0), list[Event]()
        while waiting:
            event = waiting.pop(0)
            if isinstance(event, Send):
                for piece in cut(event.data):
                    waiting += meter.feed(piece, 10)
            else:
                events.append(event)
        assert [values(event) for event in found(events)] == [SHOWN]


@pytest.mark.parametrize(
    "noise", [b"\x00", b"\xff\xff", b"\x01\x04", b"\x01\x04\x04\x00", b"\x01" * 9]
)
def test_SER_01_an_echo_and_noise_before_an_answer_cost_nothing(noise: bytes) -> None:
    (telegram,) = one_round(ModbusMeter(), lambda r: r + noise + answered(r))
    assert values(telegram) == SHOWN


def test_SER_02_every_flipped_bit_is_refused_and_the_next_round_is_read() -> None:
    for at in range(9):
        for bit in range(8):

            def damaged(data: bytes, at: int = at, bit: int = bit) -> bytes:
                whole = bytearray(answered(data))
                whole[at] ^= 1 << bit
                return bytes(whole)

            meter = ModbusMeter()
            (event,) = one_round(meter, damaged)
            assert reasons([event]) in (["crc"], ["syntax"])
            (telegram,) = one_round(meter, start_ms=meter.wake_ms)
            assert values(telegram) == SHOWN


def test_SER_03_half_an_answer_is_given_up_after_its_time() -> None:
    for size in range(1, 9):
        meter = ModbusMeter()
        meter.tick(0)
        assert meter.feed(answered(request(1, 0x34, 2))[:size], 50) == []
        assert meter.tick(ANSWER_MS - 1) == []
        (event,) = meter.tick(ANSWER_MS)
        assert isinstance(event, Discarded)
        assert event.size == size


def test_SER_22_a_meter_that_does_not_answer_is_asked_ever_more_rarely() -> None:
    meter, now_ms, gaps = ModbusMeter(), 123_457, []
    for _ in range(20):
        assert [type(event) for event in meter.tick(now_ms)] == [Send]
        asked_ms = now_ms
        assert meter.wake_ms == asked_ms + ANSWER_MS
        now_ms = meter.wake_ms
        assert meter.tick(now_ms) == [Discarded(0, "silence")]
        gaps.append(meter.wake_ms - now_ms)
        now_ms = meter.wake_ms
    assert gaps[0] <= 2000
    assert all(later >= earlier * 3 / 4 for earlier, later in pairwise(gaps))
    assert MAX_BACKOFF_MS * 3 / 4 - 1 <= gaps[-1] <= MAX_BACKOFF_MS
    assert len({gap % 1000 for gap in gaps}) > 5, "no jitter"
    (telegram,) = one_round(meter, start_ms=now_ms)
    assert values(telegram) == SHOWN
    assert meter.wake_ms - now_ms <= 1000, "after an answer it is asked at its pace again"


def test_a_meter_that_says_no_is_refused_at_once() -> None:
    meter = ModbusMeter()
    meter.tick(0)
    assert meter.feed(sealed(b"\x01\x84\x02"), 30) == [Discarded(5, "refused")]


def test_another_meters_answer_is_not_taken() -> None:
    meter = ModbusMeter(address=2)
    meter.tick(0)
    assert meter.feed(answered(request(1, 0x34, 2)), 30) == []
    assert reasons(found(meter.tick(ANSWER_MS))) == ["syntax"]


def test_bytes_that_nobody_asked_for_are_noise() -> None:
    assert ModbusMeter().feed(b"xyz", 0) == [Discarded(3, "noise")]


@pytest.mark.skipif(not EVERY_CAPTURE.is_dir(), reason="the large collection is not beside us")
def test_captures_of_a_bus_and_of_a_mixed_up_gateway() -> None:
    lines = (EVERY_CAPTURE / "modbus" / "sdm230_solax_bus.txt").read_text().splitlines()[1:]
    for line in lines:
        frame = bytes.fromhex(line[line.index(" ", 4) + 1 :].lstrip("<> "))
        assert sealed(frame[:-2]) == frame
    mixed = (EVERY_CAPTURE / "modbus" / "sdm630_scan_rtu_over_tcp.txt").read_text().splitlines()
    (tcp,) = [bytes.fromhex(line[2:]) for line in mixed if line.startswith("<")]
    meter = ModbusMeter()
    meter.tick(0)
    assert meter.feed(tcp, 30) == []
    assert reasons(found(meter.tick(ANSWER_MS))) == ["crc"]


@given(
    st.lists(
        st.binary(max_size=40)
        | st.sampled_from(
            [
                answered(request(1, 0x00, 6)),
                answered(request(1, 0x34, 2)),
                answered(request(1, 0x48, 4)),
            ]
        ),
        max_size=12,
    ),
    st.data(),
)
def test_SER_12_no_bytes_at_no_time_make_it_fail(chunks: list[bytes], data: st.DataObject) -> None:
    meter, now_ms = ModbusMeter(), 0
    assert isinstance(meter, Asker)
    for chunk in chunks:
        now_ms += data.draw(st.integers(0, 2 * ANSWER_MS))
        for event in [*meter.tick(now_ms), *meter.feed(chunk, now_ms)]:
            assert isinstance(event, Telegram | Discarded | Send)
        assert max(len(one) for one in reached(meter) if isinstance(one, bytes)) <= 256
        assert now_ms <= meter.wake_ms <= now_ms + MAX_BACKOFF_MS or meter.wake_ms <= now_ms


@pytest.mark.slow
def test_SER_12_a_million_random_answers_do_not_make_it_fail() -> None:
    import numpy as np  # noqa: PLC0415 (slow tests only)

    rng = np.random.default_rng(12)
    meter, now_ms = ModbusMeter(), 0
    noise = rng.bytes(9_000_000)
    for at in range(0, 9_000_000, 9):
        now_ms += 500
        meter.tick(now_ms)
        for event in meter.feed(b"\x01\x04\x04" + noise[at : at + 9], now_ms):
            assert event.__class__ in (Discarded, Send)


def test_a_telegram_takes_well_under_a_millisecond() -> None:
    asked = [(0x00, 6), (0x34, 2), (0x48, 4)]
    replies = [answered(request(1, first, count)) for first, count in asked]

    def answer_all() -> None:
        meter = ModbusMeter()
        meter.tick(0)
        meter.feed(replies[0], 10)
        meter.feed(replies[1], 20)
        (telegram,) = meter.feed(replies[2], 30)
        assert isinstance(telegram, Telegram)

    assert costs_at_most(0.001, answer_all)
