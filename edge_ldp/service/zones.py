"""Time zones by the names that people write."""

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo


def zone_of(name: str) -> tzinfo:
    """Return a time zone by name, or as "UTC+01:00"; raises ValueError.

    UTC needs no table of zones on the machine, nor what is so far from it.
    """
    if name == "UTC":
        return UTC
    if re.fullmatch(r"UTC[+-]\d\d:\d\d(:\d\d)?", name, re.ASCII):
        return datetime.strptime(name, "UTC%z").tzinfo or UTC
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as exc:  # no such zone, a directory
        raise ValueError(name) from exc
