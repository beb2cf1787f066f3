"""What a home has spent, and which slots may report at all: w-event windows, integers only.

Window: at most k reports in any w consecutive slots, k counting all streams of the home. Scheme: a
random k-subset S of the cells 0..p·m−1 (m streams, a period of p ≥ w slots) is drawn once and
committed; stream position j of a slot reports iff (slot mod p)·m + j ∈ S. Exactly k in every
period, so at most k in every window, every cell with probability k/(p·m), independent of data. No
stream has two cells more than another: with k ≥ m, none is without. The ledger never refunds.
Source: docs/design.md, Privacy model, docs/methods.md, Windows.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

from edge_ldp.device.errors import ParameterError
from edge_ldp.lean_class import lean_class
from edge_ldp.protocol.schedule import chosen_period
from edge_ldp.protocol.strict_json import Fields, MessageError, dumps, fields_of, loads
from edge_ldp.ratio import Ratio

MAX_CELLS = 1 << 16
MAX_REPORTS = 1 << 14  # so that the state can always be read back: strict_json.MAX_BYTES
VERSION = 2  # 1: without a period, which is then the window's slots
_BIG = 1 << 62
_Spent = tuple[tuple[int, int, int], ...]


@lean_class(frozen=True, slots=True)
class Window:
    """At most `reports` in any `slots` consecutive slots, all `streams` of the home together.

    `period`: after how many slots the schedule repeats, `slots` or more; left out, it is `slots`.
    """

    reports: int
    slots: int
    streams: int
    period: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.streams <= MAX_CELLS or not 1 <= self.slots <= MAX_CELLS // self.streams:
            raise ParameterError("window slots", f"slots times streams in 1..{MAX_CELLS}")
        if not 1 <= self.reports <= min(self.slots * self.streams, MAX_REPORTS):
            raise ParameterError(
                "window reports", f"1 to slots times streams, at most {MAX_REPORTS}"
            )
        if self.period == 0:
            object.__setattr__(self, "period", self.slots)
        if not self.slots <= self.period <= MAX_CELLS // self.streams:
            raise ParameterError("window period", f"slots or more, times streams to {MAX_CELLS}")

    @property
    def cells(self) -> int:
        """Slots times streams of a period: `reports` of so many report."""
        return self.period * self.streams

    @property
    def chance(self) -> Fraction:
        """How likely one stream reports in a slot."""
        return Fraction(self.reports, self.cells)

    @property
    def heard(self) -> Fraction:
        """How likely a stream reports in a slot that has any in a period: if k is less, k have."""
        return max(self.chance, Fraction(1, self.period))

    def reports_in(self, slots: int) -> float:
        """Return how many reports all streams make in so many slots, on average."""
        return float(slots * self.streams * self.chance)

    def most_in(self, slots: int) -> int:
        """Return the most reports that any `slots` consecutive slots may hold, as is promised."""
        rounds, rest = divmod(slots, self.slots)
        return rounds * self.reports + min(self.reports, rest * self.streams)


def scheduled(reports: int, slots: int, streams: int, slot_seconds: int) -> Window:
    """Return the window with the period that samples day and week best (protocol/schedule.py)."""
    window = Window(reports, slots, streams)
    most = MAX_CELLS // streams
    period = chosen_period(reports, slots, streams, slot_seconds, most)
    return replace(window, period=period)


@lean_class(frozen=True, slots=True)
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
        return dumps({"v": VERSION, **fields_of(self), "window": fields_of(self.window)})


def parse_ledger(payload: bytes) -> Ledger:
    """Return the stored state, of any version; raises MessageError when it is damaged."""
    fields = loads(payload)
    version = fields.integer("v", 1, VERSION)
    w = fields.table("window")
    try:
        window = Window(
            w.integer("reports", 1, MAX_CELLS),
            w.integer("slots", 1, MAX_CELLS),
            w.integer("streams", 1, MAX_CELLS),
            w.integer("period", 1, MAX_CELLS) if version > 1 else 0,
        )
    except ParameterError as exc:
        raise MessageError("value", "window", exc.expected) from exc
    cells = fields.items("cells", window.reports)
    if (
        len(cells) != window.reports
        or not all(type(cell) is int and 0 <= cell < window.cells for cell in cells)
        or sorted(set(cells)) != cells
    ):
        raise MessageError("value", "cells", "rising cells of the period, one for each report")
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
        cells=_cells(window, draw),
        floor=slot,
        silent_until=slot + window.slots,
    )


def adopt(ledger: Ledger, window: Window, slot: int, draw: Callable[[int], int]) -> Ledger:
    """Return the ledger under the configured window: the same, or redrawn after w silent slots.

    Where only the period is another one, the silence is as short as the reports before allow.
    """
    if window == ledger.window:
        return ledger
    changed = replace(ledger, window=window, cells=_cells(window, draw))
    if is_same_bound(window, ledger.window):
        first = _first_beside(ledger, changed)
        return replace(changed, silent_until=max(ledger.silent_until, first))
    floor = max(slot, ledger.floor)
    first = floor + max(window.slots, ledger.window.slots)
    return replace(changed, floor=floor, silent_until=max(ledger.silent_until, first))


def is_same_bound(window: Window, other: Window) -> bool:
    """Say whether two windows promise the same of the same streams, whatever their periods."""
    bound, its = ((one.reports, one.slots, one.streams) for one in (window, other))
    return bound == its


def _first_beside(old: Ledger, new: Ledger) -> int:
    """Return the first slot from which no window holds too many reports of both schedules together.

    The old one is taken to have reported wherever it could, up to its floor; `room` is what it
    leaves of the window that ends with a slot, `made` what the new one would report up to there.
    What was before the old one is not known: if that is less than a window ago, a whole one passes.
    """
    width, floor = new.window.slots, old.floor
    if floor - width + 1 < old.silent_until:
        return floor + width
    before, after = _a_slot(old), _a_slot(new)
    past = {
        slot: before.get(slot % old.window.period, 0)
        for slot in range(floor - width + 1, floor + 1)
    }
    room = new.window.reports - sum(past.values())
    made = too_many = 0
    for end in range(floor + 1, floor + width + 1):
        room += past.get(end - width, 0)
        made += after.get(end % new.window.period, 0)
        too_many = max(too_many, made - room)
    first = floor + 1
    while too_many > 0:
        too_many -= after.get(first % new.window.period, 0)
        first += 1
    return first


def _a_slot(ledger: Ledger) -> Counter[int]:
    """Return how many streams report in each slot of a period."""
    return Counter(cell // ledger.window.streams for cell in ledger.cells)


def included(ledger: Ledger, slot: int) -> tuple[int, ...]:
    """Return the stream positions that may report in a slot; depends on slot and state only."""
    if slot <= ledger.floor or slot < ledger.silent_until:
        return ()
    first = slot % ledger.window.period * ledger.window.streams
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


def _cells(window: Window, draw: Callable[[int], int]) -> tuple[int, ...]:
    """Draw `reports` cells: as many of each stream, and one more of some that are drawn first."""
    streams = window.streams
    each, more = divmod(window.reports, streams)
    some = _subset(streams, more, draw)
    return tuple(
        sorted(
            slot * streams + stream
            for stream in range(streams)
            for slot in _subset(window.period, each + (stream in some), draw)
        )
    )


def _subset(total: int, size: int, draw: Callable[[int], int]) -> set[int]:
    """Draw a uniform subset of 0..total−1: Floyd's algorithm, one draw for each."""
    chosen: set[int] = set()
    for last in range(total - size, total):
        one = draw(last + 1)
        chosen.add(last if one in chosen else one)
    return chosen


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
