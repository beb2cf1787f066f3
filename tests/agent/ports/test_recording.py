"""Recordings: what is written is what is read, and a parser does again what it did."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import ConfigError
from agent.meters.modbus.frames import RtuFrames
from agent.meters.modbus.meter import ModbusMeter
from agent.meters.modbus.models import shipped
from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import Discarded, Send, Telegram
from agent.ports.recording import RECEIVED, SENT, TOLD, LineEvent, as_line, line_events, replayed
from firmware_stubs.meters.modbus import modbus_answer
from firmware_stubs.meters.telegram import p1_telegram
from tests.agent.meters.samples import reasons, values

TELEGRAM = p1_telegram(meter_id="E0099", time_s=1_767_571_200, import_wh=5, power_w=378)


def asking(poll_ms: int) -> ModbusMeter:
    return ModbusMeter(shipped("sdm630"), RtuFrames(1), poll_ms=poll_ms)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from("<>."), st.binary(max_size=40))))
def test_what_is_written_is_read_again(parts: list[tuple[int, str, bytes]]) -> None:
    passed, at_ms = [], 0
    for step_ms, mark, octets in parts:
        at_ms += step_ms
        passed.append(LineEvent(at_ms, mark, octets))
    lines = [as_line(event) for event in passed]
    assert all(line.isascii() for line in lines)
    assert list(line_events(lines, "f")) == passed


def test_a_line_that_was_cut_at_the_end_is_left_out() -> None:
    lines = ["5 < 2f\n", "6 < 2"]
    assert list(line_events(lines, "f")) == [LineEvent(5, RECEIVED, b"/")]


@pytest.mark.parametrize(
    "line", ["x < 2f\n", "5 ? 2f\n", "5 < 2\n", "5 < zz\n", "\n", "4 .\n", "9" * 16 + " .\n"]
)
def test_any_other_line_is_refused_by_its_number_and_not_quoted(line: str) -> None:
    with pytest.raises(ConfigError, match=r"f: line 3: expected") as refused:
        list(line_events(["5 .\n", line], "f"))
    assert line.strip() == "" or line.strip() not in str(refused.value)


def test_bytes_do_not_show_in_a_representation() -> None:
    assert "378" not in repr(LineEvent(1, RECEIVED, b"378"))


def test_a_meter_that_speaks_is_replayed_with_its_silences() -> None:
    half = [
        LineEvent(1, RECEIVED, TELEGRAM[:50]),
        LineEvent(600, TOLD),
        LineEvent(700, RECEIVED, TELEGRAM),
    ]
    found = list(replayed(P1Meter(), half))
    assert reasons(found) == ["cut", ""]
    assert values(found[1])["power"] == 378
    assert list(replayed(P1Meter(), half[:1])) == []


def test_a_meter_that_is_asked_is_replayed_with_the_times_it_was_told() -> None:
    passed: list[LineEvent] = []
    live: list[Telegram | Discarded] = []
    meter, at_ms = asking(1000), 5000
    for round_ in range(6):
        for event in meter.tick(at_ms):
            passed.append(LineEvent(at_ms, TOLD))
            while isinstance(event, Send):
                passed.append(LineEvent(at_ms, SENT, event.data))
                if round_ in (1, 2):
                    break  # no answer
                at_ms += 30
                said = modbus_answer(event.data, (378, 5, 0), address=1, model="sdm630")
                passed.append(LineEvent(at_ms, RECEIVED, said))
                (event,) = meter.feed(said, at_ms)  # noqa: PLW2901 (the next of the talk)
            if isinstance(event, Telegram | Discarded):
                live.append(event)
        at_ms = max(meter.wake_ms, at_ms) + 7
    assert reasons(live).count("") >= 2
    assert "silence" in reasons(live)
    assert list(replayed(asking(1000), passed)) == live
