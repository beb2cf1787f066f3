"""The transport of SML, version 1: frames between escape sequences, with a checksum.

A frame runs from 1B1B1B1B 01010101 to 1B1B1B1B 1A, the number of fill bytes and the CRC-16/X-25 of
all before it, low byte first. Escape sequences lie at multiples of four bytes from the start;
1B1B1B1B as data is sent twice. A start sequence anywhere starts a frame, so after lost bytes the
next one is read again; 1B1B1B1B 01010101 as data, which no register shows, is taken for one too.
Standard: BSI TR-03109-1, LMN part B (docs/adr/0013-meters.md). docs/faults.md, SER-01..05, SER-11.
"""

from dataclasses import dataclass, field

from agent.meters.crc import crc16_x25
from agent.meters.framed_meter import LIMIT_BYTES, Framer
from agent.meters.reading import Discarded

_ESCAPE = b"\x1b" * 4
_START = _ESCAPE + b"\x01" * 4
_END = 0x1A
_WORD, _MARK = 4, 8  # an escape sequence: one word to announce it, one to say what it means


@dataclass(frozen=True, slots=True)
class SmlFrame:
    """A frame's bytes as received, from its start sequence to its checksum, which is right."""

    raw: bytes = field(repr=False)

    @property
    def size(self) -> int:
        """How many bytes were received for it."""
        return len(self.raw)

    def content(self) -> bytes:
        """Return the SML file inside, unescaped and without fill bytes."""
        raw = self.raw
        filled = raw[-3]  # 0 to 3; some DZG meters say and send 4
        body = raw[_MARK : max(len(raw) - _MARK - filled, _MARK)]
        return body.replace(_ESCAPE + _ESCAPE, _ESCAPE) if _ESCAPE in body else body


class SmlFramer(Framer[SmlFrame]):
    """Holds an open frame, or what may become a start sequence."""

    def __init__(self, limit_bytes: int = LIMIT_BYTES) -> None:
        super().__init__(limit_bytes)
        self._scanned = 0  # bytes of the open frame that need no second look; 0: none is open

    def feed(self, data: bytes) -> list[SmlFrame | Discarded]:
        """Take received bytes; return what they complete, oldest first."""
        buffer, at = self._held + data, 0
        events: list[SmlFrame | Discarded] = []
        while True:
            if not self._scanned and (at := self._open(buffer, at, events)) < 0:
                break
            if (size := self._scan(buffer, at, events)) == 0:
                self._held = buffer[at:]
                break
            at += size
        return events

    def silence(self) -> list[Discarded]:
        """Drop a half frame: the line has been silent for longer than a frame pauses."""
        if self._scanned:
            self._scanned = 0
            return super().silence()
        held, self._held = self._held, b""
        return self._noise.add(len(held)) + self._noise.end()

    def _open(self, buffer: bytes, at: int, events: list[SmlFrame | Discarded]) -> int:
        """Return where the next frame starts, or -1 when none does and all is counted or held."""
        start = buffer.find(_START, at)
        if start < 0:
            ends = range(min(_MARK - 1, len(buffer) - at), 0, -1)
            kept = next((n for n in ends if buffer.endswith(_START[:n])), 0)
            self._held = buffer[len(buffer) - kept :]
            events += self._noise.add(len(buffer) - kept - at)
            return -1
        events += self._noise.add(start - at) + self._noise.end()
        self._scanned = _MARK
        return start

    def _scan(self, buffer: bytes, begin: int, events: list[SmlFrame | Discarded]) -> int:
        """Look for what ends the open frame; return its size, or 0 when more bytes are needed."""
        stop = min(len(buffer), begin + self._limit)
        at = begin + self._scanned
        while (at := buffer.find(_ESCAPE, at, stop)) >= 0 and at + _MARK <= stop:
            mark = buffer[at + _WORD : at + _MARK]
            if mark == _ESCAPE and not (at - begin) % _WORD:
                if at + _MARK + _WORD > stop:
                    break
                is_data = buffer[at + _MARK : at + _MARK + _WORD] != _START[_WORD:]
                at += _MARK if is_data else _WORD
            elif mark == _START[_WORD:] or not (at - begin) % _WORD:
                return self._end(buffer, begin, at, mark, events)
            else:
                at += 1
        if stop - begin == self._limit:
            self._scanned = 0
            events.append(Discarded(self._limit, "length"))
            return self._limit
        self._scanned = (at if at >= 0 else max(stop - _WORD + 1, begin + _MARK)) - begin
        return 0

    def _end(
        self, buffer: bytes, begin: int, at: int, mark: bytes, events: list[SmlFrame | Discarded]
    ) -> int:
        """End the open frame by the escape sequence at `at`; return how many bytes were its.

        Where it broke off in its end sequence, the next start sequence may already have begun.
        """
        size, self._scanned = at - begin, 0
        if mark == _START[_WORD:]:
            self._scanned = _MARK
            events.append(Discarded(size, "cut"))
        elif mark[0] != _END:
            size += 1
            events.append(Discarded(size, "syntax"))
        else:
            raw = buffer[begin : at + _MARK]
            size = len(raw)
            if crc16_x25(raw[:-2]) == int.from_bytes(raw[-2:], "little"):
                events.append(SmlFrame(raw))
            else:
                size -= _WORD - 1 - len(raw[1 - _WORD :].rstrip(_ESCAPE))
                events.append(Discarded(size, "crc"))
        return size
