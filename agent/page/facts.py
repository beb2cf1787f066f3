"""What the page tells, from what left and what is stored: days, spans, the newest. Pure.

A report counts for the day that it is of, by the clocks of the home, whenever it left.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import fsum
from typing import Any, NamedTuple

from agent.home_time import local
from agent.page.left import SUM, LeftItem

CAME, WAITS, GONE = "confirmed", "waiting", "given up"
SHOWN_DAYS = 28
NEWEST = 12
_WEEK = 7


class LeftReport(NamedTuple):
    """One report and what became of it; what it cost, by `epsilon` at most."""

    item: LeftItem
    became: str
    epsilon: float


class Counts(NamedTuple):
    """How many reports were made, and what became of them; ε at most."""

    name: str
    made: int
    came: int
    waits: int
    gone: int
    epsilon: float


class PlanFile(NamedTuple):
    """A plan in force, what may be taken along of it, and what it asks."""

    stream: str
    words: str
    plan: str
    certificate: str
    prove: str


@dataclass(frozen=True, slots=True)
class PageFacts:
    """All that the page shows; texts are in plain words, times in seconds since 1970.

    `silent`: until when nothing is reported, and why; None: reports are made.
    """

    device: str
    fleet: str
    now_s: int
    health: str
    silent: str | None
    since_s: int | None
    spans: tuple[Counts, ...]
    days: tuple[Counts, ...]
    newest: tuple[str, ...]
    standing: tuple[tuple[str, str], ...]
    warnings: tuple[str, ...]
    habits: tuple[Mapping[str, Any], ...]
    so_far: str
    plans: tuple[PlanFile, ...]
    never: str


def spans_of(
    told: Sequence[LeftReport], now_s: int, window_s: int, window: str
) -> tuple[Counts, ...]:
    """Return what left today, yesterday, in the window that ends now, and in days before."""
    today = local(now_s).date()
    week, month = (today - timedelta(days - 1) for days in (_WEEK, SHOWN_DAYS))
    return (
        _counts("today", (one for one in told if _day(one) >= today)),
        _counts("yesterday", (one for one in told if _day(one) == today - timedelta(1))),
        _counts(window, (one for one in told if one.item.to_s > now_s - window_s)),
        _counts("the last 7 days", (one for one in told if _day(one) >= week)),
        _counts(f"the last {SHOWN_DAYS} days", (one for one in told if _day(one) >= month)),
    )


def days_of(told: Sequence[LeftReport], now_s: int) -> tuple[Counts, ...]:
    """Return the same of each of the last days, oldest first."""
    today = local(now_s).date()
    days = [today - timedelta(SHOWN_DAYS - 1 - at) for at in range(SHOWN_DAYS)]
    by_day: dict[date, list[LeftReport]] = {day: [] for day in days}
    for one in told:
        by_day.get(_day(one), []).append(one)
    return tuple(_counts(f"{day:%Y-%m-%d}", found) for day, found in by_day.items())


def _counts(name: str, told: Iterable[LeftReport]) -> Counts:
    found = list(told)
    came, waits, gone = (sum(one.became == how for one in found) for how in (CAME, WAITS, GONE))
    return Counts(name, len(found), came, waits, gone, fsum(one.epsilon for one in found))


def _day(one: LeftReport) -> date:
    """Return the day that a report is of; of a period's sums the one that it ended with."""
    at_s = one.item.to_s - 1 if one.item.kind == SUM else one.item.from_s
    return local(at_s).date()
