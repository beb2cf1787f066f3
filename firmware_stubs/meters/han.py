"""What meters send that the agent names and does not read: DLMS over HDLC or M-Bus, and encrypted.

Written apart from the agent's recogniser, from the same standards, so that each checks the other:
IEC 62056-46 (HDLC), EN 13757-2 (M-Bus), IEC 62056-5-3 (general ciphering).
"""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import Any

from firmware_stubs.meters.sml import crc
from firmware_stubs.meters.telegram import Display

_LLC = b"\xe6\xe7\x00"
_TITLE = b"EDG\x00\x00\x00\x00\x07"


def _notification(import_wh: int, power_w: int) -> bytes:
    """Return a data notification of two registers, as an Aidon meter lists them."""
    power = b"\x02\x03\x09\x06\x01\x00\x01\x07\x00\xff\x06" + power_w.to_bytes(4, "big")
    energy = b"\x02\x03\x09\x06\x01\x00\x01\x08\x00\xff\x06" + import_wh.to_bytes(4, "big")
    units = b"\x02\x02\x0f\x00\x16\x1b", b"\x02\x02\x0f\x00\x16\x1e"
    return b"\x0f\x40\x00\x00\x00\x00\x01\x02" + power + units[0] + energy + units[1]


def hdlc_frame(inside: bytes) -> bytes:
    """Return an unnumbered HDLC frame from server 0x0441 to client 0x41."""
    size = 10 + len(inside)
    header = (0xA000 | size).to_bytes(2, "big") + b"\x41\x08\x83\x13"
    checked = header + crc(header).to_bytes(2, "little") + inside
    return b"~" + checked + crc(checked).to_bytes(2, "little") + b"~"


def mbus_frame(inside: bytes) -> bytes:
    """Return a long M-Bus frame, from station 1, without an answer; at most 250 bytes inside."""
    body = b"\x53\x01\x00" + inside
    head = bytes((0x68, len(body), len(body), 0x68))
    return head + body + bytes((sum(body) & 0xFF, 0x16))


def ciphered_packet(inside: bytes) -> bytes:
    """Return a general ciphered packet whose text only looks encrypted."""
    stream = b"".join(hashlib.sha256(bytes((n,)) + inside).digest() for n in range(4))
    hidden = stream[: len(inside) + 12]
    header = b"\xdb\x08" + _TITLE + b"\x82" + (5 + len(hidden)).to_bytes(2, "big")
    return header + b"\x30\x00\x00\x00\x2a" + hidden


def han_telegram(*, is_mbus: bool = False, is_ciphered: bool = False, **shown: Any) -> bytes:
    """Return a HAN port's telegram of import and power."""
    now = Display(**shown)
    inside = _notification(now.import_wh, now.power_w)
    inside = ciphered_packet(inside) if is_ciphered else inside
    return mbus_frame(inside) if is_mbus else hdlc_frame(_LLC + inside)


def encrypted_p1(*, import_wh: int, power_w: int, **_: object) -> bytes:
    """Return what a P1 port of Luxembourg sends: a ciphered packet and nothing around it."""
    return ciphered_packet(_notification(import_wh, power_w))


FOREIGN: dict[str, Callable[..., bytes]] = {
    "hdlc": han_telegram,
    "hdlc-ciphered": partial(han_telegram, is_ciphered=True),
    "mbus": partial(han_telegram, is_mbus=True),
    "mbus-ciphered": partial(han_telegram, is_mbus=True, is_ciphered=True),
    "p1-encrypted": encrypted_p1,
}
"""Formats that `simulate meter --protocol` knows and no reader here."""
