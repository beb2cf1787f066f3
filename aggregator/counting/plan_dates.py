"""When a plan can have been in force, where a clock was ahead as it was issued.

Epochs rise, so a plan that follows another cannot be older than it. One that is dated after its
successor was dated by a clock that was ahead: it is true only that it was issued after the one
before it, and before the one after. Source: docs/faults.md, PLN-18.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def latest(issued: Mapping[int, int]) -> dict[int, int]:
    """Return the last second at which each plan can have been issued; `issued`: date by epoch."""
    found: dict[int, int] = {}
    at_s = max(issued.values(), default=0)
    for epoch in sorted(issued, reverse=True):
        found[epoch] = at_s = min(at_s, issued[epoch])
    return found


def earliest(issued: Mapping[int, int]) -> dict[int, int]:
    """Return the first second at which each plan can have been issued; `issued`: date by epoch.

    Its date, unless that is ahead of a later plan's; then that of the plan before it, or 0.
    """
    found: dict[int, int] = {}
    last, at_s = latest(issued), 0
    for epoch in sorted(issued):
        found[epoch] = at_s = issued[epoch] if issued[epoch] == last[epoch] else at_s
    return found
