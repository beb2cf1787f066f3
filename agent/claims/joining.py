"""One slot of a home from those of its meters: closed once, with every meter's values or none.

The home's ledger counts slots, not meters: what several meters give for a slot is decided about
together (docs/faults.md, AGT-26). Whether a slot is joined depends on times, never on values.
"""

from collections.abc import Sequence

from agent.claims.slots import SlotValues


class SlotJoin:
    """`positions`: for each meter where its streams stand among the home's, in order.

    A stream that stands nowhere has slots of its own, and no value here.

    A slot is whole when every meter has closed it or a later one; when its time is over for all of
    them it goes as it is. Slots rise; a part of one that has gone is lost.
    """

    def __init__(self, positions: Sequence[Sequence[int]]) -> None:
        self._positions = [tuple(places) for places in positions]
        self._width = 1 + max((at for places in self._positions for at in places), default=-1)
        self._closed = [-1] * len(self._positions)  # by each meter, the last slot
        self._parts: dict[int, list[int | None]] = {}
        self._floor = -1

    def take(self, meter: int, closed: SlotValues) -> list[SlotValues]:
        """Take what a meter closed; return the slots that are whole now, oldest first."""
        if closed.slot <= self._floor:
            return []
        values = self._parts.setdefault(closed.slot, [None] * self._width)
        for place, value in zip(self._positions[meter], closed.values, strict=True):
            values[place] = value
        self._closed[meter] = closed.slot
        return self.close_before(min(self._closed) + 1)

    def close_before(self, slot: int) -> list[SlotValues]:
        """Return the slots before `slot` that any meter closed, oldest first: they are over."""
        over = sorted(one for one in self._parts if one < slot)
        if over:
            self._floor = over[-1]
        return [SlotValues(one, tuple(self._parts.pop(one))) for one in over]
