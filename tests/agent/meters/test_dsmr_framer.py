"""Cutting bytes into frames: any cut, any noise, bounded memory (docs/faults.md, SER)."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.meters.dsmr import LIMIT_BYTES, P1Framer, P1Meter, RawTelegram
from agent.meters.reading import Discarded, Telegram
from tests.agent.meters.samples import SHORT, STREAM, V4, V5, capture, only, reasons

PIECES = st.sampled_from(
    [
        b"/",
        b"!",
        b"\n",
        b"\r\n",
        b"abc",
        b"/a!1\r\n",
        b"/TST\r\n\r\n!ABCD\r\n",
        b"\x00\xff",
        b"0" * 9,
    ]
)


def events_of(framer: P1Framer, chunks: list[bytes]) -> list[RawTelegram | Discarded]:
    return [event for chunk in chunks for event in framer.feed(chunk)] + list(framer.silence())


@given(st.lists(PIECES, max_size=30).map(b"".join), st.data())
def test_SER_05_any_cut_of_any_stream_gives_the_same_events(
    stream: bytes, data: st.DataObject
) -> None:
    at = data.draw(st.lists(st.integers(0, len(stream)), max_size=20).map(sorted))
    chunks = [stream[a:b] for a, b in pairwise([0, *at, len(stream)])]
    whole = events_of(P1Framer(limit_bytes=24), [stream])
    assert events_of(P1Framer(limit_bytes=24), chunks) == whole
    assert (
        events_of(P1Framer(limit_bytes=24), [stream[i : i + 1] for i in range(len(stream))])
        == whole
    )


def test_SER_05_a_capture_split_in_one_thousand_ways_gives_the_same_frames() -> None:
    stream = capture(STREAM)
    whole = events_of(P1Framer(), [stream])
    assert sum(isinstance(event, RawTelegram) for event in whole) == 38
    rng = np.random.default_rng(5)
    for _ in range(1000):
        at = [0, *np.sort(rng.integers(0, len(stream), rng.integers(1, 60))).tolist(), len(stream)]
        assert events_of(P1Framer(), [stream[a:b] for a, b in pairwise(at)]) == whole


def test_SER_05_two_telegrams_in_one_read_and_one_in_reads_of_a_byte() -> None:
    both = capture(V4) + capture(V5)
    glued = P1Meter().feed(both)
    meter = P1Meter()
    assert [event for byte in both for event in meter.feed(bytes([byte]))] == glued
    assert reasons(glued) == ["", ""]


def test_SER_01_noise_between_telegrams_costs_none_of_them() -> None:
    rng = np.random.default_rng(1)
    meter = P1Meter()
    found = [event for _ in range(100) for event in meter.feed(rng.bytes(1024) + capture(SHORT))]
    assert sum(isinstance(event, Telegram) for event in found) == 100
    junk = sum(event.size for event in found if isinstance(event, Discarded))
    assert 100 * 1024 * 0.98 < junk <= 100 * 1024  # all but CR and LF outside of frames


def test_line_ends_between_telegrams_are_no_noise() -> None:
    assert reasons(P1Meter().feed(b"\r\n\r\n" + capture(V5) + b"\r\n" + capture(V5))) == ["", ""]


def test_SER_03_half_a_telegram_and_silence_give_nothing_and_cost_nothing() -> None:
    whole = capture(V5)
    meter = P1Meter()
    for size in range(1, len(whole)):
        assert meter.feed(whole[:size]) == []
        assert meter.silence() == [Discarded(size, "cut")]
        assert meter.silence() == []
    assert reasons(meter.feed(whole)) == [""]


def test_SER_04_half_a_telegram_and_then_a_whole_one_give_exactly_one() -> None:
    whole = capture(SHORT)
    for size in range(1, len(whole)):
        meter = P1Meter()
        assert reasons(meter.feed(whole[:size] + whole)) == ["cut", ""]


def test_SER_11_fifty_megabytes_without_a_line_end_are_counted_not_kept() -> None:
    assert LIMIT_BYTES <= 64 * 1024
    chunk = b"x" * 1_000_000
    for start in (b"", b"/"):
        framer = P1Framer()
        framer.feed(start)
        tracemalloc.start()
        counted = sum(event.size for _ in range(50) for event in framer.feed(chunk))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        counted += sum(event.size for event in framer.silence())
        assert counted == 50_000_000 + len(start)
        assert peak < 4_000_000  # the chunk itself and its copy


def test_a_telegram_longer_than_the_limit_is_refused_and_the_next_is_read() -> None:
    long = b"/TST5\r\n\r\n" + b"x" * LIMIT_BYTES + b"\r\n!ABCD\r\n"
    found = P1Meter().feed(long + capture(V5))
    assert reasons(found) == ["length", "noise", ""]
    assert found[0] == Discarded(LIMIT_BYTES, "length")


@pytest.mark.parametrize(("spare", "reason"), [(0, ""), (-1, "length")])
def test_the_limit_counts_every_byte_of_a_telegram(spare: int, reason: str) -> None:
    whole = capture(SHORT)
    found = P1Meter(limit_bytes=len(whole) + spare).feed(whole)
    assert reasons(found) == [reason]


def test_an_empty_telegram_ends_where_it_ends_and_is_refused() -> None:
    assert P1Framer().feed(b"/!\r\n") == [RawTelegram(b"/!", b"\r")]
    assert reasons(P1Meter().feed(b"/!\r\n" + capture(SHORT))) == ["crc", ""]


def test_silence_tells_of_noise_that_no_telegram_followed() -> None:
    framer = P1Framer()
    assert framer.feed(b"garbage") == []
    assert framer.silence() == [Discarded(7, "noise")]


def test_a_frame_knows_how_many_bytes_it_was_received_in() -> None:
    frame = only(list(P1Meter(meter_id="another").feed(capture(V5))))
    assert frame == Discarded(len(capture(V5)), "identity")
