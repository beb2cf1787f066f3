"""From dated readings to slot values: mean power over a slot, or a register's rise across it.

A slot closes when readings of a later slot came, or when the clock says it is over. Whether it gets
a value depends on when readings came, never on what they said (`gauges` has the rules and the one
exception). Values live in memory only and hide in every representation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum

from agent.claims.gauges import JOINED_SHARE, Borders, Gauge, MeanGauge, RiseGauge
from agent.claims.spacing import Spacing
from agent.meters.reading import GAS, UNITS
from agent.meters.section import Quantity
from edge_ldp.lean_class import lean_class

INTERVALS = 3
"""A telegram stands for so many of the meter's intervals at most, and never longer than a slot."""

BURST_S = 2
"""Of telegrams that come within so many seconds after a silence an adapter may have kept some."""

BURST_SHARE = 15
"""In short slots these are so many parts of one."""

INTERVAL_S = 10
"""How far apart most meters' telegrams come at most."""


class Kind(Enum):
    """What a stream's value is: a register's rise may be told as the mean power that makes it."""

    MEAN = "mean"
    RISE = "rise"
    RATE = "rate"


STREAM_UNITS = UNITS | {GAS: "dm3"}
REGISTER_UNITS = ("Wh", "dm3")  # of what only rises: a slot's value is by how much
KINDS = {
    quantity: Kind.RISE if unit in REGISTER_UNITS else Kind.MEAN
    for quantity, unit in STREAM_UNITS.items()
}
REGISTERS: dict[str, Quantity] = {"power": "energy_import", "power_export": "energy_export"}
"""What a mean power may be made of where a meter tells no power: the register that it drives."""


def most_apart_s(kind: Kind, slot_seconds: int) -> int:
    """Return how far apart telegrams may come at most, for slots to have a value."""
    return slot_seconds if kind is Kind.MEAN else slot_seconds // JOINED_SHARE


@lean_class(frozen=True, slots=True)
class SlotValues:
    """A closed slot and its value for each stream in order, None where there is none.

    `at`: it is a slot of one stream's own length, and holds that stream's value alone.
    """

    slot: int
    values: tuple[int | None, ...] = field(repr=False)
    at: int | None = None


@lean_class(frozen=True, slots=True)
class _Beginning:
    """What comes first in a slot: nothing of it is taken yet, and the one before is still open."""

    first: dict[int, dict[str, int]] = field(repr=False)  # by second,
    until_s: int  # and until when
    is_shown: bool  # whether times show a register at it
    stood_s: int  # for how long what came before may have stood
    ending: int | None  # the slot before,
    heard_s: int | None  # and when its last telegram came


class SlotBuilder:
    """Collects the readings of one meter, one slot at a time; times are seconds UTC.

    `streams` gives (quantity, kind) for each stream in order; `interval_s` what is told of the
    meter's interval. Readings of a slot already closed are ignored: at most one close per slot,
    slots rising. So are those of the slot before the open one, a border's jitter; times further
    back show that a clock had jumped ahead, and the slot opened then is dropped.

    After a silence a slot begins with all that comes within `burst_s`: an adapter may have kept
    some of it, and of registers told together the last is of now. So long the one before is open.
    """

    def __init__(
        self,
        slot_seconds: int,
        streams: Sequence[tuple[str, Kind]],
        register_wh: int | None = None,
        *,
        interval_s: int = INTERVAL_S,
        burst_s: int = BURST_S,
    ) -> None:
        self.slot_seconds = slot_seconds
        self.given_up: tuple[str, ...] = ()
        self._quantities = [quantity for quantity, _ in streams]
        self._kinds = [kind for _, kind in streams]
        self._register_wh = register_wh
        self._borders = Borders(slot_seconds)
        self._spacing = Spacing(interval_s)
        self._burst_s = min(burst_s, slot_seconds // BURST_SHARE)
        self._gauges = [self._gauge(kind) for kind in self._kinds]
        self._heard_s: int | None = None
        self._slot: int | None = None  # the newest one that something came in
        self._is_begun = False  # whether times show a register at its beginning
        self._floor = -1  # the slot closed last
        self._missed: tuple[str, ...] = ()  # and what it lacked, by times alone
        self._run_from = 0  # the first of the slots in a row that something came in
        self._beginning: _Beginning | None = None  # of the newest one, while it comes

    def is_ahead(self, slot: int) -> bool:
        """Say whether slots far beyond the present one were closed: the clock was set back since.

        It closes none before those any more: begin with another builder.
        """
        return self._floor > slot + 1

    def read(self, time_s: int, readings: Mapping[str, int]) -> SlotValues | None:
        """Take one telegram's readings; return the earlier slot that it closes, if any."""
        slot = time_s // self.slot_seconds
        if self._slot is not None and self._floor < slot < self._slot - 1:
            self._drop()
        if slot <= self._floor or (self._slot is not None and slot < self._slot):
            return None
        may_be_kept = self._burst_s > 0 and self._spacing.is_after_silence(time_s)
        self._spacing.note(time_s)
        closed, now = None, self._beginning
        if now is not None and (slot != self._slot or time_s > now.until_s):
            closed = self._turn(now)
        if slot != self._slot:
            begins = self._begins(slot, time_s, readings)
            self._beginning, self._slot = begins, slot
            if not may_be_kept and closed is None:
                closed = self._turn(begins)
        elif self._beginning is not None:
            self._beginning.first.setdefault(time_s, {}).update(readings)
        else:
            for quantity, gauge in self._each():
                if quantity in readings:
                    gauge.take((time_s, readings[quantity]), self._stands_s)
        self._heard_s = max(time_s, self._heard_s or 0)
        return closed

    def close_before(self, slot: int) -> SlotValues | None:
        """Close the open slot if it lies before `slot`: its time is over and nothing came."""
        if self._beginning is not None and (closed := self._turn(self._beginning)) is not None:
            return closed
        if self._slot is None or self._slot >= slot:
            return None
        ended, self._slot = self._slot, None
        return self._give_up(ended, self._stands_s)

    def pass_to(self, now_s: int) -> SlotValues | None:
        """Let time pass: no telegram that comes from now on is dated earlier. Return what closes.

        Two slots, an ending one and a short one after it, close at two times.
        """
        if self._beginning is not None:
            return self._turn(self._beginning) if now_s > self._beginning.until_s else None
        if self._slot is None:
            return None
        until_s = (self._slot + 1) * self.slot_seconds
        if (
            self._is_begun
            and self._heard_s is not None
            and any(kind is not Kind.MEAN for kind in self._kinds)
        ):
            until_s = 1 + self._borders.awaited_s(until_s, self._heard_s)
        return self.close_before(self._slot + 1) if now_s >= until_s else None

    def first_open(self, now_s: int) -> int:
        """Return the first slot that may still get a value, at a time that was passed to."""
        ending = None if self._beginning is None else self._beginning.ending
        return next(
            (one for one in (ending, self._slot) if one is not None), now_s // self.slot_seconds
        )

    def forget_registers(self) -> SlotValues | None:
        """Take no rise across this moment: what registers show from now on is another meter's.

        A slot whose beginning was still coming begins; return the one that this closes, if any.
        """
        closed = None if self._beginning is None else self._turn(self._beginning)
        for gauge in self._gauges:
            gauge.forget()
        return closed

    @property
    def interval_s(self) -> int:
        """How far apart telegrams come, as far as is known."""
        return self._spacing.seconds

    @property
    def _stands_s(self) -> int:
        return min(self.slot_seconds, INTERVALS * self.interval_s)

    def _each(self) -> Iterator[tuple[str, Gauge]]:
        return zip(self._quantities, self._gauges, strict=True)

    def _drop(self) -> None:
        """Drop the newest slot: what was read ahead of its time is not true."""
        if self._beginning is not None:  # nothing of it was taken
            self._slot, self._heard_s = self._beginning.ending, self._beginning.heard_s
            self._beginning = None
        else:
            self._forget_all()

    def _begins(self, slot: int, time_s: int, readings: Mapping[str, int]) -> _Beginning:
        is_shown = self._borders.is_joined(self._heard_s, time_s) or self._borders.is_at(
            slot * self.slot_seconds, time_s
        )
        return _Beginning(
            {time_s: dict(readings)},
            until_s=time_s + self._burst_s,
            is_shown=is_shown,
            stood_s=self._stands_s,
            ending=self._slot,
            heard_s=self._heard_s,
        )

    def _turn(self, now: _Beginning) -> SlotValues | None:
        """Begin the newest slot with what came first in it; return the one that this ends."""
        slot, ending, stood_s = self._slot, now.ending, now.stood_s
        assert slot is not None  # noqa: S101 (something came in it)
        self._beginning = None
        start_s, closed = slot * self.slot_seconds, None
        came = [
            [(at, told[quantity]) for at, told in now.first.items() if quantity in told]
            for quantity in self._quantities
        ]
        each = list(zip(self._gauges, came, strict=True))
        was_begun, self._is_begun = self._is_begun, now.is_shown
        if ending == slot - 1:
            values = tuple(gauge.turn(start_s, told, stood_s) for gauge, told in each)
            closed = self._closed(ending, values, is_bordered=was_begun and now.is_shown)
        elif ending is not None:
            closed = self._give_up(ending, stood_s)
        goes_on = slot == self._floor + 1
        self.given_up = self._missed if goes_on and self._floor > self._run_from else ()
        if not goes_on:
            self._run_from = slot
        for gauge, told in each:
            gauge.begin(start_s, told, stood_s)
        return closed

    def _give_up(self, slot: int, stands_s: int) -> SlotValues:
        """Close a slot whose end no telegram shows."""
        end_s = (slot + 1) * self.slot_seconds
        values = tuple(gauge.close(end_s, stands_s) for gauge in self._gauges)
        return self._closed(slot, values, is_bordered=False)

    def _closed(
        self, slot: int, values: tuple[int | None, ...], *, is_bordered: bool
    ) -> SlotValues:
        self._floor = slot
        self._missed = tuple(
            quantity
            for quantity, gauge in self._each()
            if (gauge.is_given_up if isinstance(gauge, MeanGauge) else not is_bordered)
        )
        return SlotValues(slot, values)

    def _forget_all(self) -> None:
        """Begin anew, after every slot that was closed."""
        self._gauges = [self._gauge(kind) for kind in self._kinds]
        self._slot = self._heard_s = None
        self._missed = ()
        self._is_begun = False

    def _gauge(self, kind: Kind) -> Gauge:
        if kind is Kind.MEAN:
            return MeanGauge(self.slot_seconds)
        return RiseGauge(self.slot_seconds, self._register_wh, per_hour=kind is Kind.RATE)
