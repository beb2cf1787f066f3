"""What goes wrong on a line and in a meter, as scripts: the same damage every time.

A `Mangle` damages single telegrams on their way; a `Show` of another kind makes the meter itself
wrong. Source: docs/faults.md, SER-01 to SER-21.
"""

import hashlib
from collections.abc import Callable

from edge_ldp.device.errors import ParameterError
from firmware_stubs.meters.player import Mangle, Show

NOISE_BYTES = 1024


def noise(seed: int, size: int = NOISE_BYTES) -> bytes:
    """Return bytes that look random and are the same for the same seed."""
    blocks = (hashlib.sha256(b"%d/%d" % (seed, at)).digest() for at in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def noisy(k: int, telegram: bytes) -> bytes:
    """Put noise before each telegram (SER-01)."""
    return noise(k) + telegram


def flipped(k: int, telegram: bytes) -> bytes:
    """Flip one bit of each telegram but every fourth, at another place each time (SER-02)."""
    if k % 4 == 0:
        return telegram
    at = k * 7919 % (8 * len(telegram))
    spoiled = bytearray(telegram)
    spoiled[at // 8] ^= 1 << at % 8
    return bytes(spoiled)


def cut(k: int, telegram: bytes) -> bytes:
    """Break each telegram off but every fourth (SER-03, SER-04)."""
    return telegram if k % 4 == 0 else telegram[: k * 7919 % len(telegram)]


def doubled(_k: int, telegram: bytes) -> bytes:
    """Send each telegram twice (SER-05, SER-10)."""
    return telegram + telegram


def stuck() -> Mangle:
    """Repeat the first telegram for ever (SER-10)."""
    first: list[bytes] = []

    def mangle(_k: int, telegram: bytes) -> bytes:
        first.append(telegram) if not first else None
        return first[0]

    return mangle


def at_another_speed(_k: int, telegram: bytes) -> bytes:
    """Return what a receiver at the wrong speed makes of a telegram, roughly (SER-07)."""
    return bytes(byte * 0x9B & 0xFF | 0x80 for byte in telegram[::3]) + b"\x00\xff"


def clock_off(show: Show, offset_s: int) -> Show:
    """Return a meter whose clock is wrong by so many seconds (SER-17)."""
    return lambda *, time_s, **shown: show(time_s=time_s + offset_s, **shown)


def rolling(show: Show, register_wh: int) -> Show:
    """Return a meter whose registers begin at 0 again at `register_wh` (SER-15)."""
    return lambda *, import_wh, export_wh=0, **shown: show(
        import_wh=import_wh % register_wh, export_wh=export_wh % register_wh, **shown
    )


def set_back(show: Show, at_s: int) -> Show:
    """Return a meter whose import register is halved at a time, under the same number (SER-16)."""

    def shown(*, time_s: int, import_wh: int, **rest: object) -> bytes:
        if time_s >= at_s:
            import_wh //= 2
        return show(time_s=time_s, import_wh=import_wh, **rest)

    return shown


MANGLES: dict[str, Callable[[], Mangle]] = {
    "noise": lambda: noisy,
    "flip": lambda: flipped,
    "cut": lambda: cut,
    "double": lambda: doubled,
    "stuck": stuck,
    "speed": lambda: at_another_speed,
}
"""The damage that `simulate meter --fault` does by name."""

SHOWS: dict[str, Callable[[Show, int], Show]] = {
    "clock": clock_off,
    "rollover": rolling,
    "reset": set_back,
}
"""The same for meters that are wrong themselves: the name, a colon and a whole number."""


def fault(text: str, show: Show) -> tuple[Show, Mangle | None]:
    """Return the meter and the damage that `--fault` names; raises ParameterError."""
    name, mark, number = text.partition(":")
    if name in MANGLES and not mark:
        return show, MANGLES[name]()
    try:
        return SHOWS[name](show, int(number)), None
    except (LookupError, ValueError) as exc:
        names = ", ".join([*MANGLES, *(f"{wrong}:NUMBER" for wrong in SHOWS)])
        raise ParameterError("--fault", f"one of {names}") from exc
