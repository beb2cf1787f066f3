"""Ids of flushes: they begin with when they were made, so that a store can keep them by day.

The day is a function of the id alone: a repetition of a flush, whenever it comes, looks where its
first attempt may have been written. Source: RFC 9562 §5.7 (UUID version 7).
"""

DAY_MS = 86_400_000
DAYS = 7  # that a store keeps apart; the ids of the day a week ago lie with those of today
_TIME_BITS = 48
_VERSION = 0xF << 76, 7 << 76  # which bits, and what stands in them
_VARIANT = 0b11 << 62, 0b10 << 62


def flush_id(at_ms: int, random: bytes) -> bytes:
    """Return the id, 16 bytes, of a flush made at `at_ms` (milliseconds since 1970, UTC).

    `random`: 10 bytes of the operating system's. No clock spoils it: of a time that 48 bits do not
    hold the lowest are taken, and then the day is another one.
    """
    number = at_ms % (1 << _TIME_BITS) << 80 | int.from_bytes(random, "big")
    for field, value in (_VERSION, _VARIANT):
        number = number & ~field | value
    return number.to_bytes(16, "big")


def flush_day(flush: bytes) -> int:
    """Return the day of any id, 0 to DAYS − 1: days since 1970, modulo DAYS."""
    return int.from_bytes(flush[: _TIME_BITS // 8], "big") // DAY_MS % DAYS
