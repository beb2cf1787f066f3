"""How well a window's schedule samples the day and the week, and the period that does it best.

A home reports for ever in the same slots mod a period. It keeps "at most k in any w slots" with any
period of w slots *or more*, so the period is chosen by its walk through the day: with 97 quarter
hours a slot comes back a quarter of an hour later each day, and for weeks a home tells of one time
of day only. Exact fractions of integers, so that every party finds the same.

**The design effect** of a schedule is the variance, over which random slots are a home's, of how
often it reports while a square wave is on, less the wave's share of all its reports, divided by
what reports at independent times and of the same rate have: on average over the wave's phase, for
the worst of WAVES. With 1 a schedule is as good as independent slots, with 17 an interval of on/off
loads is four times too narrow where noise adds nothing. Source: docs/methods.md, Windows.
"""

from fractions import Fraction
from functools import lru_cache
from math import gcd

_DAY_S = 86_400
DAYS, _WEEK, _YEAR = 28, 7, 364
WAVES = (
    *((_DAY_S, hours * 3600) for hours in (3, 4, 6, 8, 12)),
    *((_WEEK * _DAY_S, days * _DAY_S) for days in (1, 2, 3)),
)
"""Length and time on, in seconds, of a day's and of a week's waves; off for as long is the same.

Those that are on for less than a slot do not count."""

GOOD = Fraction(2, 5)
"""An effect over 28 days at or below it is as good as any: a longer period costs reports."""

MOST_TIMES = 3
"""A period is at most so many times its window."""


def design_effect(
    period: int, slot_seconds: int, *, reports: int = 1, streams: int = 1, days: int = DAYS
) -> Fraction:
    """Return the effect of `reports` random cells of a period, over so many days, exactly.

    One stream's of all `streams`. Several reports repel each other: with one it is largest. Cost:
    days / period.
    """
    return _walk(period, slot_seconds, days) * _repelled(reports, period, streams)


@lru_cache(maxsize=64)
def chosen_period(reports: int, slots: int, streams: int, slot_seconds: int, most: int) -> int:
    """Return the period of a window's schedule, in slots: from `slots` to `most`.

    The shortest whose effect is GOOD over 28 days and 1 over a week and a year; if there is none up
    to MOST_TIMES the window, the one of least period × effect, which a sample's variance goes by.
    A window that nearly every cell reports in keeps its own length.
    """
    repelled = _repelled(reports, slots, streams)
    if not repelled or _excess(slots, slot_seconds) * repelled <= 1:
        return slots
    best, least = slots, slots * max(Fraction(1), _excess(slots, slot_seconds))
    for period in range(slots + 1, min(most, MOST_TIMES * slots) + 1):
        if period >= least:
            break
        cost = period * max(Fraction(1), _excess(period, slot_seconds))
        if cost < least:
            best, least = period, cost
    return best


def _excess(period: int, slot_seconds: int) -> Fraction:
    """Return how many times the effect is what it should be, at the worst of three horizons."""
    month, week = (_walk(period, slot_seconds, days) for days in (DAYS, _WEEK))
    return max(month / GOOD, week, _kept(period, slot_seconds))


def _repelled(reports: int, slots: int, streams: int) -> Fraction:
    """Return the variance of a draw without replacement, as a share of one with it.

    Of one stream's cells, which are as many as the others'; where they cannot be, it is less.
    """
    cells = slots * streams
    return Fraction(cells - reports, max(1, cells - streams))


@lru_cache(maxsize=1024)
def _walk(period: int, slot_seconds: int, days: int) -> Fraction:
    """Return the effect of one slot a period: a wave's autocovariance over its pairs of slots."""
    slots = days * _DAY_S // slot_seconds
    pairs = [(slots - lag, lag * slot_seconds) for lag in range(period, slots, period)]
    waves = [_of_wave(slots, pairs, *wave) for wave in _seen(slot_seconds)]
    return max(waves, default=Fraction(0))


def _seen(slot_seconds: int) -> list[tuple[int, int]]:
    return [wave for wave in WAVES if wave[1] >= slot_seconds]


def _of_wave(slots: int, pairs: list[tuple[int, int]], length: int, on: int) -> Fraction:
    alone = slots * on * (length - on)
    together = 0
    for count, apart in pairs:
        late = apart % length
        together += count * (length * max(0, on - min(late, length - late)) - on * on)
    return Fraction(alone + 2 * together, alone)


def _kept(period: int, slot_seconds: int) -> Fraction:
    """Return what a year keeps of the effect because the walk knows a few times of day only."""
    rounds = Fraction(_YEAR * _DAY_S, period * slot_seconds)
    worst = Fraction(0)
    for length, on in _seen(slot_seconds):
        step = gcd(period * slot_seconds, length)
        part = Fraction(on % step, step)
        share = Fraction(on, length)
        kept = Fraction(step, length) ** 2 * part * (1 - part) / (share * (1 - share))
        worst = max(worst, rounds * kept)
    return worst
