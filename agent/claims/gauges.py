"""What one quantity of one meter comes to in a slot: its mean over time, or a register's rise.

Whether there is a value is decided by times alone; a register that went back, or was another
meter's, is the one exception (docs/design.md, Privacy model). Integers only, rounded half up.

Source: docs/meters.md, What a slot's value is; docs/faults.md, SER-20, SER-31, SER-32.
"""

from agent.meters.plausibility import rise

COVERED_SHARE = 2
"""A mean needs telegrams that stand for 1/2 of the slot."""

JOINED_SHARE = 2
"""Two registers at most 1/2 of a slot apart show what the register was between them."""

BORDER_SHARE = 15
"""Beyond that, one told within 1/15 of a slot after its beginning is taken for the beginning's."""

HOUR_S = 3600

Told = tuple[int, int]  # at which second, and what


class Borders:
    """What times alone show of the slots' borders: whether a register there is known."""

    def __init__(self, slot_seconds: int) -> None:
        self._joined_s = slot_seconds // JOINED_SHARE
        self._border_s = max(1, slot_seconds // BORDER_SHARE)

    def is_joined(self, heard_s: int | None, time_s: int) -> bool:
        """Say whether a register is known all the time between two telegrams."""
        return heard_s is not None and time_s - heard_s <= self._joined_s

    def is_at(self, start_s: int, time_s: int) -> bool:
        """Say whether a telegram may stand for the border before it."""
        return time_s - start_s <= self._border_s

    def awaited_s(self, end_s: int, heard_s: int) -> int:
        """Return until when a telegram after the last one may show the border that comes."""
        return max(end_s + self._border_s, heard_s + self._joined_s)


class MeanGauge:
    """Mean over the time for which telegrams stand: each until the next one, if it comes soon."""

    def __init__(self, slot_seconds: int) -> None:
        self._slot_seconds = slot_seconds
        self._value: int | None = None  # what stands,
        self._heard_s = 0  # since when,
        self._from_s = 0  # and from when on it is not counted yet
        self._area = self._covered_s = 0
        self.is_given_up = False

    def begin(self, start_s: int, first: list[Told], stands_s: int) -> None:
        """Begin a slot: what stands goes on."""
        self._from_s = max(self._from_s, start_s)
        for told in first:
            self.take(told, stands_s)

    def take(self, told: Told, stands_s: int) -> None:
        """Let this stand from now on; beside a clock that was set back a little, from then on."""
        time_s, value = told
        self._count(time_s, stands_s)
        self._value, self._heard_s = value, max(self._heard_s, time_s)
        self._from_s = max(self._from_s, time_s)

    def close(self, end_s: int, stands_s: int) -> int | None:
        """Return the mean of the slot that ends."""
        self._count(end_s, stands_s)
        area, covered_s = self._area, self._covered_s
        self._area = self._covered_s = 0
        self.is_given_up = covered_s * COVERED_SHARE < self._slot_seconds
        return None if self.is_given_up else round_half_up(area, covered_s)

    def turn(self, end_s: int, _first: list[Told], stands_s: int) -> int | None:
        """Return the mean of the slot that ends."""
        return self.close(end_s, stands_s)

    def forget(self) -> None:
        """Keep what was taken: power has no past."""

    def _count(self, until_s: int, stands_s: int) -> None:
        length_s = min(until_s, self._heard_s + stands_s) - self._from_s
        if self._value is not None and length_s > 0:
            self._area += self._value * length_s
            self._covered_s += length_s
            self._from_s += length_s


class RiseGauge:
    """Rise of a register between a slot's borders, each interpolated between two telegrams.

    What is left of a border's rise belongs to the next slot, so that the rises of slots in a row
    are together exactly what the register rose. `per_hour`: the rise as mean power.
    """

    def __init__(self, slot_seconds: int, register_wh: int | None, *, per_hour: bool) -> None:
        self._slot_seconds = slot_seconds
        self._borders = Borders(slot_seconds)
        self._register_wh = register_wh
        self._per_hour = per_hour
        self._start_s = -1  # of the open slot
        self._heard_s: int | None = None
        self._shown: int | None = None  # what it showed then; None: that does not go on
        self._risen: int | None = None  # since the open slot's beginning

    def begin(self, start_s: int, first: list[Told], _stands_s: int) -> None:
        """Begin a slot: of telegrams that came together the last one is of now."""
        if self._start_s != start_s:  # else `turn` was here
            self._start_s, self._risen = start_s, None
            if first:
                self._cross(*first[-1])

    def take(self, told: Told, _stands_s: int) -> None:
        """Add what the register rose since the last telegram."""
        time_s, shown = told
        if self._heard_s is None or self._heard_s < self._start_s:
            self._cross(time_s, shown)
            return
        risen = None if self._shown is None else rise(self._shown, shown, self._register_wh)
        self._risen = None if self._risen is None or risen is None else self._risen + risen
        self._heard_s, self._shown = max(self._heard_s, time_s), shown

    def close(self, _end_s: int, _stands_s: int) -> int | None:
        """Give the slot up: there is no telegram near its end."""
        return None

    def turn(self, end_s: int, first: list[Told], stands_s: int) -> int | None:
        """Return the rise of the slot that ends, and keep what is the next one's."""
        if not first:
            return self.close(end_s, stands_s)
        risen, self._start_s = self._risen, end_s
        before = self._cross(*first[-1])
        if risen is None or before is None:
            return None
        risen += before
        return round_half_up(risen * HOUR_S, self._slot_seconds) if self._per_hour else risen

    def forget(self) -> None:
        """Take no rise across this moment: what the register shows is another meter's."""
        self._shown = self._risen = None

    def _cross(self, time_s: int, shown: int) -> int | None:
        """Take the first telegram after the open slot's beginning; return the rise before that."""
        heard_s, last, start_s = self._heard_s, self._shown, self._start_s
        self._heard_s, self._shown, self._risen = time_s, shown, None
        is_at_border = self._borders.is_at(start_s, time_s)
        risen = None if last is None else rise(last, shown, self._register_wh)
        if risen is None or heard_s is None:  # the first, another meter's, or set back
            self._risen = 0 if is_at_border else None
            return None
        if self._borders.is_joined(heard_s, time_s):
            before = round_half_up(risen * (start_s - heard_s), time_s - heard_s)
        elif is_at_border:
            before = risen
        else:
            return None
        self._risen = risen - before
        return before


Gauge = MeanGauge | RiseGauge


def round_half_up(numerator: int, denominator: int) -> int:
    """Return numerator/denominator rounded to the nearest integer, halves upwards, exactly."""
    return (2 * numerator + denominator) // (2 * denominator)
