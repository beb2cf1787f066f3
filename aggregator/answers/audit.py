"""What operators changed, as the store keeps it: when, who, by which command."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any

from aggregator.answers.units import clock_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aggregator.store.contract import Reader


def read_audit(reader: Reader, fleet: str, since_s: int = 0) -> dict[str, Any]:
    """Return the JSON of `audit`.

    fleet; audit[], oldest first: at_s (seconds UTC, by the fleet's clock), who (user@host, or "anna
    as root@host"), command (as it was typed, at most 1,000 characters of it).
    """
    return {"fleet": fleet, "audit": [row._asdict() for row in reader.audit(since_s)]}


def audit_text(view: Mapping[str, Any], zone: tzinfo = UTC) -> str:
    """Return the log as people read it."""
    rows = [(clock_text(one["at_s"], zone), one["who"], one["command"]) for one in view["audit"]]
    width = max((len(who) for _, who, _ in rows), default=0)
    lines = [f"{at}  {who:{width}}  {command}\n" for at, who, command in rows]
    return "".join(lines) or "nothing was changed by a command\n"
