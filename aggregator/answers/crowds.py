"""Whether a figure may be given out: decided here, once, for whatever shows one.

A figure is of a crowd when at least `least` devices' reports are in it: those of its own kind, so a
mean of stream reports is not hidden by surveys. What can be had by subtracting is a figure too: all
devices less a group, a whole less all of its parts that are shown. Where a store does not know who
reported (before it kept that), a device can have reported once a slot: reports by slots are how
many they are of at least. And what an account of one device tells: whoever looks at it twice must
not learn that it reported in between. Source: docs/faults.md, AGG-13, AGG-30, AGG-36.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from msgspec.structs import replace

from aggregator.answers.parts import AnswerPart
from aggregator.counting.reporters import ENOUGH, KINDS, NOBODY, at_least, pack_reporters, united

T = TypeVar("T", bound=AnswerPart)
MOVED = {  # of one device's account, by a report that a figure counts, or its status just before
    *("created", "counted", "held", "expired", "pending", "duplicates"),
    *("highest_batch", "gaps", "missing_batches"),
}
MOVED_AGES = ("commit_s",)  # of what a status tells


@dataclass(frozen=True, slots=True)
class Reported:
    """Who reported in a cell: stream reports and surveys, and the slots that they are of.

    `who`, and `beside`: those that are left out of it (counting.reporters); `heard`: how many
    devices there can have been at most, which is asked for beyond ENOUGH reporters.
    """

    reports: tuple[int, int] = (0, 0)
    slots: int = 0
    who: bytes = NOBODY
    beside: bytes = NOBODY
    heard: int = ENOUGH

    def least_of(self, kind: int) -> int:
        """Return how many devices reported of a kind at least."""
        by_slots = -(-self.reports[kind] // self.slots) if self.slots else 0
        known = max(at_least(self.who, kind), by_slots)
        return max(known, self.heard) if known >= ENOUGH else known


def is_crowd(cell: Reported, least: int, kinds: Iterable[int] = KINDS) -> bool:
    """Say whether figures of a cell may be given out, as of these kinds of reports.

    Nothing is told of a kind without reports. Of devices left out there must be none, or a crowd.
    """
    if least <= 1:
        return True
    few = min(least, ENOUGH)
    return all(
        (not cell.reports[kind] or cell.least_of(kind) >= least)
        and not 0 < at_least(cell.beside, kind) < few
        for kind in kinds
    )


def withheld(cells: Sequence[Reported], least: int, kinds: Sequence[int] = KINDS) -> set[int]:
    """Return which cells, parts of a whole that is shown, tell of few devices.

    The whole less all others is what is withheld: that has to be of a crowd, too, so the parts of
    the fewest devices follow until it is.
    """
    found = {at for at, cell in enumerate(cells) if not is_crowd(cell, least, kinds)}
    if not found:
        return found
    others = set(range(len(cells))) - found
    for at in sorted(others, key=lambda at: min(cells[at].least_of(kind) for kind in kinds)):
        if is_crowd(joined(cells[one] for one in found), least, kinds):
            break
        found.add(at)
    return found


def joined(cells: Iterable[Reported]) -> Reported:
    """Return the cell of all reports in these."""
    several = list(cells)
    streams, surveys = (sum(one.reports[kind] for one in several) for kind in KINDS)
    return Reported(
        (streams, surveys),
        sum(one.slots for one in several),
        united(one.who for one in several),
        united(one.beside for one in several),
        max((one.heard for one in several), default=0),
    )


def account_told(account: T, least: int) -> T:
    """Return what may be told of one device's account: nothing that its counted reports move.

    Two looks would name who reported between them, and what a figure grew by is that report. What
    is in no figure stays, and what the device says it gave up unconfirmed.
    """
    if least <= 1:
        return account
    return replace(account, **dict.fromkeys(MOVED.intersection(account.__struct_fields__)))


def is_sum_told(devices: int, others: int, least: int) -> bool:
    """Say whether accounts of so many devices may be told as a sum; `others`: those left out."""
    return devices >= least and (not others or others >= least)


def supposed(devices: int) -> bytes:
    """Return a set of so many devices, of whom nobody is known: of a store from before."""
    return pack_reporters(range(devices), range(devices))
