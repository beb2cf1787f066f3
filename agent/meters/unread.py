"""What came on a line since its last telegram and gave none, and what that means.

Formats that are not read are known by how they begin, so that they are named, not guessed: where
the bytes prove it, by a header's checksum, both marks of a frame, or a security header. What is
inside is not looked at but for whether it is encrypted. Standards: IEC 62056-46 (DLMS over HDLC),
EN 13757-2 (M-Bus), IEC 62056-5-3 (general ciphering), which P1 ports of Luxembourg send bare.
Source: docs/faults.md, SER-07, SER-30, SER-34.
"""

from collections import Counter

from agent.meters.crc import crc16_x25
from agent.meters.reading import Discarded
from agent.meters.words import foreign_text, misread_text

KEPT_BYTES = 2048
"""An HDLC frame is never longer."""

_FLAG, _FORMAT, _LENGTH = 0x7E, 0xA0, 0x07FF
_LLC = b"\xe6\xe7\x00"
_MOST_ADDRESS = 4
_CIPHERED = b"\xdb\x08"  # general-glo-ciphering, and the eight bytes of a system title
_TITLE_END = 10
_SECURED, _SUITE, _MOST_SUITE = 0x30, 0x0F, 2
_MBUS, _STOP = 0x68, 0x16


class Recogniser:
    """Looks at what gave no telegram; `name` is a key of words.FOREIGN, or "" while none is known.

    Holds at most KEPT_BYTES, and nothing once it knows.
    """

    def __init__(self) -> None:
        self.name = ""
        self._held = b""

    def feed(self, data: bytes | None) -> str:
        """Take received bytes, or None for silence; return the name as far as it is known."""
        if not self.name:
            held = self._held + (data or b"")
            self.name = _name(held, is_over=data is None)
            self._held = b"" if self.name or data is None else held[-KEPT_BYTES:]
        return self.name


def _name(held: bytes, *, is_over: bool) -> str:
    """Return what the first frame in the bytes is; "" for none that is known, or not yet whole."""
    for at, byte in enumerate(held):
        if byte == _FLAG:
            kind, size = "hdlc", _hdlc_bytes(held, at)
        elif byte == _MBUS:
            kind, size = "mbus", _mbus_bytes(held, at)
        elif byte == _CIPHERED[0] and _has_security_header(held, at):
            return "ciphered"
        else:
            continue
        if size and (is_over or len(held) >= at + size):
            return kind + ("-ciphered" if _is_ciphered(held[at : at + size]) else "")
        if size:
            return ""
    return ""


def _hdlc_bytes(held: bytes, at: int) -> int:
    """Return the size of the HDLC frame that begins at `at`; 0 where none does."""
    if len(held) < at + 3 or held[at + 1] & 0xF0 != _FORMAT:
        return 0
    size = int.from_bytes(held[at + 1 : at + 3], "big") & _LENGTH
    frame = held[at + 1 : at + 1 + size]
    end = _header_end(frame)
    header, told, inside = frame[:end], frame[end : end + 2], frame[end + 2 :]
    has_marks = inside.startswith(_LLC) and held[at + 1 + size :][:1] == b"~"
    is_checked = crc16_x25(header) == int.from_bytes(told, "little")
    return size + 2 if end and (is_checked or has_marks) else 0


def _header_end(frame: bytes) -> int:
    """Return where the header's checksum is: after two addresses that end with an odd byte each."""
    at = 2
    for _ in ("to", "from"):
        ends = (n for n, byte in enumerate(frame[at : at + _MOST_ADDRESS], 1) if byte & 1)
        if not (size := next(ends, 0)):
            return 0
        at += size
    return at + 1 if len(frame) >= at + 3 else 0  # control, and two bytes of the checksum


def _mbus_bytes(held: bytes, at: int) -> int:
    """Return the size of the M-Bus frame that begins at `at`; 0 where none does."""
    head = held[at : at + 4]
    if len(head) < len(b"\x68LL\x68") or head[1] != head[2] or head[3] != _MBUS:
        return 0
    stop = held[at + 5 + head[1] :][:1]  # not there yet, or the mark
    return head[1] + 6 if stop in (b"", bytes((_STOP,))) else 0


def _is_ciphered(frame: bytes) -> bool:
    at = frame.find(_CIPHERED)
    return at >= 0 and _has_security_header(frame, at)


def _has_security_header(held: bytes, at: int) -> bool:
    """Say whether a title, a length and a byte that says how it is secured come after DB 08."""
    if held[at : at + 2] != _CIPHERED or not held[at + 2 : at + 5].isalpha():
        return False
    rest = held[at + _TITLE_END : at + _TITLE_END + 4]
    long = {0x81: 2, 0x82: 3}.get(rest[0], 1) if rest else 1
    if len(rest) <= long or (long == 1 and rest[0] >> 7):
        return False
    return bool(rest[long] & _SECURED) and rest[long] & _SUITE <= _MOST_SUITE


class Unread:
    """Counts of bytes, the last line that was not understood, and the format if it is another.

    Holds no more bytes than a Recogniser does, and no reading.
    """

    def __init__(self) -> None:
        self.received_bytes = 0
        self.discarded = Counter[str]()
        self.line = ""
        self._recogniser = Recogniser()

    @property
    def format(self) -> str:
        """The format that is recognised and not read: a key of words.FOREIGN, or ""."""
        return self._recogniser.name

    def take(self, data: bytes | None) -> None:
        """Note received bytes, or silence."""
        self.received_bytes += len(data or b"")
        self._recogniser.feed(data)

    def note(self, event: Discarded) -> None:
        """Note what a parser threw away."""
        self.discarded[event.reason] += event.size
        self.line = event.line or self.line

    def text(self, *, is_proved: bool) -> str:
        """Return what is known by name, and what to do about it; "" where only bytes are.

        `is_proved`: whether the protocol has a checksum.
        """
        if self.format:
            return foreign_text(self.format)
        return misread_text(self.line, is_proved=is_proved) if self.line else ""
