"""A series of powers played as telegrams."""

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import islice, repeat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.meters import Telegram
from agent.meters.obis.dsmr import P1Meter
from agent.ports.open_port import open_port
from agent.ports.port import Port
from edge_ldp.service.clock import Clock
from firmware_stubs.meters import PtyPort, Series, play

START_S = 1_767_571_200


def telegrams(series: Series, count: int | None = None) -> list[tuple[int, Telegram]]:
    meter = P1Meter()
    found = []
    for time_s, made in islice(series.telegrams(), count):
        (telegram,) = meter.feed(made)
        assert isinstance(telegram, Telegram)
        found.append((time_s, telegram))
    return found


def shown(telegram: Telegram, quantity: str) -> int:
    return next(r.value for r in telegram.readings if r.quantity == quantity)


@given(st.lists(st.integers(-9000, 9000), max_size=12), st.sampled_from([1, 300, 900]))
def test_registers_are_the_exact_integral_of_the_power_before(
    power_w: list[int], step_s: int
) -> None:
    series = Series(power_w, START_S, step_s, "E1", base_wh=7)
    for k, (time_s, telegram) in enumerate(telegrams(series)):
        assert time_s == telegram.time_s == START_S + k * step_s
        assert shown(telegram, "power") - shown(telegram, "power_export") == power_w[k]
        imported_ws = sum(max(power, 0) * step_s for power in power_w[:k])
        exported_ws = sum(max(-power, 0) * step_s for power in power_w[:k])
        assert shown(telegram, "energy_import") == 7 + imported_ws // 3600
        assert shown(telegram, "energy_export") == exported_ws // 3600


def test_a_register_rolls_over_as_a_real_one() -> None:
    series = Series(repeat(4000), START_S, 900, "E1", base_wh=10**9 - 1000)
    registers = [shown(telegram, "energy_import") for _, telegram in telegrams(series, 3)]
    assert registers == [999_999_000, 0, 1000]


@pytest.fixture
async def wire(tmp_path: Path) -> AsyncIterator[tuple[PtyPort, Port]]:
    pty = PtyPort(tmp_path / "meter")
    pty.plug()
    port = await open_port(str(pty.link), 115_200, silence_s=0.05)
    await pty.wait_for_reader()
    yield pty, port
    port.close()
    pty.unplug()


async def hear(port: Port, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += await port.read() or b""
    return found


@pytest.mark.integration
async def test_each_telegram_is_sent_when_the_clock_reaches_it_never_before(
    wire: tuple[PtyPort, Port],
) -> None:
    pty, port = wire
    clock = Clock(START_S, time.time(), 9000.0)
    times: list[float] = []

    def note(_: int, telegram: bytes) -> bytes:
        times.append(clock.now())
        return telegram

    series = Series([100, 200, 300], START_S + 450, 900, "E1")
    size = sum(len(made) for _, made in series.telegrams())
    heard, received = await asyncio.gather(
        play(pty, series, clock, note), asyncio.wait_for(hear(port, size), 60)
    )
    assert heard == 3
    assert received == b"".join(made for _, made in series.telegrams())
    for at_s, (time_s, _) in zip(times, series.telegrams(), strict=True):
        assert at_s >= time_s


DUE = Clock(START_S, 0, 1.0)  # every telegram is due


@pytest.mark.integration
async def test_a_slow_reader_is_waited_for_and_gets_every_telegram(
    wire: tuple[PtyPort, Port],
) -> None:
    pty, port = wire
    series = Series(range(60), START_S, 900, "E1")  # twice what the kernel holds
    playing = asyncio.ensure_future(play(pty, series, DUE))
    await asyncio.sleep(0.05)
    assert not playing.done()
    sent = b"".join(made for _, made in series.telegrams())
    assert await asyncio.wait_for(hear(port, len(sent)), 60) == sent
    assert await playing == 60


@pytest.mark.integration
async def test_scripted_damage_is_told_which_telegram_it_gets(wire: tuple[PtyPort, Port]) -> None:
    pty, port = wire
    series = Series([1, 2, 3], START_S, 900, "E1")
    heard = await play(pty, series, DUE, lambda k, made: b"noise" if k == 1 else made)
    (_, first), _, (_, last) = series.telegrams()
    assert heard == 3
    assert await hear(port, len(first + last) + 5) == first + b"noise" + last


@pytest.mark.integration
async def test_SER_09_the_meter_goes_on_while_its_port_is_unplugged(
    wire: tuple[PtyPort, Port],
) -> None:
    pty, _ = wire

    def pull(k: int, made: bytes) -> bytes:
        if k == 1:
            pty.unplug()
        return made

    assert await play(pty, Series([1, 2, 3], START_S, 900, "E1"), DUE, pull) == 1
