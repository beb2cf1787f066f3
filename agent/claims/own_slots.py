"""Streams with slots of their own: longer than the home's, or of a register that dates itself.

Gas behind a P1 port moves once an hour, or in five minutes, and is told with every telegram until
it moves. Only what is dated exactly on a border stands for it: where one is missing, told in two
ways, or below the one before, the slots at it have no value. Source: docs/faults.md, SER-53.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from agent.claims.slots import Kind, SlotBuilder, SlotValues
from agent.meters.plausibility import rise

LATE_SLOTS = 2
"""So many slots after its time a reading of gas may come."""

Gas = tuple[int, int]
"""When a register was read, and what it showed."""

Streams = Sequence[tuple[str, Kind]]


class OwnSlots:
    """Slots of single streams; `streams`: by where they stand, slot length, quantity and kind.

    `new_builder` makes what collects readings over slots of a length; gas is dated by its meter.
    Times are seconds UTC; each slot that closes says whose it is.
    """

    def __init__(
        self,
        streams: Mapping[int, tuple[int, str, Kind]],
        new_builder: Callable[[int, Streams], SlotBuilder],
        gas: str,
    ) -> None:
        self._builders = {
            at: new_builder(seconds, [(quantity, kind)])
            for at, (seconds, quantity, kind) in streams.items()
            if quantity != gas
        }
        self._dated = {at: DatedRise(one[0]) for at, one in streams.items() if one[1] == gas}

    def read(
        self, time_s: int, readings: Mapping[str, int], gas: Gas | None, now_s: int
    ) -> Iterator[SlotValues]:
        """Take one telegram's readings; yield what closes."""
        told = min(time_s, now_s)  # no slot is over before it is so by this device's clock
        yield from _of({at: one.read(told, readings) for at, one in self._builders.items()})
        if gas is not None:
            yield from _of({at: one.read(gas, now_s) for at, one in self._dated.items()})

    def pass_to(self, now_s: int) -> Iterator[SlotValues]:
        """Let time pass; yield what closes."""
        return _of({at: one.pass_to(now_s) for at, one in self._builders.items()})

    def forget_registers(self) -> Iterator[SlotValues]:
        """Take no rise across this moment: what registers show from now on is another meter's."""
        for one in self._dated.values():
            one.forget()
        return _of({at: one.forget_registers() for at, one in self._builders.items()})

    @property
    def given_up(self) -> set[str]:
        """The quantities of which slots are given up: telegrams come too rarely."""
        return {quantity for one in self._builders.values() for quantity in one.given_up}


def _of(closed: Mapping[int, SlotValues | None]) -> Iterator[SlotValues]:
    return (replace(one, at=at) for at, one in closed.items() if one is not None)


class DatedRise:
    """The slots of a register that dates itself, by its readings on their borders."""

    def __init__(self, slot_seconds: int) -> None:
        self._seconds = slot_seconds
        self._border_s = -1  # the last one that was told,
        self._shown: int | None = None  # and what the register was then; None: not sure

    def read(self, told: Gas, now_s: int) -> SlotValues | None:
        """Take a reading, new or told again; return the slot that it closes.

        One that is dated ahead of this device's clock is told again when it is not.
        """
        time_s, shown = told
        if time_s % self._seconds or not 0 <= now_s - time_s <= LATE_SLOTS * self._seconds:
            return None
        if time_s <= self._border_s:
            if time_s == self._border_s and shown != self._shown:
                self._shown = None
            return None
        begun_s, before = self._border_s, self._shown
        self._border_s, self._shown = time_s, shown
        if before is None or time_s - begun_s != self._seconds:
            return None
        risen = rise(before, shown, None)
        if risen is None:
            self._shown = None
            return None
        return SlotValues(begun_s // self._seconds, (risen,))

    def forget(self) -> None:
        """Take no rise across this moment: what is told from now on is another meter's."""
        self._shown = None
