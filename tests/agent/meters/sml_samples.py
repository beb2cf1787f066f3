"""SML frames made by hand for one test, apart from the simulator's and from the parser."""

from firmware_stubs.meters.sml import crc as crc_x25

SERVER = bytes.fromhex("0A01545354000012D687")
WATT, WATT_HOUR = 27, 30
START = bytes.fromhex("1B1B1B1B01010101")


def integer(value: int, size: int = 4) -> bytes:
    return bytes([0x50 | size + 1]) + value.to_bytes(size, "big", signed=True)


def unsigned(value: int, size: int = 4) -> bytes:
    return bytes([0x60 | size + 1]) + value.to_bytes(size, "big")


def octets(raw: bytes) -> bytes:
    """Return an octet string, with a long length where it needs one."""
    size = len(raw) + 1
    head = bytes([size]) if size < 16 else bytes([0x80 | (size + 1) >> 4, (size + 1) & 15])
    return head + raw


def entry(
    obis: str, unit: int | None, scaler: int | None, value: bytes, status: bytes = b"\x01"
) -> bytes:
    """Return one entry of the list of values: `obis` is C.D.E, or six groups in hexadecimal."""
    groups = bytes([1, 0, *map(int, obis.split(".")), 255]) if "." in obis else bytes.fromhex(obis)
    return (
        b"\x77"
        + octets(groups)
        + status
        + b"\x01"
        + (b"\x01" if unit is None else unsigned(unit, 1))
        + (b"\x01" if scaler is None else integer(scaler, 1))
        + value
        + b"\x01"
    )


def message(choice: int, body: bytes) -> bytes:
    """Return a message; its inner checksum is not looked at and is 0."""
    head = b"\x76" + octets(b"\x01\x02") + unsigned(0, 1) + unsigned(0, 1)
    return head + b"\x72" + unsigned(choice, 2) + body + unsigned(0, 2) + b"\x00"


def listing(*entries: bytes, server: bytes = SERVER, time: bytes = b"\x01") -> bytes:
    many = len(entries)
    head = bytes([0x70 | many]) if many < 16 else bytes([0xF0 | many >> 4, many & 15])
    body = b"\x77\x01" + octets(server) + b"\x01" + time + head + b"".join(entries) + b"\x01\x01"
    return message(0x0701, body)


def framed(content: bytes, *, filled: int | None = None) -> bytes:
    """Return the frame of an SML file: escaped, filled up and with its checksum."""
    fill = -len(content) % 4 if filled is None else filled
    escape = b"\x1b" * 4
    words = content + bytes(fill)
    body = b"".join(
        words[at : at + 4] * (1 + (words[at : at + 4] == escape)) for at in range(0, len(words), 4)
    )
    raw = START + body + escape + bytes([0x1A, fill])
    return raw + crc_x25(raw).to_bytes(2, "little")


def sml(*entries: bytes, server: bytes = SERVER, time: bytes = b"\x01") -> bytes:
    return framed(listing(*entries, server=server, time=time))
