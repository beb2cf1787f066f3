"""Real serial servers in front of a pseudo-terminal: ser2net, and pyserial's own."""

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import serial
import serial.rfc2217

from tests import needs
from tests.integration.conftest import free_port

HOST = "127.0.0.1"
START_S = 300
SER2NET = """
connection: &meter
  accepter: {accepter},tcp,{host},{port}
  connector: serialdev,{device},300n81,local
  options:
    kickolduser: false
"""


@contextmanager
def ser2net(
    device: Path, directory: Path, *, rfc2217: bool, port: int | None = None
) -> Iterator[int]:
    """Run ser2net on a device; gives its TCP port."""
    binary = needs.program("ser2net")
    port, config = port or free_port(), directory / "ser2net.yaml"
    accepter = "telnet(rfc2217)" if rfc2217 else "raw"
    text = SER2NET.format(accepter=accepter, host=HOST, port=port, device=device)
    config.write_text(text.replace("raw,", ""))
    process = subprocess.Popen([binary, "-n", "-c", str(config)])
    try:
        until_s = time.monotonic() + START_S
        while not _listens(port):
            assert process.poll() is None
            assert time.monotonic() < until_s
            time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait(START_S)


def _listens(port: int) -> bool:
    """Look without connecting: a connection would occupy the adapter."""
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return any(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in rows)


class _Line(serial.Serial):  # type: ignore[misc] # pyserial has no types
    """A pseudo-terminal, which has none of a modem's wires."""

    cts = dsr = ri = cd = False

    def _update_dtr_state(self) -> None:
        pass

    def _update_rts_state(self) -> None:
        pass


@contextmanager
def pyserial_server(device: Path) -> Iterator[tuple[int, serial.Serial]]:
    """Serve a device by pyserial's RFC 2217 manager, one client; gives port and device."""
    line = _Line(str(device), 300, timeout=0.02)
    server = socket.create_server((HOST, 0))
    ended = threading.Event()
    thread = threading.Thread(target=_serve, args=(server, line, ended))
    thread.start()
    try:
        yield int(server.getsockname()[1]), line
    finally:
        ended.set()
        server.close()
        thread.join(START_S)
        line.close()


def _serve(server: socket.socket, line: serial.Serial, ended: threading.Event) -> None:
    server.settimeout(0.05)
    while not ended.is_set():
        try:
            client, _ = server.accept()
        except OSError:  # nobody yet, or closed at the end
            continue
        with client:
            _hand_through(client, line, ended)


class _Connection:
    def __init__(self, client: socket.socket) -> None:
        self.write = client.sendall


def _hand_through(client: socket.socket, line: serial.Serial, ended: threading.Event) -> None:
    client.settimeout(0.01)
    manager: Any = serial.rfc2217.PortManager(line, _Connection(client))
    while not ended.is_set():
        if data := line.read(line.in_waiting or 1):
            client.sendall(b"".join(manager.escape(data)))
        with suppress(TimeoutError):
            data = client.recv(1024)
            if not data:
                return
            line.write(b"".join(manager.filter(data)))
