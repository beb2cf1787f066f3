"""Telnet with the COM-PORT option, the adapter's client: bytes in, serial bytes and answers out.

No I/O, bounded memory, any cut of the bytes gives the same. The adapter has to repeat each setting
as it was asked for; another speed than the meter's would give nothing but noise.
Source: RFC 2217 §2 to §4, RFC 854, RFC 855, RFC 1143 (an option is answered once).
"""

from enum import Enum
from typing import NamedTuple

_IAC, _DONT, _DO, _WONT, _WILL, _SB, _SE = 255, 254, 253, 252, 251, 250, 240
_BINARY, _SUPPRESS_GO_AHEAD, _COM_PORT = 0, 3, 44
_BAUD, _DATA_SIZE, _PARITY, _STOP_SIZE, _CONTROL = 1, 2, 3, 4, 5
_LINE_MASK, _MODEM_MASK, _PURGE = 10, 11, 12
_ANSWER = 100  # the adapter's commands are the client's and this
_NO_FLOW_CONTROL, _DTR_ON, _RTS_ON, _RECEIVED = 1, 8, 11, 1
_PARITIES = {"N": 1, "O": 2, "E": 3}
_OURS = (_BINARY, _SUPPRESS_GO_AHEAD, _COM_PORT)  # what we offer
_THEIRS = (_BINARY, _SUPPRESS_GO_AHEAD)  # what we ask for
_LIMIT_BYTES = 64  # of a subnegotiation; those of serial lines have 6


class _State(Enum):
    """What the next byte belongs to."""

    LINE = "the serial line"
    COMMAND = "a command: its kind"
    OPTION = "a command: its option"
    LONG = "a subnegotiation"
    LONG_COMMAND = "a subnegotiation: its end, or an escaped byte"


class Received(NamedTuple):
    """What came of some bytes: those of the serial line, and what the adapter is to be sent."""

    line: bytes
    reply: bytes


class ComPort:
    """The serial line behind one connection."""

    def __init__(self, baud: int, data_bits: int, parity: str) -> None:
        self._asked = {
            _BAUD: baud.to_bytes(4, "big"),
            _DATA_SIZE: bytes((data_bits,)),
            _PARITY: bytes((_PARITIES[parity],)),
            _STOP_SIZE: b"\x01",
        }
        self._missing = set(self._asked)
        self._state = _State.LINE
        self._kind = 0  # of the command that is not complete
        self._held = bytearray()  # a subnegotiation, as far as it came
        self.is_refused = False

    @property
    def is_ready(self) -> bool:
        """Whether the adapter has taken all settings."""
        return not self._missing and not self.is_refused

    def hello(self) -> bytes:
        """Return what the connection begins with."""
        wills = (bytes((_IAC, _WILL, option)) for option in _OURS)
        dos = (bytes((_IAC, _DO, option)) for option in _THEIRS)
        return b"".join((*wills, *dos))

    def set_baud(self, baud: int) -> bytes:
        """Return what changes the speed."""
        self._asked[_BAUD] = baud.to_bytes(4, "big")
        self._missing.add(_BAUD)
        return _command(_BAUD, self._asked[_BAUD])

    def escaped(self, line: bytes) -> bytes:
        """Return bytes for the serial line as they are sent."""
        return line.replace(b"\xff", b"\xff\xff")

    def receive(self, data: bytes) -> Received:
        """Take received bytes."""
        if self._state is _State.LINE and b"\xff" not in data:
            return Received(data, b"")
        line, reply = bytearray(), bytearray()
        for byte in data:
            self._consume(byte, line, reply)
        return Received(bytes(line), bytes(reply))

    def _consume(self, byte: int, line: bytearray, reply: bytearray) -> None:
        """Move by one byte; `line` and `reply` get what it completes."""
        state, self._state = self._state, _State.LINE
        if state is _State.LINE and byte == _IAC:
            self._state = _State.COMMAND
        elif state is _State.LINE or (state is _State.COMMAND and byte == _IAC):
            line.append(byte)
        elif state is _State.COMMAND:
            self._kind, self._held = byte, bytearray()
            is_option = byte in (_DO, _DONT, _WILL, _WONT)
            self._state = (
                _State.LONG if byte == _SB else _State.OPTION if is_option else _State.LINE
            )
        elif state is _State.OPTION:
            reply += self._answer(self._kind, byte)
        elif state is _State.LONG_COMMAND and byte == _SE:
            self._compare_setting(bytes(self._held))
        elif state is _State.LONG and byte == _IAC:
            self._state = _State.LONG_COMMAND
        else:
            self._state = _State.LONG
            self._held += bytes((byte,)) if len(self._held) < _LIMIT_BYTES else b""

    def _answer(self, kind: int, option: int) -> bytes:
        """Return the answer to an offer or a wish; none to what is an answer itself."""
        if option == _COM_PORT and kind == _DO:
            return self._settings()
        if option == _COM_PORT and kind == _DONT:
            self.is_refused = True
        if kind == _DO and option not in _OURS:
            return bytes((_IAC, _WONT, option))
        if kind == _WILL and option not in _THEIRS:
            return bytes((_IAC, _DONT, option))
        return b""

    def _settings(self) -> bytes:
        quiet = _command(_LINE_MASK, b"\0") + _command(_MODEM_MASK, b"\0")
        asked = b"".join(_command(name, value) for name, value in self._asked.items())
        control = (_NO_FLOW_CONTROL, _DTR_ON, _RTS_ON)  # some reading heads live on these lines
        last = b"".join(_command(_CONTROL, bytes((value,))) for value in control)
        return quiet + asked + last + _command(_PURGE, bytes((_RECEIVED,)))

    def _compare_setting(self, answer: bytes) -> None:
        """Compare a setting with what was asked for."""
        name = answer[1] - _ANSWER if answer[:1] == bytes((_COM_PORT,)) and answer[1:] else -1
        if name in self._asked:
            self._missing.discard(name)
            self.is_refused |= answer[2:] != self._asked[name]


def _command(name: int, value: bytes) -> bytes:
    body = value.replace(b"\xff", b"\xff\xff")
    return bytes((_IAC, _SB, _COM_PORT, name)) + body + bytes((_IAC, _SE))
