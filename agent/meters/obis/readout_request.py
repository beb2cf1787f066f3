"""IEC 62056-21 meters that are asked (modes B, C): sign on slowly, agree on a speed, read, again.

In mode C the speed offered is acknowledged, in mode B it just holds from then on; a line that
cannot change asks for the speed that it has. The machine
returns what is to be sent and at which speed the line is to be; it waits by the clock that it is
given. The text is closed by an exclusive-or of its bytes, which must be right. Standard: IEC
62056-21 (a meter reacts within 0.2 to 1.5 s; see docs/adr/0013-meters.md). docs/faults.md, SER-22.
"""

from enum import Enum
from functools import reduce
from operator import xor

from agent.meters.framed_meter import DamagedError, is_wanted_meter
from agent.meters.obis.readout import BareUnit, parse_readout
from agent.meters.reading import Discarded, Event, Reason, Send, SetBaud

LIMIT_BYTES = 32_768
"""Longest readout; one with 15 months of history has 9,500 bytes."""

SIGN_ON_BAUD = 300
MAX_BACKOFF_MS = 600_000

_OFFERED = {ord("0") + n: 300 << n for n in range(7)}  # mode C: 300 to 19,200 baud
_FIXED = {ord("A") + n: 600 << n for n in range(6)}  # mode B: 600 to 19,200 baud
_IDENTITY_BYTES = 256  # an echo, and an identification of at most 5 + 16 characters
_SPEED_AT = 4  # "/XXXZ": three letters of the maker, then the speed
_STX, _ETX = b"\x02", b"\x03"
_ANSWER_MS = 3000  # sign-on takes 0.2 s, the reaction up to 1.5 s
_SILENT_MS = 2000  # longer than any pause of 1.5 s
_PAUSE_MS = 250
_SENT_BITS = 60  # six characters of the acknowledgement
_LATE_MS = 10  # of an adapter; a meter may answer 20 ms after the acknowledgement


class _Phase(Enum):
    """What the machine is waiting for."""

    REST = "the next round"
    IDENTITY = "the identification"
    PAUSE = "the time to acknowledge it"
    SWITCH = "the acknowledgement to be sent"
    TEXT = "the readout"


class RequestMeter:
    """Asks one meter, at most every `poll_ms`; `device_address` picks one of several."""

    def __init__(  # noqa: PLR0913 (what the table says)
        self,
        *,
        poll_ms: int = 10_000,
        device_address: str = "",
        meter_id: str | None = None,
        bare_unit: BareUnit = "refuse",
        sign_on_baud: int = SIGN_ON_BAUD,
        keep_speed: bool = False,
    ) -> None:
        self._baud = sign_on_baud
        self._sent_ms = _SENT_BITS * 1000 // sign_on_baud + _LATE_MS
        self._keep_speed = keep_speed
        self._poll_ms = poll_ms
        self._sign_on = b"/?" + device_address.encode("ascii") + b"!\r\n"
        self._meter_id = meter_id
        self._bare_unit: BareUnit = bare_unit
        self._phase = _Phase.REST
        self.wake_ms = 0
        self._due_ms = 0
        self._held = b""
        self._identity = b""
        self._failures = 0

    def tick(self, now_ms: int) -> list[Event]:
        """Do what it is time for, or give up what was waited for too long."""
        if now_ms < self.wake_ms:
            return []
        if self._phase is _Phase.REST:
            self._due_ms = now_ms + self._poll_ms
            self._enter(_Phase.IDENTITY, now_ms + _ANSWER_MS)
            return [SetBaud(self._baud), Send(self._sign_on)]
        if self._phase is _Phase.PAUSE:
            self._enter(_Phase.SWITCH, now_ms + self._sent_ms)
            speed = b"0" if self._keep_speed else self._identity[_SPEED_AT : _SPEED_AT + 1]
            return [Send(b"\x060" + speed + b"0\r\n")]
        if self._phase is _Phase.SWITCH:
            self._phase, self.wake_ms = _Phase.TEXT, now_ms + _SILENT_MS
            baud = _OFFERED[self._identity[_SPEED_AT]]
            return [] if self._keep_speed else [SetBaud(baud)]
        return [self._fail("cut" if self._held else "silence", now_ms)]

    def feed(self, data: bytes, now_ms: int) -> list[Event]:
        """Take received bytes; return the telegram that they complete."""
        if self._phase is _Phase.IDENTITY:
            return self._take_identity(data, now_ms)
        if self._phase in (_Phase.SWITCH, _Phase.TEXT):  # some answer before all is switched
            return self._take_text(data, now_ms)
        return [Discarded(len(data), "noise")] if data else []

    def _take_identity(self, data: bytes, now_ms: int) -> list[Event]:
        self._held += data
        *lines, rest = self._held.split(b"\r\n")
        for line in lines:
            at = line.rfind(b"/")
            if at < 0 or line[at + 1 : at + 2] == b"?":  # noise, or an echo of our own words
                continue
            self._identity = line[at:]
            speed = self._identity[_SPEED_AT] if len(self._identity) > _SPEED_AT else 0
            if speed in _FIXED and not self._keep_speed:
                self._enter(_Phase.TEXT, now_ms + _SILENT_MS)
                return [SetBaud(_FIXED[speed])]
            if speed not in _OFFERED:
                return [self._fail("syntax", now_ms)]
            self._enter(_Phase.PAUSE, now_ms + _PAUSE_MS)
            return []
        if len(rest) > _IDENTITY_BYTES or len(self._held) > LIMIT_BYTES:
            return [self._fail("length", now_ms)]
        return []

    def _take_text(self, data: bytes, now_ms: int) -> list[Event]:
        self._held += data
        if self._phase is _Phase.TEXT:
            self.wake_ms = now_ms + _SILENT_MS
        begin = self._held.find(_STX)
        end = self._held.find(_ETX, begin) if begin >= 0 else -1
        if end < 0 or end + 1 == len(self._held):
            too_long = len(self._held) > LIMIT_BYTES
            return [self._fail("length", now_ms)] if too_long else []
        text, check = self._held[begin + 1 : end + 1], self._held[end + 1]
        if reduce(xor, text) != check:
            return [self._fail("crc", now_ms)]
        size, body = len(self._held), text[:-1].removesuffix(b"\r\n")
        if not body.endswith(b"!"):
            return [self._fail("syntax", now_ms)]
        try:
            found = parse_readout(self._identity + b"\r\n" + body, self._bare_unit)
        except DamagedError as damage:
            return [self._fail(damage.reason, now_ms, damage.line)]
        self._failures = 0
        self._enter(_Phase.REST, max(self._due_ms, now_ms + _SILENT_MS))
        return [found if is_wanted_meter(self._meter_id, found) else Discarded(size, "identity")]

    def _enter(self, phase: _Phase, until_ms: int) -> None:
        self._phase, self._held, self.wake_ms = phase, b"", until_ms

    def _fail(self, reason: Reason, now_ms: int, line: str = "") -> Discarded:
        """Give up this round; wait twice as long after each failure, never in step with others."""
        size = len(self._held)
        self._failures += 1
        wait_ms = min(max(self._poll_ms, _SILENT_MS) << min(self._failures, 16), MAX_BACKOFF_MS)
        jitter_ms = now_ms % (wait_ms // 4 + 1)  # the clock's last digits
        self._enter(_Phase.REST, now_ms + wait_ms - jitter_ms)
        return Discarded(size, reason, line)
