"""Whether another aggregator serves the same fleet, told from what only a second one can do.

After our own presence somebody else's stands where it stood: another process has our name. Or,
after our own plan, one that our store never made stands on a plan topic. Of two processes the one
that began later ends, which both know alike; of two stores, where nothing tells which process began
later, the one that found the other's plan when it began, published above it, and was answered.
Until it can be sure to be alone, an aggregator gives no receipts: devices would delete what lies in
a store that is about to go. Times are real seconds that never step.
Source: docs/faults.md, NET-27; docs/adr/0031-one-aggregator.md.
"""

from collections import deque

from aggregator.errors import RivalError
from edge_ldp.protocol.presence import Presence
from edge_ldp.service.health import DEGRADED, OK

TIMES, WITHIN_S = 3, 60.0  # links that broke off, as they do when two have one client id
NEW_S = 60.0  # from the first link on
STEADY_S = 5.0  # a link that lasts: who was there comes back within a second or two
SHAKEN_S = 15.0  # a link that broke off soon: two of one client id break each other's
ALONE_S = 60.0  # who was there has answered by then
ANSWERS, WHILE_S = 3, 3600.0  # plans issued above another store's, at most
LIKE_A_TWIN = "does another aggregator run under this client id?"


class Rivals:
    """What shows of another aggregator: `rate`, how fast the fleet's clock runs.

    `process`: our own name and `began_s`, when we began, seconds UTC; `store`: the name of our
    store, once it is known.
    """

    def __init__(self, process: str = "", began_s: int = 0, rate: float = 1.0) -> None:
        self.process, self.began_s, self.store = process, began_s, ""
        self._rate = rate
        self._linked_s: float | None = None  # first
        self._sure_s = float("inf")
        self._broke_s: deque[float] = deque(maxlen=TIMES)
        self._has_stood = False  # our presence, at the broker
        self._wills: set[int] = set()  # of who began before us, told by when its link came
        self._speaks = False  # the other one: which of us ends is settled by presences
        self._is_second = False  # by plans
        self._answered_s: deque[float] = deque(maxlen=ANSWERS)
        self._words = ""
        self._seen_s = 0.0

    def linked(self, now_s: float) -> None:
        """Take in that a link stands."""
        if self._linked_s is None:
            self._linked_s = now_s
            self._sure_s = now_s + STEADY_S / self._rate

    def lost(self, now_s: float, *, was_up: bool) -> None:
        """Take in that a link ended, or an attempt."""
        self._broke_s = deque([*self._broke_s, now_s] if was_up else [], maxlen=TIMES)
        if len(self._broke_s) == TIMES and now_s - self._broke_s[0] <= WITHIN_S:
            self._see(LIKE_A_TWIN, now_s)
        if self._linked_s is not None and now_s - self._linked_s < NEW_S:
            self._sure_s = max(self._sure_s, now_s + SHAKEN_S / self._rate)

    def hear(self, told: Presence, now_s: float) -> bool:
        """Take in what stands where our presence does; return whether to say it again.

        Raises RivalError where another process came before us. What was there before ours tells of
        a process that may be long gone, and one without a name is of an older version. The last
        will of a process comes once, and of two links of a living one that we end by ours.
        """
        if told.process == self.process:
            self._has_stood = True
        if not self._has_stood or told.process in ("", self.process):
            return False
        self._speaks = True
        self._see("another aggregator runs under this name", now_s)
        if (told.began_s, told.process) < (self.began_s, self.process):
            self._wills |= set() if told.is_online else {told.since_s}
            if told.is_online or len(self._wills) > 1:
                raise RivalError(self._words)
        return True

    def found(self, now_s: float) -> None:
        """Take in that another store's plan was retained before we published any."""
        self._is_second = True
        self._sure_s = max(self._sure_s, now_s + ALONE_S / self._rate)

    def met(self, store: str | None, now_s: float) -> bool:
        """Take in that another store published after us; raises RivalError where we are the second.

        Return whether to publish above it: not without end, where the other one does so too.
        """
        self._see(f"another aggregator publishes plans of {self.named(store)}", now_s)
        often = len(self._answered_s) == ANSWERS and now_s - self._answered_s[0] < WHILE_S
        is_larger = store is not None and store < self.store
        if not self._speaks and (self._is_second or (often and is_larger)):
            raise RivalError(self._words)
        if not often:
            self._answered_s.append(now_s)
        return not often

    def named(self, store: str | None) -> str:
        """Return whose a plan is, in words."""
        if store is None:
            return "a store that it does not name"
        return f"a copy of this store ({store})" if store == self.store else f"store {store}"

    def is_sure(self, now_s: float) -> bool:
        """Say whether receipts may be given."""
        return now_s >= self._sure_s

    def health(self, now_s: float) -> str:
        """Return `ok`, or what was seen within an hour."""
        lately = self._words and now_s - self._seen_s <= WHILE_S
        return f"{DEGRADED}{self._words}" if lately else OK

    def _see(self, words: str, now_s: float) -> None:
        self._words, self._seen_s = words, now_s
