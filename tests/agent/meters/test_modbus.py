"""Modbus RTU: real frames, numbers, silence, refusals, noise (SER-01..05, 12, 14, 22, 27)."""

import math
import struct
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.config import parse_meter
from agent.errors import ConfigError
from agent.meters.modbus import models
from agent.meters.modbus.frames import LIMIT_BYTES, Ask, Frames, RtuFrames, TcpFrames, sealed
from agent.meters.modbus.meter import ANSWER_MS, MAX_BACKOFF_MS, ModbusMeter
from agent.meters.modbus.models import own, shipped
from agent.meters.modbus.numbers import nano_of, nano_of_float
from agent.meters.protocols import MODELS
from agent.meters.reading import Asker, Discarded, Event, Send, Telegram
from agent.meters.scale import LIMIT, NANO, rounded
from agent.ports.meters import make_meter
from firmware_stubs.meters.modbus import MODELS as SHOWS
from firmware_stubs.meters.modbus import modbus_answer, modbus_tcp_answer
from tests.agent.meters.samples import EVERY_CAPTURE, reasons, values
from tests.cost import costs_at_most
from tests.reached import reached

VALUES = (378, 6_657_459, 1001)  # 6,657.459 kWh is the nearest number of 32 bits: exact to the Wh
SHOWN = {"power": 378, "power_export": 0, "energy_import": 6_657_459, "energy_export": 1001}
Events = list[Event]


def modbus(
    model: str = "sdm630", frames: Frames | None = None, *, prove: bool = False
) -> ModbusMeter:
    return ModbusMeter(shipped(model), frames or RtuFrames(1), prove=prove)


def request(address: int, first: int, words: int, function: int = 4) -> bytes:
    return RtuFrames(address).wrap(Ask(function, first, words))


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
    meter = modbus("sdm230")
    assert meter.tick(0) == [Send(request(1, 0x0000, 2))]
    voltage = sealed(b"\x01\x04\x04" + bytes.fromhex("43660000"))
    assert meter.feed(voltage, 30) == [Send(request(1, 0x000C, 2))]
    assert meter.feed(power, 60) == [Send(request(1, 0x0048, 4))]
    (telegram,) = found(meter.feed(energy, 120))
    assert values(telegram) == {
        "power": 4552,
        "power_export": 0,
        "energy_import": 10_909_282,
        "energy_export": 0,
    }
    assert meter.wake_ms == 1000


EASTRON = ("sdm72", "sdm72v2", "sdm120", "sdm230", "sdm630")


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("model", EASTRON)
@pytest.mark.parametrize(
    ("shows", "power_w"),
    [
        ("sdm72", 6452),  # M1, M2: it tells no voltage
        ("sdm72", -6452),
        ("sdm72v2", 6452),
        ("sdm72v2-one-phase", -90),  # M4
        ("sdm630-without-l1", 1200),  # M6
        ("sdm630", 0),
        ("sdm120", 378),
        ("sdm230", -378),
    ],
)
def test_SER_27_any_eastron_is_read_right_as_any_other_or_refused(
    shows: str, power_w: int, model: str, *, refuses: bool
) -> None:
    """Whether it answers what it does not have with 0 or refuses it: M1, M2, M4, M6 and more."""
    shown = (power_w, *VALUES[1:])

    def reply(asked: bytes) -> bytes:
        return modbus_answer(asked, shown, address=1, model=shows, refuses=refuses)

    has_phases = shows in ("sdm72v2", "sdm630-without-l1", "sdm630")
    meter = modbus(model)
    (event,) = one_round(meter, reply)
    if isinstance(event, Telegram):
        (again,) = one_round(meter, reply, start_ms=meter.wake_ms)
        assert values(again) == values(event), "asked anew every round: phases come and go"
        is_part = model in ("sdm120", "sdm230") and has_phases
        right = {"power": max(power_w, 0), "power_export": max(-power_w, 0)}
        if not is_part and not (model == "sdm72" and shows in ("sdm120", "sdm230")):
            assert values(event) == {**SHOWN, **right}
    else:
        assert (event.reason, event.line) in (("refused", "0x000C"), ("refused", "0x0034"))
        assert model != "sdm630", "the usual model reads them all"


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    ("power_w", "import_wh"), [(378, 6_657_459), (2190, 1230), (0, 0), (9999, 88_888_840)]
)
def test_every_shipped_table_reads_its_model_and_proves_it(
    model: str, power_w: int, import_wh: int
) -> None:
    shown = (power_w, import_wh, 2000)
    (telegram,) = one_round(modbus(model, prove=True), lambda r: answered(r, model, shown))
    told = values(telegram)
    assert told["power"] == power_w
    assert abs(told["energy_import"] - import_wh) <= (10 if model == "orno-we-514" else 4)
    assert told.get("energy_export", 2000) == 2000
    assert shipped(model).source


@pytest.mark.parametrize("refuses", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_SER_33_a_register_answered_with_0_proves_no_model(model: str, *, refuses: bool) -> None:
    """Of a new meter without a load, and of one whose registers are elsewhere."""
    alike = [EASTRON, ("orno-we-514",), ("orno-we-516",), ("dtsu666",)]
    for shows in SHOWS:
        if shows in ("sdm72", *next(names for names in alike if model in names)):
            continue
        if model in EASTRON and shows.startswith("sdm"):
            continue

        def reply(asked: bytes, shows: str = shows) -> bytes:
            return modbus_answer(asked, (0, 0, 0), address=1, model=shows, refuses=refuses)

        events = one_round(modbus(model, prove=True), reply)
        assert reasons(events) == ["refused"], (model, shows)
    if model == "sdm72":
        events = one_round(modbus(model, prove=True), lambda r: answered(r, "sdm72", (0, 0, 0)))
        assert reasons(events) == ["refused"], "all 0: nobody knows"


def test_SER_27_meters_of_function_3_refuse_what_asks_with_4_M5() -> None:
    events = one_round(modbus("sdm630"), lambda r: answered(r, "orno-we-516"))
    assert reasons(events) == ["refused"]
    (telegram,) = one_round(modbus("orno-we-516"), lambda r: answered(r, "orno-we-516"))
    assert values(telegram) == SHOWN


def test_a_one_way_meter_tells_no_export() -> None:
    (telegram,) = one_round(modbus("orno-we-514"), lambda r: answered(r, "orno-we-514"))
    assert values(telegram) == {"power": 378, "energy_import": 6_657_450}


@pytest.mark.parametrize("model", ["sdm630", "dtsu666", "orno-we-514"])
def test_modbus_tcp_gives_the_same_and_takes_no_late_answer_for_the_next(model: str) -> None:
    frames = TcpFrames(255)
    meter = modbus(model, frames)
    (telegram,) = one_round(meter, lambda r: modbus_tcp_answer(r, VALUES, model=model))
    (rtu,) = one_round(modbus(model), lambda r: answered(r, model))
    assert values(telegram) == values(rtu)
    (ask,) = meter.tick(meter.wake_ms)
    assert isinstance(ask, Send)
    late = modbus_tcp_answer(ask.data, (9, 9, 9), model=model)
    assert reasons(found(meter.tick(meter.wake_ms))) == ["silence"]
    (again,) = meter.tick(meter.wake_ms)
    assert isinstance(again, Send)
    assert again.data[:2] != ask.data[:2]
    assert meter.feed(late, meter.wake_ms - 900) == []
    right = modbus_tcp_answer(again.data, VALUES, model=model)
    for at in range(len(right) - 1):
        assert meter.feed(right[at : at + 1], meter.wake_ms - 900) == []
    assert len(meter.feed(right[-1:], meter.wake_ms - 900)) == 1


def test_modbus_tcp_refusals_and_foreign_frames() -> None:
    meter = modbus("sdm630", TcpFrames(1))
    meter.tick(0)
    assert meter.feed(b"HTTP/1.1 400\r\n", 5) == []
    assert reasons(found(meter.tick(ANSWER_MS))) == ["syntax"]
    (event,) = one_round(
        modbus("sdm630", TcpFrames(1)), lambda r: modbus_tcp_answer(r, VALUES, model="dtsu666")
    )
    assert not isinstance(event, Telegram) or values(event)["power"] == 0


OWN = """
name = "A heat meter"
source = "its manual"
function = 3
[[registers]]
register = 30
shows = "drawn"
form = "uint16"
unit = "kW"
scale = 0.01
[[registers]]
register = 100
shows = "energy_import"
form = "uint64"
words = "little"
unit = "Wh"
"""


def test_an_owners_own_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "heat.toml"
    path.write_text(OWN)
    table = parse_meter(f'port = "x"\nprotocol = "modbus"\nmodel_file = "{path}"', "x")
    meter = make_meter(table)
    assert isinstance(meter, ModbusMeter)
    replies = [
        sealed(b"\x01\x03\x02" + (1234).to_bytes(2, "big")),
        sealed(b"\x01\x03\x08" + bytes.fromhex("e240 0001 0000 0000")),
    ]
    (telegram,) = one_round(meter, lambda _: replies.pop(0))
    assert values(telegram) == {"power": 12_340, "energy_import": 123_456}


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('shows = "drawn"', 'shows = "gas"', "registers"),
        ('unit = "kW"', 'unit = "kWh"', r"registers\[0\].unit"),
        ("register = 100", "register = 65536", "register"),
        ("scale = 0.01", "scale = nan", "registers"),
        ('shows = "energy_import"', 'shows = "drawn"', r"registers\[1\]"),
        ("function = 3", "function = 6", "function"),
        ('form = "uint16"', 'form = "bcd"', "form"),
        ('unit = "Wh"', 'unit = "Wh"\nwhen = "one"', r"registers\[1\].when"),
        ("name =", "name", "model_file"),
        ('source = "its manual"', "", "source"),
    ],
)
def test_a_table_that_is_none_is_refused_by_file_key_and_form(
    tmp_path: Path, old: str, new: str, key: str
) -> None:
    path = tmp_path / "heat.toml"
    path.write_text(OWN.replace(old, new, 1))
    with pytest.raises(ConfigError, match=key) as refused:
        own(path)
    assert "heat.toml" in str(refused.value)
    with pytest.raises(ConfigError, match="model_file"):
        own(tmp_path / "none.toml")


def test_every_named_model_has_a_table_and_every_table_a_name() -> None:
    folder = Path(models.__file__).parent / "models"
    assert {path.stem for path in folder.glob("*.toml")} == MODELS.keys()


def test_modbus_may_come_framed_for_tcp_and_a_model_may_name_its_line() -> None:
    text = 'port = "socket://h:502"\nprotocol = "modbus"\n'
    assert parse_meter(text + 'framing = "tcp"\naddress = 255', "x").address == 255
    for wrong in ('port = "x"\nprotocol = "modbus"\nframing = "tcp"', text + "address = 0"):
        with pytest.raises(ConfigError, match=r"meter\.(framing|address)"):
            parse_meter(wrong, "x")
    orno = parse_meter('port = "x"\nprotocol = "modbus"\nmodel = "orno-we-516"', "x")
    assert orno.line == (9600, 8, "E")


@given(
    st.sampled_from(["int16", "uint16", "int32", "uint32", "int64", "uint64"]),
    st.binary(min_size=8, max_size=8),
    st.sampled_from([Fraction(1), Fraction(1, 100), Fraction(-1000)]),
)
def test_SER_14_whole_numbers_are_exact(form: Any, octets: bytes, factor: Fraction) -> None:
    size = int(form.removeprefix("u").removeprefix("int")) // 8
    number = int.from_bytes(octets[:size], "big", signed=not form.startswith("u"))
    scaled, exact = nano_of(octets[:size], form, factor, "big"), number * factor * NANO
    swapped = b"".join(octets[at : at + 2] for at in range(size - 2, -1, -2))
    assert nano_of(swapped, form, factor, "little") == scaled
    assert scaled == (math.floor(exact) if -LIMIT < math.floor(exact) < LIMIT else None)


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
    meter = modbus()
    assert reasons(one_round(meter, lambda _: answers.pop(0))) == ["value"]


def test_SER_05_any_cut_of_an_answer_gives_the_same_telegram() -> None:
    for size in range(1, 9):

        def cut(data: bytes, size: int = size) -> list[bytes]:
            whole = answered(data)
            return [whole[a : a + size] for a in range(0, len(whole), size)]

        meter = modbus()
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
    (telegram,) = one_round(modbus(), lambda r: r + noise + answered(r))
    assert values(telegram) == SHOWN


def test_SER_02_every_flipped_bit_is_refused_and_the_next_round_is_read() -> None:
    for at in range(9):
        for bit in range(8):

            def damaged(data: bytes, at: int = at, bit: int = bit) -> bytes:
                whole = bytearray(answered(data))
                whole[at] ^= 1 << bit
                return bytes(whole)

            meter = modbus()
            (event,) = one_round(meter, damaged)
            assert reasons([event]) in (["crc"], ["syntax"])
            (telegram,) = one_round(meter, start_ms=meter.wake_ms)
            assert values(telegram) == SHOWN


def test_SER_03_half_an_answer_is_given_up_after_its_time() -> None:
    for size in range(1, 9):
        meter = modbus()
        meter.tick(0)
        assert meter.feed(answered(request(1, 0x34, 2))[:size], 50) == []
        assert meter.tick(ANSWER_MS - 1) == []
        (event,) = meter.tick(ANSWER_MS)
        assert isinstance(event, Discarded)
        assert event.size == size


def test_SER_22_a_meter_that_does_not_answer_is_asked_ever_more_rarely() -> None:
    meter, now_ms, gaps = modbus(), 123_457, []
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
    meter = modbus("sdm72")
    meter.tick(0)
    assert meter.feed(sealed(b"\x01\x84\x02"), 30) == [Discarded(5, "refused")]


def test_another_meters_answer_is_not_taken() -> None:
    meter = modbus(frames=RtuFrames(2))
    meter.tick(0)
    assert meter.feed(answered(request(1, 0x34, 2)), 30) == []
    assert reasons(found(meter.tick(ANSWER_MS))) == ["syntax"]


def test_bytes_that_nobody_asked_for_are_noise() -> None:
    assert modbus().feed(b"xyz", 0) == [Discarded(3, "noise")]


@pytest.mark.skipif(not EVERY_CAPTURE.is_dir(), reason="the large collection is not beside us")
def test_captures_of_a_bus_and_of_a_mixed_up_gateway() -> None:
    lines = (EVERY_CAPTURE / "modbus" / "sdm230_solax_bus.txt").read_text().splitlines()[1:]
    for line in lines:
        frame = bytes.fromhex(line[line.index(" ", 4) + 1 :].lstrip("<> "))
        assert sealed(frame[:-2]) == frame
    mixed = (EVERY_CAPTURE / "modbus" / "sdm630_scan_rtu_over_tcp.txt").read_text().splitlines()
    (tcp,) = [bytes.fromhex(line[2:]) for line in mixed if line.startswith("<")]
    meter = modbus()
    meter.tick(0)
    assert meter.feed(tcp, 30) == []
    assert reasons(found(meter.tick(ANSWER_MS))) == ["crc"]


@given(
    st.lists(
        st.binary(max_size=40)
        | st.sampled_from([answered(request(1, *one)) for one in ((0, 6), (0x34, 2), (0x48, 4))]),
        max_size=12,
    ),
    st.data(),
)
def test_SER_12_no_bytes_at_no_time_make_it_fail(chunks: list[bytes], data: st.DataObject) -> None:
    meter, now_ms = modbus(), 0
    assert isinstance(meter, Asker)
    for chunk in chunks:
        now_ms += data.draw(st.integers(0, 2 * ANSWER_MS))
        for event in [*meter.tick(now_ms), *meter.feed(chunk, now_ms)]:
            assert isinstance(event, Telegram | Discarded | Send)
        assert max(len(one) for one in reached(meter) if isinstance(one, bytes)) <= LIMIT_BYTES
        assert now_ms <= meter.wake_ms <= now_ms + MAX_BACKOFF_MS or meter.wake_ms <= now_ms


@pytest.mark.slow
def test_SER_12_a_million_random_answers_do_not_make_it_fail() -> None:
    import numpy as np  # noqa: PLC0415 (slow tests only)

    rng = np.random.default_rng(12)
    meter, now_ms = modbus(), 0
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
        meter = modbus()
        meter.tick(0)
        meter.feed(replies[0], 10)
        meter.feed(replies[1], 20)
        (telegram,) = meter.feed(replies[2], 30)
        assert isinstance(telegram, Telegram)

    assert costs_at_most(0.001, answer_all)
