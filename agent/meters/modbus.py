"""Modbus RTU energy meters of the Eastron SDM family, asked register by register.

A request and its answer carry the CRC-16/MODBUS. An answer is looked for anywhere in what came
since the request, so an echo of the request or noise of a turning line costs nothing. Registers
are big-endian IEEE 754 numbers of 32 bits, taken apart in integers. Standards: Modbus over
serial line; Eastron's register tables (docs/adr/0013-meters.md).
docs/faults.md, SER-14, SER-22, SER-27.
"""

from typing import NamedTuple

from agent.meters.crc import ARC, crc16
from agent.meters.obis import DRAWN_ENERGY, GIVEN_ENERGY, NET, electricity
from agent.meters.reading import Discarded, Event, Reason, Send, Telegram
from agent.meters.scale import LIMIT, NANO

ANSWER_MS = 1000
"""How long an answer is waited for; meters take 20 to 200 ms, slow lines 100 ms more."""

MAX_BACKOFF_MS = 60_000
LIMIT_BYTES = 256  # a Modbus frame is never longer

_INPUT_REGISTERS = 0x04
_EXCEPTION = 0x80
_REGISTERS_EACH = 2
_KILO = 1000


class Block(NamedTuple):
    """Registers that lie side by side: where the first is, and each one's name and factor."""

    first: int
    registers: tuple[tuple[str, int], ...]


_PHASES = Block(0x0000, (("V1", 1), ("V2", 1), ("V3", 1)))
_FIRST_PHASE = Block(0x000C, ((NET, 1),))
_ENERGIES = Block(0x0048, ((DRAWN_ENERGY, _KILO), (GIVEN_ENERGY, _KILO)))
_ONE_PHASE = (_FIRST_PHASE, _ENERGIES)
MODELS = {
    "sdm120": _ONE_PHASE,
    "sdm230": _ONE_PHASE,
    "sdm630": (_PHASES, Block(0x0034, ((NET, 1),)), _ENERGIES),
}
"""What each model is asked for; energies are in kWh, net power is in W.

An SDM630 has its total power at 0x0034, where an SDM230 shows 0 and no fault. What tells them apart
is the voltage of the other phases: where there is none, the first phase's power is all there is, on
either, so that is read.
"""


class ModbusMeter:
    """Asks one meter every `poll_ms`; all blocks of one round make a telegram."""

    def __init__(self, *, model: str = "sdm630", address: int = 1, poll_ms: int = 1000) -> None:
        self._blocks = MODELS[model]
        self._address = address
        self._poll_ms = poll_ms
        self._wake_ms = 0
        self._due_ms = 0  # of the next round
        self._block = -1  # which one is asked for; -1: none
        self._held = b""
        self._found: dict[str, int] = {}
        self._failures = 0
        self._has_other_phases = False

    @property
    def lacks_phases(self) -> bool:
        """Whether three phases were asked for and only the first one has voltage."""
        return _PHASES in self._blocks and not self._has_other_phases

    @property
    def wake_ms(self) -> int:
        """When `tick` is to be called next at the latest."""
        return self._wake_ms

    def tick(self, now_ms: int) -> list[Event]:
        """Begin a round when it is time; give up an answer that was waited for too long."""
        if now_ms < self._wake_ms:
            return []
        if self._block >= 0:
            return [self._fail(self._verdict(), now_ms)]
        self._due_ms = now_ms + self._poll_ms
        self._found = {}
        return [self._ask(0, now_ms)]

    def feed(self, data: bytes, now_ms: int) -> list[Event]:
        """Take received bytes; return the telegram or the next request that they complete."""
        if self._block < 0:
            return [Discarded(len(data), "noise")]
        self._held += data[: LIMIT_BYTES - len(self._held)]
        block = self._asked()
        size = 4 * len(block.registers)
        values = self._find(bytes((self._address, _INPUT_REGISTERS, size)), size)
        if values is None:
            refused = self._find(bytes((self._address, _INPUT_REGISTERS | _EXCEPTION)), 1)
            return [] if refused is None else [self._fail("refused", now_ms)]
        for at, (name, factor) in enumerate(block.registers):
            bits = int.from_bytes(values[4 * at : 4 * at + 4], "big")
            scaled = nano_of_float(bits, factor)
            if scaled is None or (scaled < 0 and name != NET):
                return [self._fail("value", now_ms)]
            self._found[name] = scaled
        self._has_other_phases = any(self._found.get(name) for name in ("V2", "V3"))
        if self._block + 1 < len(self._blocks):
            return [self._ask(self._block + 1, now_ms)]
        self._rest(self._due_ms)
        self._failures = 0
        read = electricity(self._found, self._found.__getitem__)
        return [Telegram(str(self._address), None, read.readings)]

    def _ask(self, number: int, now_ms: int) -> Send:
        self._block, self._held = number, b""
        self._wake_ms = now_ms + ANSWER_MS
        block = self._asked()
        return Send(request(self._address, block.first, _REGISTERS_EACH * len(block.registers)))

    def _asked(self) -> Block:
        """Return the block that is asked for."""
        block = self._blocks[self._block]
        is_total = block.registers[0][0] == NET
        return _FIRST_PHASE if is_total and not self._has_other_phases else block

    def _fail(self, reason: Reason, now_ms: int) -> Discarded:
        """Give up this round; wait twice as long after each failure, never in step with others."""
        size = len(self._held)
        self._failures += 1
        wait_ms = min(self._poll_ms << min(self._failures, 16), MAX_BACKOFF_MS)
        self._rest(
            now_ms + wait_ms - now_ms % (wait_ms // 4 + 1)
        )  # jitter: the clock's last digits
        return Discarded(size, reason)

    def _rest(self, until_ms: int) -> None:
        self._block, self._held = -1, b""
        self._wake_ms = until_ms

    def _find(self, head: bytes, size: int) -> bytes | None:
        """Return the `size` bytes after `head` where their checksum is right."""
        at = -1
        while (at := self._held.find(head, at + 1)) >= 0:
            frame = self._held[at : at + len(head) + size + 2]
            if len(frame) == len(head) + size + 2 and sealed(frame[:-2]) == frame:
                return frame[len(head) : -2]
        return None

    def _verdict(self) -> Reason:
        if not self._held:
            return "silence"
        return "crc" if self._held.find(bytes((self._address, _INPUT_REGISTERS))) >= 0 else "syntax"


def request(address: int, first: int, registers: int) -> bytes:
    """Return the request for input registers of a meter."""
    head = bytes((address, _INPUT_REGISTERS))
    return sealed(head + first.to_bytes(2, "big") + registers.to_bytes(2, "big"))


def sealed(frame: bytes) -> bytes:
    """Return a frame with its CRC-16/MODBUS, low byte first (0x4B37 for b"123456789")."""
    return frame + crc16(frame, ARC, 0xFFFF).to_bytes(2, "little")


def nano_of_float(bits: int, factor: int) -> int | None:
    """Return a 32-bit IEEE 754 number times `factor` in NANO parts, exactly but for finer ones.

    None for infinities, for what is no number, and for what no register shows.
    """
    exponent, fraction = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:  # noqa: PLR2004 (infinity or no number)
        return None
    mantissa = fraction | (1 << 23 if exponent else 0)
    signed = (-mantissa if bits >> 31 else mantissa) * factor * NANO
    shift = max(exponent, 1) - 150
    scaled = signed << shift if shift >= 0 else signed >> -shift
    return scaled if -LIMIT < scaled < LIMIT else None
