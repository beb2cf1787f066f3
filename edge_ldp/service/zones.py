"""Time zones by the names that people write."""

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, available_timezones


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


def zone_expected(name: str) -> str:
    """Return what is expected where `name` is no time zone, and which near ones there are."""
    from difflib import get_close_matches  # noqa: PLC0415 (memory: only where something is wrong)

    known = {place: zone for zone in sorted(available_timezones()) for place in _names(zone)}
    meant = name.casefold()
    places = [meant] if meant in known else get_close_matches(meant, known)
    near = dict.fromkeys(known[place] for place in places)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f'a time zone, as "UTC" or "Europe/Berlin", not "{name}"{hint}'


def _names(zone: str) -> tuple[str, str]:
    """Return what people may write for a zone: all of its name, or the place alone."""
    return zone.casefold(), zone.casefold().rpartition("/")[2]
