"""Whether a telegram is believed: the identity it carries, and registers that only rise.

A checksum finds what the line did to a telegram; this finds what is left: another meter, a register
that went back. Registers that went back are not used; power beside them is, so that whether it is
reported never depends on a register. One that shows more than it has digits is used, and said.
Values are never compared with a stream's range: those are clamped and reported like any other
(docs/design.md, Privacy model).

Sources: docs/design.md, Privacy model (the one exception: the interval in which a meter was swapped
is dropped); docs/faults.md, SER-10, SER-14 to SER-16, SER-21, PRV-20.
"""

from enum import Enum

from agent.meters.reading import Telegram

SWAP_S = 60
"""After so many seconds without the meter, another one has taken its place."""

CONFIRM = 3
"""So many telegrams in a row must agree before registers that went back are believed."""

ROLLOVER_SHARE = 100
"""A register has rolled over, and was not set back, if it rose by 1/100 of its range at most."""

ENERGIES = ("energy_import", "energy_export")


class Belief(Enum):
    """What is to be done with a telegram."""

    BELIEVED = "all of it is used"
    ANEW = "all of it is used, but its registers do not continue earlier ones"
    BACK = "a register went back, and it may be a slip: all but the registers is used"
    SWAPPED = "all of it is used, but it is another meter's: its registers continue none"
    FOREIGN = "another meter's, while the one in use is there too: not used"
    WIDTH = "all of it is used, but a register shows more than it has digits: so it was told wrong"


def used(telegram: Telegram, belief: Belief) -> dict[str, int]:
    """Return the readings of a telegram that a belief leaves."""
    if belief is Belief.FOREIGN:
        return {}
    return {
        quantity: value
        for quantity, value in telegram.shown.items()
        if belief is not Belief.BACK or quantity not in ENERGIES
    }


class Plausibility:
    """Judges the telegrams of one line in order; remembers one telegram's registers, or two.

    `register_wh` is where registers begin at 0 again; None: never. Times are seconds that only go
    forward.
    """

    def __init__(self, register_wh: int | None = None) -> None:
        self._register_wh = register_wh
        self._meter_id: str | None = None
        self._last_seen_s = 0
        self._last: dict[str, int] = {}
        self._doubted: dict[str, int] = {}
        self._agreeing = 0
        self._meter_time_s: int | None = None  # the meter's own time, and since when it tells it
        self._same_time_since_s = 0

    def judge(self, telegram: Telegram, now_s: int) -> Belief:
        """Return whether to believe a telegram that came at `now_s`."""
        is_new = self._meter_id not in (None, telegram.meter_id)
        if is_new and now_s - self._last_seen_s < SWAP_S:
            return Belief.FOREIGN
        self._meter_id, self._last_seen_s = telegram.meter_id, now_s
        if telegram.time_s is None or telegram.time_s != self._meter_time_s:
            self._meter_time_s, self._same_time_since_s = telegram.time_s, now_s
        shown = {r.quantity: r.value for r in telegram.readings if r.quantity in ENERGIES}
        if is_new:
            self._last = {}
            return self._accept(shown, Belief.SWAPPED)
        if self._follows(shown, self._last):
            return self._accept(shown, Belief.WIDTH if self._is_wide(shown) else Belief.BELIEVED)
        self._agreeing = self._agreeing + 1 if self._follows(shown, self._doubted) else 1
        self._doubted = shown
        return Belief.BACK if self._agreeing < CONFIRM else self._accept(shown, Belief.ANEW)

    @property
    def stale_s(self) -> int:
        """For how long the meter had told the same time when it spoke last; 0 if it tells none."""
        return 0 if self._meter_time_s is None else self._last_seen_s - self._same_time_since_s

    def _accept(self, shown: dict[str, int], belief: Belief) -> Belief:
        self._last, self._doubted, self._agreeing = self._last | shown, {}, 0
        return belief

    def _is_wide(self, shown: dict[str, int]) -> bool:
        """Say whether a register shows what it has no digits for: it is no reason to drop it."""
        return self._register_wh is not None and max(shown.values(), default=0) >= self._register_wh

    def _follows(self, shown: dict[str, int], earlier: dict[str, int]) -> bool:
        """Say whether no register went back, but for one that rolled over."""
        return all(
            rise(earlier.get(quantity, value), value, self._register_wh) is not None
            for quantity, value in shown.items()
        )


def rise(earlier: int, later: int, register_wh: int | None) -> int | None:
    """Return by how much a register rose; None where it went back."""
    if later >= earlier:
        return later - earlier
    if register_wh is None:
        return None
    rolled = (later - earlier) % register_wh
    return rolled if rolled <= register_wh // ROLLOVER_SHARE else None
