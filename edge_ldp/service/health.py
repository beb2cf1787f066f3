"""One state of a service out of those of its parts: `ok`, or `degraded: ` and what is waited for.

A part that waits for something outside (a port, the broker, the time) says so by name. That is
degraded, never a reason to restart: restarting would not mend it. Source: docs/design.md, The
device.
"""

from collections.abc import Iterable

OK = "ok"
DEGRADED = "degraded: "
LINK, LOST = "link", "lost"  # one at a time: since when there is a link, or none
LINK_STATES = {LINK: "link up", LOST: "no link"}  # in words


def age_told(name: str, age_s: float) -> str:
    """Return how old something is in words: a link, that there is none, or what came."""
    if name in LINK_STATES:
        return f"{LINK_STATES[name]} for {age_s:.0f} s"
    return f"last {name} {age_s:.0f} s ago"


def combined(states: Iterable[str]) -> str:
    """Return the state of all parts together; each is `ok` or begins with `degraded: `."""
    reasons = sorted({state.removeprefix(DEGRADED) for state in states if state != OK})
    return DEGRADED + ", ".join(reasons) if reasons else OK
