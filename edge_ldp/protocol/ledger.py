"""What a home has spent, and which slots may report at all: w-event windows, integers only.

Window: at most k reports in any w consecutive slots, k counting all streams of the home. Scheme: a
uniform random k-subset S of the cells 0..w·m−1 (m streams) is drawn once and committed; stream
position p of a slot reports iff (slot mod w)·m + p ∈ S. Exactly k in every window, every cell with
probability k/(w·m), independent of data. The ledger never refunds. Source: docs/design.md, Privacy
model, docs/methods.md, Windows.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.strict_json import Fields, MessageError, dumps, loads
from edge_ldp.ratio import Ratio

MAX_CELLS = 1 << 16
MAX_REPORTS = 1 << 14  # so that the state can always be read back: strict_json.MAX_BYTES
_BIG = 1 << 62
_Spent = tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Window:
    """At most `reports` in any `slots` consecutive slots, all `streams` of the home together."""

    reports: int
    slots: int
    streams: int

    def __post_init__(self) -> None:
        if not 1 <= self.streams <= MAX_CELLS or not 1 <= self.slots <= MAX_CELLS // self.streams:
            raise ParameterError("window slots", f"slots times streams in 1..{MAX_CELLS}")
        if not 1 <= self.reports <= min(self.slots * self.streams, MAX_REPORTS):
            raise ParameterError(
                "window reports", f"1 to slots times streams, at most {MAX_REPORTS}"
            )

    def most_in(self, slots: int) -> int:
        """Return the most reports that any `slots` consecutive slots can hold: no bound is less."""
        rounds, rest = divmod(slots, self.slots)
        return rounds * self.reports + min(self.reports, rest * self.streams)


@dataclass(frozen=True, slots=True)
class Ledger:
    """State of one device: committed together with the reports it allows.

    `floor`: highest slot claimed or given up; `silent_until`: first slot that may report;
    `spent`: (num, den, reports) for every ratio ever charged; `day`: days since 1970.
    """

    window: Window
    cells: tuple[int, ...]
    floor: int
    silent_until: int
    day: int = 0
    day_reports: int = 0
    spent: _Spent = ()

    @property
    def reports(self) -> int:
        """Reports ever made."""
        return sum(count for _, _, count in self.spent)

    @property
    def epsilon_spent(self) -> float:
        """Sum of ε over all reports ever made, for people to read."""
        return sum(Ratio(num, den).epsilon * count for num, den, count in self.spent)

    def to_json(self) -> bytes:
        """Return the state's one encoding."""
        w = self.window
        return dumps(
            {
                "v": 1,
                "window": {"reports": w.reports, "slots": w.slots, "streams": w.streams},
                "cells": list(self.cells),
                "floor": self.floor,
                "silent_until": self.silent_until,
                "day": self.day,
                "day_reports": self.day_reports,
                "spent": [list(row) for row in self.spent],
            }
        )


def parse_ledger(payload: bytes) -> Ledger:
    """Return the stored state; raises MessageError when it is damaged."""
    fields = loads(payload)
    fields.integer("v", 1, 1)
    w = fields.table("window")
    try:
        window = Window(
            w.integer("reports", 1, MAX_CELLS),
            w.integer("slots", 1, MAX_CELLS),
            w.integer("streams", 1, MAX_CELLS),
        )
    except ParameterError as exc:
        raise MessageError("value", "window", exc.expected) from exc
    cells = fields.items("cells", window.reports)
    if (
        len(cells) != window.reports
        or not all(
            type(cell) is int and 0 <= cell < window.slots * window.streams for cell in cells
        )
        or sorted(set(cells)) != cells
    ):
        raise MessageError("value", "cells", "rising cells of the window, one for each report")
    return Ledger(
        window=window,
        cells=tuple(cells),
        floor=fields.integer("floor", 0, _BIG),
        silent_until=fields.integer("silent_until", 0, _BIG),
        day=fields.integer("day", 0, _BIG),
        day_reports=fields.integer("day_reports", 0, _BIG),
        spent=_spent(fields),
    )


def open_ledger(window: Window, slot: int, draw: Callable[[int], int]) -> Ledger:
    """Return the ledger of a device without usable state: the window counts as spent.

    The current slot is given up, and so are the slots that a lost ledger's reports could share a
    window with.
    """
    return Ledger(
        window=window,
        cells=_subset(window, draw),
        floor=slot,
        silent_until=slot + window.slots,
    )


def adopt(ledger: Ledger, window: Window, slot: int, draw: Callable[[int], int]) -> Ledger:
    """Return the ledger under the configured window: the same, or redrawn after w silent slots."""
    if window == ledger.window:
        return ledger
    floor = max(slot, ledger.floor)
    return replace(
        ledger,
        window=window,
        cells=_subset(window, draw),
        floor=floor,
        silent_until=max(ledger.silent_until, floor + max(window.slots, ledger.window.slots)),
    )


def included(ledger: Ledger, slot: int) -> tuple[int, ...]:
    """Return the stream positions that may report in a slot; depends on slot and state only."""
    if slot <= ledger.floor or slot < ledger.silent_until:
        return ()
    first = slot % ledger.window.slots * ledger.window.streams
    return tuple(
        cell - first for cell in ledger.cells if first <= cell < first + ledger.window.streams
    )


def charge(ledger: Ledger, slot: int, day: int, ratios: Iterable[Ratio]) -> Ledger:
    """Return the ledger with a slot claimed and one report charged for each ratio.

    Raises ParameterError if the slot was claimed or given up before: it is never randomised twice.
    """
    if slot <= ledger.floor:
        raise ParameterError("slot", "above every slot claimed before")
    spent, made = ledger.spent, 0
    for ratio in ratios:
        spent = _spent_more(spent, ratio, 1)
        made += 1
    return replace(
        ledger,
        floor=slot,
        day=day,
        day_reports=made + (ledger.day_reports if day == ledger.day else 0),
        spent=spent,
    )


def conceded(ledger: Ledger, since: int, slot: int, ratio: Ratio) -> Ledger:
    """Return the ledger charged with all that a copy of it may have reported after `since`.

    Until `slot`, and for a whole window at the least: the copy's clock may have been another.
    """
    most = ledger.window.most_in(max(slot - since, ledger.window.slots))
    return replace(ledger, spent=_spent_more(ledger.spent, ratio, most))


def _spent_more(spent: _Spent, ratio: Ratio, reports: int) -> _Spent:
    """Return the rows with so many more reports of a ratio; a count ends at _BIG."""
    counts = {(num, den): count for num, den, count in spent}
    counts[ratio.num, ratio.den] = min(_BIG, counts.get((ratio.num, ratio.den), 0) + reports)
    return tuple((*key, counts[key]) for key in sorted(counts))


def _subset(window: Window, draw: Callable[[int], int]) -> tuple[int, ...]:
    """Draw a uniform subset of `reports` cells: Floyd's algorithm, one draw for each."""
    total = window.slots * window.streams
    chosen: set[int] = set()
    for last in range(total - window.reports, total):
        cell = draw(last + 1)
        chosen.add(last if cell in chosen else cell)
    return tuple(sorted(chosen))


def _spent(fields: Fields) -> _Spent:
    rows = fields.items("spent", 1024)
    for row in rows:
        if (
            not isinstance(row, list)
            or [type(number) for number in row] != [int, int, int]
            or not 0 < row[1] < row[0]
            or row[2] < 0
        ):
            raise MessageError("value", "spent", "rows [num, den, reports]")
    if len({(num, den) for num, den, _ in rows}) != len(rows):
        raise MessageError("value", "spent", "one row for each ratio")
    return tuple((row[0], row[1], row[2]) for row in rows)
