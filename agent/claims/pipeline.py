"""From a closed slot to its reports: window, plan, mechanism, ledger, in one pure decision.

The result is a claim: the new ledger and the reports, committed together or not at all. Whether
there is one depends on slot, state and which streams have a value, never on a value
(docs/design.md, Privacy model).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from agent.claims.elapsed import Elapsed
from agent.claims.limits import DAY_SECONDS
from agent.claims.slots import SlotValues
from edge_ldp.device.randomizer import Reporter
from edge_ldp.protocol.ledger import Ledger, charge, included
from edge_ldp.ratio import Ratio


class ActiveStream(NamedTuple):
    """What one stream runs: the plan's epoch, tag and channels, charged at the policy's ratio."""

    stream: int
    epoch: int
    reporter: Reporter
    ratio: Ratio
    tag: int = 0


class Report(NamedTuple):
    """The randomised code of one slot: the only thing made from readings that is ever kept."""

    stream: int
    slot: int
    epoch: int
    code: int
    tag: int = 0


class Claim(NamedTuple):
    """A slot's reports, and ledger and time that have been charged for them."""

    ledger: Ledger
    reports: tuple[Report, ...]
    elapsed: Elapsed | None = None


def decide(
    ledger: Ledger,
    elapsed: Elapsed,
    closed: SlotValues,
    streams: Sequence[ActiveStream | None],
    draw: Callable[[int], int],
) -> Claim | None:
    """Return the claim for a closed slot, or None if this slot does not report.

    Both the window of slots and that of elapsed time must allow it. `streams` holds one entry per
    position, None while it has no accepted plan. Each report is drawn here, once; the caller
    commits the claim before anything else may see it.
    """
    due = [
        (active, value)
        for position in included(ledger, closed.slot)
        if (active := streams[position]) is not None
        and (value := closed.values[position]) is not None
    ]
    if not due or not elapsed.allows(ledger.window, closed.slot, len(due)):
        return None
    charged = charge(
        ledger,
        closed.slot,
        closed.slot * elapsed.slot_seconds // DAY_SECONDS,
        [active.ratio for active, _ in due],
    )
    return Claim(
        charged,
        tuple(
            Report(
                active.stream,
                closed.slot,
                active.epoch,
                active.reporter.report(value, draw),
                active.tag,
            )
            for active, value in due
        ),
        elapsed.claimed(ledger.window, closed.slot, len(due)),
    )
