"""From dated readings to slot values: mean power over a slot, or a register's rise across it.

A slot closes when a reading of a later slot arrives, or when the clock says it is over. Whether a
slot gets a value depends on when readings came, never on what they said; the one exception is a
register that went back (the meter was swapped or reset): that interval is dropped (docs/design.md,
Privacy model). One that rolled over went on. Values live in memory only and hide in every
representation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from agent.meters.plausibility import rise

BORDER_SHARE = 15  # a register reading counts as taken at the border within 1/15 of the slot


class Kind(Enum):
    """What a stream's value is."""

    MEAN = "mean"
    RISE = "rise"


@dataclass(frozen=True, slots=True)
class SlotValues:
    """A closed slot and its value for each stream in order, None where there is none."""

    slot: int
    values: tuple[int | None, ...] = field(repr=False)


class SlotBuilder:
    """Collects the readings of one meter, one slot at a time; times are seconds UTC.

    `streams` gives (quantity, kind) for each stream in order. Readings of a slot already closed are
    ignored: at most one close per slot, slots rising. So are those of the slot before the open one,
    a border's jitter; times further back show that a clock had jumped ahead, and the slot opened
    then is dropped. A register reading up to `border_s` seconds into a slot still ends the slot
    before.
    """

    def __init__(
        self,
        slot_seconds: int,
        streams: Sequence[tuple[str, Kind]],
        register_wh: int | None = None,
    ) -> None:
        self.slot_seconds = slot_seconds
        self.border_s = max(1, slot_seconds // BORDER_SHARE)
        self._quantities = [quantity for quantity, _ in streams]
        self._gauges = [_Mean() if kind is Kind.MEAN else _Rise(register_wh) for _, kind in streams]
        self._slot: int | None = None
        self._floor = -1

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
        starts = slot != self._slot
        at_border = starts and time_s - slot * self.slot_seconds <= self.border_s
        closed = None
        if starts:
            follows = self._slot == slot - 1 and at_border
            closed = self._close(readings if follows else {})
        for quantity, gauge in zip(self._quantities, self._gauges, strict=True):
            if quantity in readings:
                gauge.take(readings[quantity], at_border=at_border)
        self._slot = slot
        return closed

    def close_before(self, slot: int) -> SlotValues | None:
        """Close the open slot if it lies before `slot`: its time is over and nothing came."""
        if self._slot is None or self._slot >= slot:
            return None
        return self._close({})

    def forget_registers(self) -> None:
        """Take no rise across this moment: what registers show from now on is another meter's."""
        for gauge in self._gauges:
            gauge.forget()

    def _drop(self) -> None:
        for gauge in self._gauges:
            gauge.close(None)
        self._slot = None

    def _close(self, following: Mapping[str, int]) -> SlotValues | None:
        """Close the open slot; `following` are the readings at its end border, if there are any."""
        if self._slot is None:
            return None
        closed = SlotValues(
            self._slot,
            tuple(
                gauge.close(following.get(quantity))
                for quantity, gauge in zip(self._quantities, self._gauges, strict=True)
            ),
        )
        self._floor = self._slot
        self._slot = None
        return closed


class _Mean:
    """Mean of a slot's readings, rounded half up."""

    def __init__(self) -> None:
        self._sum = 0
        self._count = 0

    def take(self, value: int, *, at_border: bool) -> None:  # noqa: ARG002 (one gauge interface)
        self._sum += value
        self._count += 1

    def close(self, _following: int | None) -> int | None:
        count, total = self._count, self._sum
        self._sum = self._count = 0
        return round_half_up(total, count) if count else None

    def forget(self) -> None:
        """Keep what was taken: power has no past."""


class _Rise:
    """Difference of a register between a slot's two borders."""

    def __init__(self, register_wh: int | None) -> None:
        self._base: int | None = None
        self._register_wh = register_wh

    def take(self, value: int, *, at_border: bool) -> None:
        if at_border:
            self._base = value

    def close(self, following: int | None) -> int | None:
        base, self._base = self._base, None
        if base is None or following is None:
            return None
        return rise(base, following, self._register_wh)

    def forget(self) -> None:
        """Begin anew at the next border."""
        self._base = None


def round_half_up(numerator: int, denominator: int) -> int:
    """Return numerator/denominator rounded to the nearest integer, halves upwards, exactly."""
    return (2 * numerator + denominator) // (2 * denominator)
