"""Times as the clocks in a home show them: for what its people read, not for what machines do.

The zone is this machine's (/etc/localtime, or TZ). Where the C library's time ends in 2038
(`edge_ldp.protocol.utc`), later times are told in UTC.
"""

from datetime import datetime

from edge_ldp.protocol.utc import utc


def home_time(seconds: int, form: str = "%Y-%m-%d %H:%M:%S") -> str:
    """Return seconds since 1970 as a home's clocks show them, with the name of the zone."""
    when = local(seconds)
    return f"{when:{form}} {when.tzname()}"


def local(seconds: int) -> datetime:
    """Return the time in this machine's zone, or in UTC where it knows no other."""
    when = utc(seconds)
    try:
        return when.astimezone()
    except (OverflowError, OSError, ValueError):
        return when
