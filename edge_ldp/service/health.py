"""One state of a service out of those of its parts: `ok`, or `degraded: ` and what is waited for.

A part that waits for something outside (a port, the broker, the time) says so by name. That is
degraded, never a reason to restart: restarting would not mend it. Source: docs/design.md, The
device.
"""

from collections.abc import Iterable

OK = "ok"
DEGRADED = "degraded: "
_STATES = {"link": "link up", "lost": "no link"}


def age_told(name: str, age_s: float) -> str:
    """Return how old something is in words: the link (lost: that there is none), or what came."""
    if name in _STATES:
        return f"{_STATES[name]} for {age_s:.0f} s"
    return f"last {name} {age_s:.0f} s ago"


def combined(states: Iterable[str]) -> str:
    """Return the state of all parts together; each is `ok` or begins with `degraded: `."""
    reasons = sorted({state.removeprefix(DEGRADED) for state in states if state != OK})
    return DEGRADED + ", ".join(reasons) if reasons else OK
