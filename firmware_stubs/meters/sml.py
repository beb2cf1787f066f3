"""An SML telegram of a German meter, byte for byte as the DNT and EMH ones in the captures.

Written apart from the agent's parser, from the same standard, so that each checks the other.
Standard: BSI TR-03109-1, LMN part B (docs/adr/0013-meters.md).
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from edge_ldp.device.errors import ParameterError
from firmware_stubs.meters.telegram import Display, check_printable, reflected_crc

_ESCAPE = b"\x1b" * 4
_OPEN, _LIST, _CLOSE = 0x0101, 0x0701, 0x0201
_GIVEN = {"15.7.0": 0x182 | 1 << 5, "16.7.0": 0x1C_0104 | 1 << 11}
_DRAWN = {"15.7.0": 0x182, "16.7.0": 0x1C_0104}
"""Status words of the older EDL meter, and of the basic meter."""


def sml_telegram(*, power: str = "16.7.0", has_sign: bool = True, **shown: Any) -> bytes:
    """Return the telegram of a meter whose server id is the last ten characters of `meter_id`.

    Registers are shown in tenths of a watt-hour, power in whole watts by the register `power`: net,
    or without a sign, and then the status word of the import says which way it goes. The time
    shown is seconds since 1970. Raises ParameterError for what a meter cannot send.
    """
    now = Display(**shown)
    check_printable(now)
    if not (now.meter_id.isascii() and now.meter_id):
        raise ParameterError("meter_id", "ASCII characters")
    server = _octets(now.meter_id[-10:].encode())
    net, status = now.net_w, b"\x01"
    if not has_sign:
        status = b"\x65" + (_GIVEN if net < 0 else _DRAWN)[power].to_bytes(4, "big")
    watts = _number(net) if has_sign else b"\x65" + abs(net).to_bytes(4, "big")
    at = bytes((1, 0, *map(int, power.split(".")), 255))
    entries = (
        _entry(b"\x81\x81\xc7\x82\x03\xff", b"\x01", b"\x01", _octets(b"TST")),
        _entry(b"\x01\x00\x00\x00\x09\xff", b"\x01", b"\x01", server),
        _entry(
            b"\x01\x00\x01\x08\x00\xff",
            b"\x62\x1e",
            b"\x52\xff",
            _number(10 * now.import_wh, 8),
            status,
        ),
        _entry(
            b"\x01\x00\x02\x08\x00\xff", b"\x62\x1e", b"\x52\xff", _number(10 * now.export_wh, 8)
        ),
        _entry(at, b"\x62\x1b", b"\x52\x00", watts),
    )
    clock = b"\x72\x62\x02\x65" + now.time_s.to_bytes(4, "big")
    values = bytes([0x70 | len(entries)]) + b"".join(entries)
    body = (
        _message(1, _OPEN, b"\x76\x01\x01" + _octets(b"\x01") + server + b"\x01\x01")
        + _message(2, _LIST, b"\x77\x01" + server + b"\x01" + clock + values + b"\x01\x01")
        + _message(3, _CLOSE, b"\x71\x01")
    )
    return _frame(body)


def _frame(body: bytes) -> bytes:
    fill = -len(body) % 4
    words = body + bytes(fill)
    cut = (words[at : at + 4] for at in range(0, len(words), 4))
    sent = b"".join(word + word if word == _ESCAPE else word for word in cut)
    raw = _ESCAPE + b"\x01" * 4 + sent + _ESCAPE + bytes([0x1A, fill])
    return raw + crc(raw).to_bytes(2, "little")


def crc(data: bytes) -> int:
    """Return the CRC-16/X-25 of `data`."""
    return reflected_crc(data, 0x8408) ^ 0xFFFF


def _message(number: int, choice: int, body: bytes) -> bytes:
    head = b"\x76" + _octets(bytes([0, number])) + b"\x62\x00\x62\x00\x72\x63"
    made = head + choice.to_bytes(2, "big") + body
    return made + b"\x63" + crc(made).to_bytes(2, "little") + b"\x00"


def _entry(
    name: bytes, unit: bytes, scaler: bytes, number: bytes, status: bytes = b"\x01"
) -> bytes:
    return b"\x77" + _octets(name) + status + b"\x01" + unit + scaler + number + b"\x01"


def _octets(raw: bytes) -> bytes:
    return bytes([len(raw) + 1]) + raw


def _number(value: int, size: int = 4) -> bytes:
    return bytes([0x50 | size + 1]) + value.to_bytes(size, "big", signed=True)


SML: dict[str, Callable[..., bytes]] = {
    "sml": sml_telegram,
    "sml-absolute": partial(sml_telegram, power="15.7.0", has_sign=False),
    "sml-unsigned": partial(sml_telegram, has_sign=False),
    "sml-drawn": partial(sml_telegram, power="1.7.0"),
}
"""How meters tell the direction of power: by a sign, twice by a status word, below 0 as drawn."""
