"""Modbus requests, and answers found in what came: on a serial line (RTU) or in TCP.

RTU carries the CRC-16/MODBUS; an answer is looked for anywhere in what came since the request, so
an echo of the request or noise of a turning line costs nothing. TCP carries a number that the
answer repeats, so one that comes too late is not taken for the next. Standards: Modbus over serial
line 1.02; Modbus messaging on TCP/IP 1.0b. docs/faults.md, SER-01, SER-02.
"""

from typing import NamedTuple, Protocol

from agent.meters.crc import ARC, crc16

LIMIT_BYTES = 512  # an echo and an answer: a Modbus frame has 260 bytes at most
EXCEPTION = 0x80
_SEAL_BYTES = 2


class Ask(NamedTuple):
    """What is asked of a meter: `words` registers (16 bits each) from `first` on."""

    function: int
    first: int
    words: int


class Frames(Protocol):
    """How requests and answers of the meter at an address are wrapped."""

    address: int

    def wrap(self, ask: Ask) -> bytes:
        """Return the bytes that ask."""

    def answer(self, held: bytes, head: bytes, size: int) -> bytes | None:
        """Return `size` bytes after `head`, which begins with the function, from a sound answer."""

    def is_damaged(self, held: bytes, function: int) -> bool:
        """Say whether what came looks like an answer that something changed."""


class RtuFrames:
    """Frames of a serial line: address, content, checksum."""

    def __init__(self, address: int) -> None:
        self.address = address
        self._unit = bytes((address,))

    def wrap(self, ask: Ask) -> bytes:
        """Return the bytes that ask."""
        return sealed(self._unit + _request(ask))

    def answer(self, held: bytes, head: bytes, size: int) -> bytes | None:
        """Return `size` bytes after `head` where their checksum is right."""
        head, at = self._unit + head, -1
        while (at := held.find(head, at + 1)) >= 0:
            frame = held[at : at + len(head) + size + _SEAL_BYTES]
            if len(frame) == len(head) + size + _SEAL_BYTES and sealed(frame[:-2]) == frame:
                return frame[len(head) : -2]
        return None

    def is_damaged(self, held: bytes, function: int) -> bool:
        """Say whether an answer's first two bytes came."""
        return held.find(self._unit + bytes((function,))) >= 0


class TcpFrames:
    """Frames of Modbus TCP: number, length, unit, content."""

    def __init__(self, address: int) -> None:
        self.address = address
        self._unit = bytes((address,))
        self._number = 0

    def wrap(self, ask: Ask) -> bytes:
        """Return the bytes that ask, under the next number."""
        self._number = (self._number + 1) & 0xFFFF
        return self._header(_request(ask)) + _request(ask)

    def answer(self, held: bytes, head: bytes, size: int) -> bytes | None:
        """Return `size` bytes after `head` in the answer of the number that was asked."""
        whole = self._header(head + bytes(size)) + head
        at = held.find(whole)
        found = held[at + len(whole) :][:size] if at >= 0 else b""
        return found if len(found) == size and at >= 0 else None

    def is_damaged(self, held: bytes, function: int) -> bool:  # noqa: ARG002 (one interface)
        """Say whether an answer of this number came at all."""
        return self._number.to_bytes(2, "big") + bytes(2) in held

    def _header(self, content: bytes) -> bytes:
        length = (len(content) + 1).to_bytes(2, "big")
        return self._number.to_bytes(2, "big") + bytes(2) + length + self._unit


def _request(ask: Ask) -> bytes:
    function = bytes((ask.function,))
    return function + ask.first.to_bytes(2, "big") + ask.words.to_bytes(2, "big")


def sealed(frame: bytes) -> bytes:
    """Return a frame with its CRC-16/MODBUS, low byte first (0x4B37 for b"123456789")."""
    return frame + crc16(frame, ARC, 0xFFFF).to_bytes(2, "little")
