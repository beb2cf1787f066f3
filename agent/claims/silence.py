"""Why a device is silent, and until when: for its health, and for whoever asks."""

from typing import NamedTuple

from agent.claims.elapsed import Elapsed, Moment
from edge_ldp.protocol.ledger import Ledger

BEHIND = "behind"  # the clock is within slots that were reported: they are not reported again
WORDS = {
    "new": "no usable ledger",
    "window": "the window changed",
    "clock": "the clock had been ahead",
    "slot": "the slot length changed",
    "rollback": "rollback",
    BEHIND: "the clock is behind slots that have reported",
}
FAULTS = ("clock", "slot", "rollback", BEHIND)  # what an owner has to be told of


class Silence(NamedTuple):
    """Nothing is reported before `until_s` (seconds UTC), for a reason of WORDS."""

    reason: str
    until_s: int


def silence(ledger: Ledger, elapsed: Elapsed, moment: Moment) -> Silence | None:
    """Return why nothing may be reported now, or None; a window that is used up is no silence."""
    seconds = elapsed.slot_seconds
    slot = int(moment.wall_s // seconds)
    if slot < ledger.silent_until or elapsed.wait_s:
        first = max(ledger.silent_until, ledger.floor + 1) * seconds
        return Silence(elapsed.reason, max(first, int(moment.wall_s) + elapsed.wait_s))
    end = ledger.floor if slot < ledger.floor else elapsed.taken_until(slot)
    return None if end is None else Silence(BEHIND, (end + 1) * seconds)
