"""IEC 62056-21 modes B and C: dialogue, time-outs, captures (SER-02..05, 11, 12, 22)."""

from functools import reduce
from itertools import pairwise
from operator import xor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.meters.obis.readout_request import LIMIT_BYTES, MAX_BACKOFF_MS, RequestMeter
from agent.meters.reading import Asker, Discarded, Event, Send, SetBaud, Telegram
from tests.agent.meters.samples import EVERY_CAPTURE, reasons, values

IDENTITY = b"/TST5METER-1\r\n"
SIGN_ON = Send(b"/?!\r\n")
SENT_MS = 210  # six characters of ten bits at 300 baud, and 10 ms that an adapter may take
ACKNOWLEDGE = Send(b"\x06050\r\n")


def text(*lines: str) -> bytes:
    """Return a readout from STX to its check byte."""
    body = "\r\n".join((*lines, "!", "")).encode() + b"\x03"
    return b"\x02" + body + bytes([reduce(xor, body)])


WHOLE = text("0.0.0(7)", "1.8.0(022108.7*kWh)", "1.7.0(00.49*kW)")


def at_text(meter: RequestMeter, identity: bytes = IDENTITY, now_ms: int = 0) -> int:
    """Lead a meter to where it waits for the text; return the time."""
    assert meter.tick(now_ms) == [SetBaud(300), SIGN_ON]
    assert meter.feed(identity, now_ms + 700) == []
    assert meter.tick(now_ms + 900) == []
    assert meter.tick(now_ms + 950) == [ACKNOWLEDGE]
    assert meter.tick(now_ms + SENT_MS - 1 + 950) == []
    assert meter.tick(now_ms + SENT_MS + 950) == [SetBaud(9600)]
    return now_ms + SENT_MS + 950


def told(events: list[Event]) -> list[Telegram | Discarded]:
    return [event for event in events if isinstance(event, Telegram | Discarded)]


def test_a_meter_is_signed_on_acknowledged_and_read_at_its_speed() -> None:
    meter = RequestMeter()
    now_ms = at_text(meter)
    (telegram,) = told(meter.feed(WHOLE, now_ms + 500))
    assert values(telegram) == {"power": 490, "energy_import": 22_108_700}
    assert isinstance(telegram, Telegram)
    assert telegram.meter_id == "7"
    assert meter.wake_ms == 10_000
    assert meter.tick(10_000) == [SetBaud(300), SIGN_ON]


def test_an_echo_of_what_was_sent_costs_nothing() -> None:
    meter = RequestMeter()
    now_ms = at_text(meter, b"\x7f\x7f/?!\r\n" + IDENTITY)
    (telegram,) = told(meter.feed(ACKNOWLEDGE.data + WHOLE, now_ms))
    assert "power" in values(telegram)


@pytest.mark.parametrize(("code", "baud"), [(b"0", 300), (b"3", 2400), (b"6", 19_200)])
def test_the_speed_is_the_one_the_meter_offers(code: bytes, baud: int) -> None:
    meter = RequestMeter(device_address="12")
    assert meter.tick(0) == [SetBaud(300), Send(b"/?12!\r\n")]
    meter.feed(b"/TST" + code + b"X\r\n", 1)
    assert meter.tick(251) == [Send(b"\x060" + code + b"0\r\n")]
    assert meter.tick(251 + SENT_MS) == [SetBaud(baud)]


@pytest.mark.parametrize("late_ms", [220, 250, 400, 1500, 1700])
def test_SER_22_an_answer_20_ms_after_the_acknowledgement_finds_the_line_switched_C1(
    late_ms: int,
) -> None:
    """The acknowledgement takes 200 ms at 300 baud; what comes earlier is of no meter."""
    meter = RequestMeter()
    meter.tick(0)
    meter.feed(IDENTITY, 700)
    assert meter.tick(950) == [ACKNOWLEDGE]
    assert meter.wake_ms <= 950 + 220
    assert meter.tick(meter.wake_ms) == [SetBaud(9600)]
    assert meter.feed(WHOLE[:1], 950 + late_ms) == []
    (telegram,) = told(meter.feed(WHOLE[1:], 950 + late_ms + 100))
    assert values(telegram) == {"power": 490, "energy_import": 22_108_700}


def test_an_answer_that_begins_before_the_switch_is_kept_C1() -> None:
    """Of a meter that keeps its speed: nothing has to be switched for it."""
    for keep_speed in (True, False):
        meter = RequestMeter(keep_speed=keep_speed)
        meter.tick(0)
        meter.feed(IDENTITY, 700)
        meter.tick(950)
        assert meter.feed(WHOLE[:20], 960) == []
        meter.tick(950 + SENT_MS)
        (telegram,) = told(meter.feed(WHOLE[20:], 1900))
        assert values(telegram) == {"power": 490, "energy_import": 22_108_700}


@pytest.mark.parametrize("identity", [IDENTITY, b"/TSTCX\r\n"])
@pytest.mark.parametrize("baud", [300, 9600])
def test_the_speed_of_the_sign_on_is_kept_where_asked_for(identity: bytes, baud: int) -> None:
    meter = RequestMeter(sign_on_baud=baud, keep_speed=True)
    assert meter.tick(0) == [SetBaud(baud), SIGN_ON]
    if identity == IDENTITY:
        meter.feed(identity, 700)
        assert meter.tick(950) == [Send(b"\x06000\r\n")]
        assert meter.tick(meter.wake_ms) == []
        (telegram,) = told(meter.feed(WHOLE, 1500))
        assert values(telegram) == {"power": 490, "energy_import": 22_108_700}
    else:
        assert reasons(told(meter.feed(identity, 700))) == ["syntax"], "mode B changes by itself"


def test_in_mode_B_the_speed_changes_without_a_word() -> None:
    meter = RequestMeter()
    meter.tick(0)
    assert meter.feed(b"/TSTCX\r\n", 700) == [SetBaud(2400)]
    assert reasons(told(meter.feed(WHOLE, 1000))) == [""]


@pytest.mark.parametrize("identity", [b"/TST\r\n", b"/TSTZX\r\n", b"/TST9X\r\n", b"/\r\n"])
def test_a_meter_of_another_mode_is_refused(identity: bytes) -> None:
    meter = RequestMeter()
    meter.tick(0)
    assert reasons(told(meter.feed(identity, 5))) == ["syntax"]


def test_SER_05_any_cut_gives_the_same_telegram() -> None:
    for size in range(1, len(WHOLE)):
        meter, events = RequestMeter(), []
        now_ms = at_text(meter)
        for a in range(0, len(WHOLE), size):
            events += meter.feed(WHOLE[a : a + size], now_ms)
        assert [type(event) for event in events] == [Telegram]


def test_SER_02_every_flipped_bit_is_refused_and_the_next_round_is_read() -> None:
    for at in range(len(WHOLE)):
        for bit in range(8):
            flipped = bytearray(WHOLE)
            flipped[at] ^= 1 << bit
            meter = RequestMeter()
            now_ms = at_text(meter)
            events = meter.feed(bytes(flipped), now_ms)
            events += meter.tick(meter.wake_ms) if not events else []
            assert reasons(told(events)) != [""], (at, bit)
            now_ms = at_text(meter, now_ms=meter.wake_ms)
            assert reasons(told(meter.feed(WHOLE, now_ms))) == [""]


def test_SER_03_half_a_text_is_given_up_after_silence() -> None:
    for size in range(1, len(WHOLE)):
        meter = RequestMeter()
        now_ms = at_text(meter)
        assert meter.feed(WHOLE[:size], now_ms + 5) == []
        assert meter.tick(now_ms + 2004) == []
        assert meter.tick(now_ms + 2005) == [Discarded(size, "cut")]


def test_SER_11_what_never_ends_is_given_up_at_a_limit() -> None:
    meter = RequestMeter()
    now_ms, counted = at_text(meter), 0
    while not (events := meter.feed(b"x" * 1000, now_ms)):
        counted += 1000
    assert reasons(told(events)) == ["length"]
    assert counted <= LIMIT_BYTES
    meter = RequestMeter()
    meter.tick(0)
    assert reasons(told(meter.feed(b"x" * 300, 5))) == ["length"]


def test_SER_21_another_meters_readout_is_counted_not_read() -> None:
    meter = RequestMeter(meter_id="8")
    now_ms = at_text(meter)
    assert meter.feed(WHOLE, now_ms) == [Discarded(len(WHOLE), "identity")]


def test_SER_22_a_meter_that_does_not_answer_is_asked_ever_more_rarely() -> None:
    meter, now_ms, gaps = RequestMeter(), 1_234_567, []
    for _ in range(12):
        assert SIGN_ON in meter.tick(now_ms)
        now_ms = meter.wake_ms
        assert meter.tick(now_ms) == [Discarded(0, "silence")]
        gaps.append(meter.wake_ms - now_ms)
        now_ms = meter.wake_ms
    assert all(later >= earlier * 3 / 4 for earlier, later in pairwise(gaps))
    assert MAX_BACKOFF_MS * 3 / 4 - 1 <= gaps[-1] <= MAX_BACKOFF_MS


@given(
    st.lists(st.binary(max_size=30) | st.sampled_from([IDENTITY, WHOLE]), max_size=15), st.data()
)
def test_SER_12_no_bytes_at_no_time_make_it_fail(chunks: list[bytes], data: st.DataObject) -> None:
    meter, now_ms = RequestMeter(), 0
    assert isinstance(meter, Asker)
    for chunk in chunks:
        now_ms += data.draw(st.integers(0, 4000))
        for event in [*meter.tick(now_ms), *meter.feed(chunk, now_ms)]:
            assert isinstance(event, Event)
            assert repr(event).isprintable()


@pytest.mark.skipif(not EVERY_CAPTURE.is_dir(), reason="the large collection is not beside us")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "iskra_mt174_modec.raw",
            {"power": 908, "power_export": 0, "energy_import": 8_048_375, "energy_export": 0},
        ),
        ("siemens_2wr5_modec.raw", "crc"),  # anonymised: its check byte is that of other values
        ("itron_em214_modec.raw", "cut"),  # ends without its check byte
    ],
)
def test_captures_are_read_or_refused_as_recorded(
    name: str, expected: dict[str, int] | str
) -> None:
    raw = (EVERY_CAPTURE / "d0" / name).read_bytes()
    start = raw.index(b"\x02")
    meter = RequestMeter()
    meter.tick(0)
    if not meter.feed(raw[:start], 5):  # mode C; the Siemens one has mode B
        meter.tick(meter.wake_ms)
        meter.tick(meter.wake_ms)
    events = meter.feed(raw[start:], meter.wake_ms)
    (event,) = told(events or meter.tick(meter.wake_ms))
    assert (event.reason if isinstance(event, Discarded) else values(event)) == expected
