"""Times as meters print them, as seconds since 1970 UTC; None where it is not sure which second."""

import re
from datetime import date

SUMMER_S, WINTER_S = 7200, 3600
"""How far clocks of Central Europe are ahead of UTC."""

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_STAMP = re.compile(rb"(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)([SW]?)")
_SEASONS = {b"S": (SUMMER_S,), b"W": (WINTER_S,), b"": (SUMMER_S, WINTER_S)}


def seconds(year: int, month: int, day: int, clock: list[int], east_s: int) -> int | None:
    """Return a moment by a clock so far ahead of UTC; `clock`: hour, minute, second."""
    hour, minute, second = clock
    try:
        days = date(year, month, day).toordinal() - _EPOCH_DAY
    except ValueError:
        return None
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004 (a day's clock)
        return None
    return days * 86_400 + hour * 3600 + minute * 60 + second - east_s


def stamp(text: bytes) -> int | None:
    """Return `YYMMDDhhmmssX` of Central Europe; X may be missing, but in the hour that comes twice.

    Without X the European Union's changes tell: last Sundays of March and October, 01:00 UTC.
    """
    if (form := _STAMP.fullmatch(text)) is None:
        return None
    year, month, day, *clock = (int(part) for part in form.groups()[:6])
    found = []
    for east_s in _SEASONS[form[7]]:
        at_s = seconds(2000 + year, month, day, clock, east_s)
        if at_s is not None and (form[7] or _is_summer(2000 + year, at_s) == (east_s == SUMMER_S)):
            found.append(at_s)
    return found[0] if len(found) == 1 else None


def _is_summer(year: int, at_s: int) -> bool:
    begin, end = (
        (day - day % 7 - _EPOCH_DAY) * 86_400 + 3600  # ordinals of Sundays are whole weeks
        for day in (date(year, month, 31).toordinal() for month in (3, 10))
    )
    return begin <= at_s < end
