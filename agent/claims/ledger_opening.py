"""How a device begins to count its window: with a new ledger, the stored one, or a changed one."""

from collections.abc import Callable
from dataclasses import replace

from agent.claims.elapsed import Elapsed, Moment, begun, reconstructed
from edge_ldp.protocol.ledger import Ledger, Window, adopt, is_same_bound, open_ledger

DAY_SECONDS = 86_400
LOST_DAYS = 35  # as long as reports are kept (`[sending] max_age_days`)
Draw = Callable[[int], int]


def opened(  # noqa: PLR0913 (what is stored, what is configured, and now)
    stored: Ledger | None,
    elapsed: Elapsed | None,
    *,
    window: Window,
    slot_seconds: int,
    moment: Moment,
    taken_until: int,
    draw: Draw,
    is_lost: bool = False,
) -> tuple[Ledger, Elapsed]:
    """Return the ledger and the time to go by, under the configured window and slot length.

    Without a stored ledger the window counts as spent. Another window or slot length, and a clock
    that had been ahead by more than a window, begin a new one after a silence; what was spent
    stays. Another period of the same window is silent only while the reports before ask for it.
    elapsed: None in a file of an older version. Slots up to `taken_until` were released by a
    curator of the same file: they report no more, unless its clock had been ahead.
    is_lost: there was a state of this name before, of which nothing is known. What it reported lies
    in the slots before now, so none of them reports again if the clock is set back later: not for
    LOST_DAYS, which is what a device waits at most whose clock was ahead when its state was lost.
    """
    slot = int(moment.wall_s // slot_seconds)
    if stored is None:
        before = ((max(0, slot - LOST_DAYS * DAY_SECONDS // slot_seconds), slot),)
        ledger, time = (
            open_ledger(window, slot, draw),
            begun("new", slot_seconds, moment, window.slots, before if is_lost else ()),
        )
    else:
        known = elapsed or reconstructed(stored, slot_seconds, moment)
        ledger, time = _gone_on(stored, known, window, slot_seconds, moment, draw)
    if ledger.floor < taken_until <= slot + window.slots:
        ledger = replace(ledger, floor=taken_until)
    return ledger, time


def is_behind(ledger: Ledger, slot: int) -> bool:
    """Say whether the clock is so far behind the ledger that it must have been ahead before."""
    return ledger.floor - slot > ledger.window.slots


def is_other_time(
    stored: Ledger, elapsed: Elapsed | None, slot_seconds: int, moment: Moment
) -> bool:
    """Say whether slots are of another length than before, or the clock had been ahead."""
    is_other_slot = elapsed is not None and elapsed.slot_seconds != slot_seconds
    return is_other_slot or is_behind(stored, int(moment.wall_s // slot_seconds))


def at_hand(
    stored: Ledger, before: Elapsed, slot_seconds: int, moment: Moment
) -> tuple[Ledger, Elapsed]:
    """Return both now; at the beginning of a new window if slots or the clock are other ones."""
    if is_other_time(stored, before, slot_seconds, moment):
        reason = "clock" if before.slot_seconds == slot_seconds else "slot"
        return next_window(stored, before, reason, slot_seconds, moment)
    return stored, before.at(moment)


def next_window(
    ledger: Ledger, elapsed: Elapsed, reason: str, slot_seconds: int, moment: Moment
) -> tuple[Ledger, Elapsed]:
    """Return both at the beginning of another window of the same kind, after its silence.

    What is left of a silence before, in time that has passed, is part of it: an earlier window may
    have been longer (docs/faults.md, AGT-30).
    """
    slot = int(moment.wall_s // slot_seconds)
    now = elapsed.at(moment)
    old = max(ledger.window.slots, now.silent - now.slot + 1)
    pause = max(-(-old * elapsed.slot_seconds // slot_seconds), ledger.window.slots)
    runs = elapsed.runs if slot_seconds == elapsed.slot_seconds else ()
    if reason == "rollback":  # the clock is not known to have been wrong
        slot = max(slot, ledger.floor)
    return (
        replace(ledger, floor=slot, silent_until=slot + pause),
        begun(reason, slot_seconds, moment, pause, runs),
    )


def _gone_on(  # noqa: PLR0913, PLR0917 (as `opened`)
    stored: Ledger,
    before: Elapsed,
    window: Window,
    slot_seconds: int,
    moment: Moment,
    draw: Draw,
) -> tuple[Ledger, Elapsed]:
    slot = int(moment.wall_s // slot_seconds)
    ledger, elapsed = at_hand(stored, before, slot_seconds, moment)
    if window != stored.window and is_same_bound(window, stored.window):
        reason = "window" if ledger is stored else elapsed.reason
        return adopt(ledger, window, slot, draw), replace(elapsed, reason=reason)
    if window != stored.window:
        reason = "window" if ledger is stored else elapsed.reason
        ledger = adopt(ledger, window, slot, draw)
        pause = max(window.slots, stored.window.slots, elapsed.silent - elapsed.slot)
        elapsed = replace(begun(reason, slot_seconds, moment, pause), runs=elapsed.runs)
    return ledger, elapsed
