"""A parity bit that a raw network adapter hands through, taken off its bytes. No I/O here.

Meters of 7E1 behind a bridge of eight bits send text whose bytes have their parity on top: taken as
they are they would be noise. docs/faults.md, SER-35.
"""

_TOP = 0x80


class SevenBits:
    """Bytes of a line of seven bits: wrong parity reads as NUL, as on a serial port.

    An adapter that takes the parity off by itself never shows the eighth bit; one that shows it
    once hands it through always.
    """

    def __init__(self, parity: str) -> None:
        odd = parity == "O"
        right = (byte.bit_count() % 2 == odd for byte in range(256))
        self._table = bytes(byte & ~_TOP if fits else 0 for byte, fits in enumerate(right))
        self._passes_parity = False

    def stripped(self, data: bytes) -> bytes:
        """Return received bytes without their parity."""
        self._passes_parity = self._passes_parity or not data.isascii()
        return data.translate(self._table) if self._passes_parity else data
