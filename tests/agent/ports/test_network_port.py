"""Network adapters: a plain bridge, ser2net and pyserial's server, all on loopback."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from agent.config import parse_meter
from agent.errors import PortError
from agent.ports.open_port import open_port, retry_s
from agent.ports.port import GONE, NO_CONNECTION, PASSING, QUIET, Port
from firmware_stubs.meters import PtyPort
from firmware_stubs.meters.readout import readout_telegram, serve_readout
from firmware_stubs.meters.tcp_port import TcpPort
from firmware_stubs.meters.telegram import p1_telegram
from tests.agent.adapters import pyserial_server, ser2net
from tests.agent.meters.samples import heard, values
from tests.agent.paced import beside
from tests.agent.running.test_feed import Bench, make
from tests.integration.agent_bench import until
from tests.integration.conftest import free_port

__all__ = ["make"]  # a fixture
pytestmark = pytest.mark.integration

TCP_REPAIR = 19  # linux/tcp.h
TELEGRAM = p1_telegram(meter_id="E0099", time_s=1_800_000_000, import_wh=5, power_w=378)


@pytest.fixture
async def bridge() -> AsyncIterator[TcpPort]:
    port = TcpPort()
    await port.plug()
    yield port
    port.unplug()


async def collect(port: Port, size: int) -> bytes:
    found = b""
    async with asyncio.timeout(300):
        while len(found) < size:
            found += await port.read() or b""
    return found


async def endless(port: Port) -> None:
    async with asyncio.timeout(300):
        while True:
            await port.read(0.1)


async def test_bytes_pass_both_ways_and_silence_is_told(bridge: TcpPort) -> None:
    opened = await open_port(bridge.name, 9600, parity="N", data_bits=8, silence_s=0.05)
    with closing(opened) as port:
        await bridge.wait_for_reader()
        assert await port.read() is None
        every = bytes(range(256)) * 40
        assert await bridge.write(every)
        assert await collect(port, len(every)) == every
        assert port.write(every[:512])
        got = b""
        while len(got) < 512:
            got += await bridge.read()
        assert got == every[:512]
        assert await bridge.write(every[:1])
        async with asyncio.timeout(300):
            while (data := await port.read(1e-14)) is None:  # looks, and lets others run
                pass
        assert data == every[:1]


async def test_SER_08_a_connection_that_ends_reads_as_gone_and_costs_nothing(
    bridge: TcpPort,
) -> None:
    port = await open_port(bridge.name, 9600)
    await bridge.wait_for_reader()
    await bridge.write(b"last")
    assert await collect(port, 4) == b"last"
    bridge.unplug()
    with pytest.raises(PortError) as gone:
        await port.read(3600)
    assert (gone.value.reason, gone.value.path) == (GONE, bridge.name)
    port.close()
    port.close()
    for use in (port.read(), asyncio.to_thread(port.write, b"x")):
        with pytest.raises(PortError, match=GONE):
            await use


async def test_SER_22_a_peer_that_takes_nothing_does_not_block(bridge: TcpPort) -> None:
    with closing(await open_port(bridge.name, 9600)) as port:
        await bridge.wait_for_reader()
        taken = sum(port.write(b"x" * 100_000) for _ in range(200))
        assert taken < 200  # nobody reads there


async def test_a_peer_that_says_nothing_for_long_is_called_quiet(bridge: TcpPort) -> None:
    with closing(await open_port(bridge.name, 9600, silence_s=0.05, quiet_s=2)) as port:
        assert await port.read() is None
        with pytest.raises(PortError) as quiet:
            await endless(port)
    assert quiet.value.reason == QUIET
    assert quiet.value.reason in PASSING


def connected_to(peer: tuple[str, int]) -> socket.socket:
    """Return a second handle of this process's socket that is connected there."""
    for handle in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # no socket, or not connected
            found = socket.fromfd(int(handle.name), socket.AF_INET, socket.SOCK_STREAM)
            with found:
                if found.getpeername() == peer:
                    return found.dup()
    raise AssertionError("no socket of this process is connected there")


async def test_a_peer_that_vanished_without_a_word_is_noticed_by_keep_alive() -> None:
    """Its socket is taken away without a FIN, as when an adapter loses power and comes back."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"socket://127.0.0.1:{server.getsockname()[1]}"
        port = await open_port(address, 9600, quiet_s=3600)
        with connected_to(server.getsockname()) as sock:
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            for option, value in (("IDLE", 15), ("INTVL", 5), ("CNT", 3)):
                name = getattr(socket, f"TCP_KEEP{option}")
                assert sock.getsockopt(socket.IPPROTO_TCP, name) == value
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 1)  # do not wait for 15 s
        peer, _ = server.accept()
        try:
            peer.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        except PermissionError:
            pytest.skip("only root may take a socket away without a word")
        finally:
            peer.close()
        with closing(port), pytest.raises(PortError, match=GONE):
            await endless(port)


async def test_SER_23_what_cannot_be_reached_is_said_with_a_remedy() -> None:
    for host, port, why in (
        ("[1..2]", 4000, "no host can have this name"),
        ("127.0.0.1", free_port(), "Connection refused"),
        ("no-such-host.invalid", 2000, "Name or service not known|Temporary failure|No address"),
    ):
        with pytest.raises(PortError, match=f"({why}).*nobody else connected") as refused:
            await open_port(f"socket://{host}:{port}", 9600)
        assert refused.value.reason == NO_CONNECTION


async def test_a_plain_adapter_cannot_be_told_another_speed(bridge: TcpPort) -> None:
    with closing(await open_port(bridge.name, 9600)) as port:
        port.set_baud(9600)
        with pytest.raises(PortError, match="use rfc2217://"):
            port.set_baud(300)


async def test_a_server_that_does_not_speak_telnet_is_said_not_to(
    bridge: TcpPort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.ports.network_port.CONNECT_S", 0.2)  # do not wait for 10 s
    with pytest.raises(PortError, match=r"does not speak RFC 2217.*socket://HOST:PORT"):
        await open_port(bridge.name.replace("socket", "rfc2217"), 9600)


# real servers


async def test_a_telegram_comes_through_ser2net_as_plain_tcp(pty: PtyPort, tmp_path: Path) -> None:
    with ser2net(pty.link, tmp_path, rfc2217=False) as number:
        port = await open_port(f"socket://127.0.0.1:{number}", 115_200)
        await pty.wait_for_reader()
        await pty.write(TELEGRAM)
        assert await collect(port, len(TELEGRAM)) == TELEGRAM
        port.close()


@pytest.mark.parametrize("server", ["ser2net", "pyserial"])
async def test_a_telegram_and_every_byte_come_through_rfc2217(
    pty: PtyPort, tmp_path: Path, server: str
) -> None:
    sent = TELEGRAM + bytes(range(256)) + b"\xff" * 9
    if server == "ser2net":
        with ser2net(pty.link, tmp_path, rfc2217=True) as number:
            await _pass(number, pty, sent)
    else:
        with pyserial_server(pty.link) as (number, line):
            await _pass(number, pty, sent)
            assert (line.baudrate, line.bytesize, line.parity) == (2400, 8, "N")


async def _pass(number: int, pty: PtyPort, sent: bytes) -> None:
    name = f"rfc2217://127.0.0.1:{number}"
    with closing(await open_port(name, 9600, parity="N", data_bits=8)) as port:
        await pty.wait_for_reader()
        await pty.write(sent)
        assert await collect(port, len(sent)) == sent
        port.set_baud(2400)
        assert port.write(b"\xff\x00ask")
        got = b""
        async with asyncio.timeout(300):
            while len(got) < 5:
                got += await pty.read()
        assert got == b"\xff\x00ask"
        await pty.write(b"again")  # the answer to the new speed has come by then
        assert await collect(port, 5) == b"again"


async def test_a_meter_that_changes_its_speed_is_asked_through_rfc2217(pty: PtyPort) -> None:
    with pyserial_server(pty.link) as (number, line):
        table = parse_meter(
            f'port = "rfc2217://127.0.0.1:{number}"\nprotocol = "iec62056-21"\nmode = "request"',
            "x",
        )
        serving = asyncio.create_task(serve_readout(pty, lambda: 378))
        baud, data_bits, parity = table.line
        opened = await open_port(table.port, baud, parity="N", data_bits=8)
        assert (data_bits, parity) == (7, "E")  # which a pseudo-terminal does not have
        with closing(opened) as port:
            (found,) = await heard(port, table)
        serving.cancel()
        assert values(found)["power"] == 378
        assert line.baudrate == 9600


# the feed


async def test_SER_09_a_feed_comes_back_by_itself_and_says_each_change_once(
    make: type[Bench], bridge: TcpPort, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(port=bridge.name)  # type: ignore[call-arg] # the fixture gives the path
    caplog.set_level(logging.INFO)
    async with beside(bench.feed.run()), asyncio.timeout(300):
        for count in (1, 2, 3):
            await bridge.wait_for_reader()
            await bridge.write(TELEGRAM)
            await until(lambda count=count: bench.feed.counts["believed"] == count)  # type: ignore[misc]
            assert bench.feed.health == "ok"
            bridge.hang_up()
        bridge.unplug()
        await until(lambda: bench.feed.health == "degraded: port gone")
    said = [r.message for r in caplog.records if r.message.startswith("port")]
    assert sum(line.endswith(": open") for line in said) == 3
    assert not any("in the clear" in line for line in said)  # it is this machine


async def test_SER_23_a_server_that_hangs_up_at_once_is_tried_ever_more_rarely(
    make: type[Bench], bridge: TcpPort, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(port=bridge.name)  # type: ignore[call-arg] # same
    waits = [retry_s(bridge.name, failures) for failures in range(12)]
    assert all(0.75 * 2**k <= wait <= 2**k for k, wait in enumerate(waits[:5]))
    assert all(22 <= wait <= 30 for wait in waits[5:])
    assert retry_s("/dev/ttyUSB0", 100) == 1
    caplog.set_level(logging.INFO)
    async with beside(bench.feed.run()), asyncio.timeout(300):
        for _ in range(2):
            await bridge.wait_for_reader()
            bridge.hang_up()
            await asyncio.sleep(0.05)
    said = [r.message.split(";")[0] for r in caplog.records if r.message.startswith("port")]
    # after the first attempt "open" is said when a telegram comes
    assert said == [f"port {bridge.name}: open", f"port {bridge.name}: gone"]


async def test_readings_in_the_clear_are_warned_of(
    make: type[Bench], caplog: pytest.LogCaptureFixture
) -> None:
    bench = make(port="socket://192.0.2.1:9")  # type: ignore[call-arg] # same
    async with beside(bench.feed.run()):
        await until(lambda: "readings cross the network in the clear" in caplog.text)


async def test_SER_35_a_line_of_seven_bits_is_read_through_a_bridge_of_eight(
    bridge: TcpPort,
) -> None:
    table = parse_meter(f'port = "{bridge.name}"\nprotocol = "iec62056-21"', "x")
    baud, data_bits, parity = table.line
    text = readout_telegram(meter_id="E9", time_s=0, import_wh=5, power_w=378)
    sent = bytes(byte | 0x80 * (byte.bit_count() % 2) for byte in text)
    opened = await open_port(bridge.name, baud, parity=parity, data_bits=data_bits)
    with closing(opened) as port:
        await bridge.wait_for_reader()
        await bridge.write(sent)
        (found,) = await heard(port, table)
    assert values(found)["power"] == 378


async def test_a_meter_that_keeps_its_speed_is_asked_through_a_plain_bridge(
    bridge: TcpPort,
) -> None:
    lines = 'protocol = "iec62056-21"\nmode = "request"\nkeep_speed = true'
    table = parse_meter(f'port = "{bridge.name}"\n{lines}', "x")
    baud, data_bits, parity = table.line
    async with beside(serve_readout(bridge, lambda: 378, reaction_s=0.02)):
        opened = await open_port(bridge.name, baud, parity=parity, data_bits=data_bits)
        with closing(opened) as port:
            (found,) = await heard(port, table)
    assert values(found)["power"] == 378
