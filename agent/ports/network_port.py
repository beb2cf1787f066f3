"""A serial adapter in the network: plain TCP, or Telnet that sets the line (RFC 2217).

A peer that vanished without a word is noticed by keep-alive after 30 s, one that is there and says
nothing after `quiet_s`. Readings cross the network in the clear: docs/meters.md says what to do.
"""

import asyncio
import os
import socket

from agent.errors import PortError
from agent.meters.port_names import Address
from agent.ports.port import (
    CHUNK_BYTES,
    GONE,
    LINE_REFUSED,
    NO_CONNECTION,
    QUIET,
    is_readable,
    now_s,
)
from agent.ports.rfc2217 import ComPort
from agent.ports.seven_bits import SevenBits

CONNECT_S = 10.0
SEVEN_BITS = 7
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 15), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))
_UNSENT_MS = 30_000

_REACH = "is the adapter on, its address right, and nobody else connected to it?"
_MODE = "is its serial server in RFC 2217 (Telnet) mode? For a raw one write socket://HOST:PORT"
_LINE = "check baud rate, parity and data bits against what the adapter can do"
_FIXED = "a plain TCP adapter keeps its speed: use rfc2217:// for meters that change theirs"


class NetworkPort:
    """An open connection, made by `open_network`; read by one task at a time."""

    def __init__(  # noqa: PLR0913 (what a connection is made of)
        self,
        path: str,
        sock: socket.socket,
        com_port: ComPort | None,
        baud: int,
        *,
        silence_s: float,
        quiet_s: float,
        seven_bits: SevenBits | None = None,
    ) -> None:
        self.path = path
        self._seven_bits = seven_bits
        self._sock = sock
        self._com_port = com_port
        self._baud = baud
        self._silence_s = silence_s
        self._quiet_s = quiet_s
        self._received_s = now_s()

    async def read(self, wait_s: float | None = None) -> bytes | None:
        """Return the next bytes, or None after each inter-byte timeout that passes without any.

        Raises PortError with reason GONE when the connection is closed, and QUIET when it seems to
        be one to nobody.
        """
        until_s = now_s() + (self._silence_s if wait_s is None else wait_s)
        left_s = until_s - now_s()
        while await is_readable(self._fd(), max(left_s, 0.0)):  # looks once, however short the wait
            if data := self._taken():
                self._received_s = now_s()
                return data
            if (left_s := until_s - now_s()) <= 0 and wait_s != 0:
                break
        if now_s() - self._received_s > self._quiet_s:
            raise PortError(self.path, QUIET, _REACH)
        return None

    def write(self, data: bytes) -> bool:
        """Send bytes without waiting; False when the connection did not take all of them now."""
        return self._send(self._com_port.escaped(data) if self._com_port else data)

    def set_baud(self, baud: int) -> None:
        """Ask the adapter for another speed; raises PortError where there is nobody to ask."""
        if self._com_port is not None:
            self._send(self._com_port.set_baud(baud))
        elif baud != self._baud:
            raise PortError(self.path, "cannot change its speed", _FIXED)

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        self._sock.close()

    async def agree(self) -> None:
        """Set the line; raises PortError when the adapter does not take the settings in time."""
        com_port = self._com_port
        if com_port is None:
            return
        self._send(com_port.hello())
        try:
            async with asyncio.timeout(CONNECT_S):
                while not com_port.is_ready:
                    await is_readable(self._fd(), CONNECT_S)
                    self._taken()  # before the line is set there is nothing to read
        except TimeoutError as exc:
            raise PortError(self.path, "does not speak RFC 2217", _MODE) from exc

    def _taken(self) -> bytes:
        """Return what came on the serial line; none of Telnet's own."""
        try:
            data = self._sock.recv(CHUNK_BYTES)
        except BlockingIOError:
            return b""
        except OSError as exc:
            raise self._gone() from exc
        if not data:
            raise self._gone()
        if self._com_port is None:
            return data if self._seven_bits is None else self._seven_bits.stripped(data)
        received = self._com_port.receive(data)
        if received.reply and not self._send(received.reply):
            raise self._gone()
        if self._com_port.is_refused:
            raise PortError(self.path, LINE_REFUSED, _LINE)
        return received.line

    def _send(self, data: bytes) -> bool:
        try:
            return self._sock.send(data) == len(data)
        except BlockingIOError:
            return False
        except OSError as exc:
            raise self._gone() from exc

    def _fd(self) -> int:
        if (fd := self._sock.fileno()) < 0:
            raise self._gone()
        return fd

    def _gone(self) -> PortError:
        return PortError(self.path, GONE, _REACH)


async def open_network(
    path: str,
    address: Address,
    line: tuple[int, int, str],
    *,
    silence_s: float,
    quiet_s: float,
) -> NetworkPort:
    """Connect to an adapter, and set its line (baud, data bits, parity) where it can be told.

    Raises PortError(path, reason, remedy) when it cannot be had.
    """
    try:
        async with asyncio.timeout(CONNECT_S):
            sock = await _connected(address)
    except TimeoutError as exc:
        raise PortError(path, NO_CONNECTION, f"no answer; {_REACH}") from exc
    except UnicodeError as exc:  # in looking it up: an empty label, or one too long
        raise PortError(path, NO_CONNECTION, f"no host can have this name; {_REACH}") from exc
    except OSError as exc:
        why = os.strerror(exc.errno) if exc.errno and exc.errno > 0 else exc.strerror
        raise PortError(path, NO_CONNECTION, f"{why}; {_REACH}") from exc
    com_port = ComPort(*line) if address.scheme == "rfc2217" else None
    has_parity = com_port is None and line[1] == SEVEN_BITS and line[2] != "N"
    port = NetworkPort(
        path,
        sock,
        com_port,
        line[0],
        silence_s=silence_s,
        quiet_s=quiet_s,
        seven_bits=SevenBits(line[2]) if has_parity else None,
    )
    try:
        await port.agree()
    except BaseException:
        port.close()
        raise
    return port


async def _connected(address: Address) -> socket.socket:
    """Return a connected socket; tries each address of a name in turn."""
    loop = asyncio.get_running_loop()
    failed: OSError | None = None
    kind = socket.SOCK_STREAM
    try:  # an address needs no thread that looks it up
        found = socket.getaddrinfo(
            address.host, address.port, type=kind, flags=socket.AI_NUMERICHOST
        )
    except socket.gaierror:
        found = await loop.getaddrinfo(address.host, address.port, type=kind)
    for family, _, _, _, where in found:
        sock = socket.socket(family, kind)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in _KEEPALIVE:
                sock.setsockopt(socket.IPPROTO_TCP, option, value)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNSENT_MS)
            await loop.sock_connect(sock, where)
        except OSError as exc:
            sock.close()
            failed = exc
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failed or OSError("no address")
