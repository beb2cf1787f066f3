"""Homes' sums of a period in a store, in words that SQLite and PostgreSQL share.

A release is kept as it came, one row each, beside what all of a period, layout and group add up to:
answers read the few totals, and a release again only where homes are few.
"""

from collections.abc import Callable, Iterable
from typing import Any

from aggregator.counting.period_totals import PeriodTotal, TotalKey, totals_of, unpack_total
from aggregator.counting.records import KeptSums
from edge_ldp.device.sums import DAY_S, MAX_DAYS

Rows = Callable[[str, tuple[Any, ...]], list[Any]]  # a statement with ? in place of values

CLAIMED_S = 2 * MAX_DAYS * DAY_S  # a re-send window, and what a period in it can overlap
CLAIMS = "SELECT device, name, first_s, end_s FROM period_sums WHERE end_s > ? AND device {}"
_ADD = """INSERT INTO period_sums (device, name, first_s, end_s, grp, held, payload)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_KEY = "name = ? AND first_s = ? AND end_s = ? AND layout = ? AND grp = ?"
_MAKE = """INSERT INTO period_totals (name, first_s, end_s, layout, grp, total)
    VALUES (?, ?, ?, ?, ?, '') ON CONFLICT DO NOTHING"""
_PUT = f"UPDATE period_totals SET total = ? WHERE {_KEY}"  # noqa: S608 (our own words)
_KEPT = "SELECT device, name, first_s, end_s, grp, held, payload FROM period_sums"
_WITHIN = "name = ? AND first_s >= ? AND end_s <= ?"


def put_sums(rows: Rows, kept: Iterable[KeptSums], lock: str = "") -> None:
    """Keep releases and add them to the totals, in a transaction; `lock` ends what reads to write.

    Totals are taken in one order, so that writers wait for each other and never in a circle.
    """
    kept = sorted(kept)
    for one in kept:
        rows(_ADD, (*one[:5], int(one.held), one.payload))
    _add_totals(rows, totals_of(kept), lock)


def count_held_sums(rows: Rows, device: str) -> None:
    """Add to the totals, in a transaction, what was kept of a device while it was held."""
    held = _kept(rows(f"{_KEPT} WHERE device = ? AND held = 1", (device,)))
    rows("UPDATE period_sums SET held = 0 WHERE device = ? AND held = 1", (device,))
    _add_totals(rows, totals_of(one._replace(held=False) for one in held), "")


def read_totals(
    rows: Rows, name: str, since_s: int, until_s: int, group: int | None
) -> dict[TotalKey, PeriodTotal]:
    """Return the totals of the periods that lie wholly in a span; raises RowError."""
    mine = "" if group is None else f" AND grp = {int(group)}"
    query = f"""SELECT name, first_s, end_s, layout, grp, total FROM period_totals
        WHERE {_WITHIN}{mine} ORDER BY first_s, end_s, layout, grp"""  # noqa: S608 (our own words, and a number)
    found = rows(query, (name, since_s, until_s))
    return {TotalKey._make(key): unpack_total(total) for *key, total in found}


def read_kept(  # noqa: PLR0913 (a place, a span, and whose)
    rows: Rows, name: str, since_s: int, until_s: int, group: int | None, *, held: bool
) -> list[KeptSums]:
    """Return the releases of the periods that lie wholly in a span; `held`: of held homes too."""
    mine = "" if group is None else f" AND grp = {int(group)}"
    mine += "" if held else " AND held = 0"
    query = f"{_KEPT} WHERE {_WITHIN}{mine} ORDER BY device, first_s"
    return _kept(rows(query, (name, since_s, until_s)))


def _kept(rows: Iterable[Any]) -> list[KeptSums]:
    return [
        KeptSums(device, name, first_s, end_s, group, bool(held), bytes(payload))
        for device, name, first_s, end_s, group, held, payload in rows
    ]


def _add_totals(rows: Rows, totals: dict[TotalKey, PeriodTotal], lock: str) -> None:
    for key in sorted(totals):
        rows(_MAKE, key)
        query = f"SELECT total FROM period_totals WHERE {_KEY}{lock}"  # noqa: S608 (our own words)
        ((before,),) = rows(query, key)
        total = totals[key].plus(unpack_total(before)) if before else totals[key]
        rows(_PUT, (total.pack(), *key))
