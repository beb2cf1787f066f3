"""Delivery: which kept batch to send next, and when again: never without measure.

A batch is kept until the aggregator's receipt covers it; a broker's acknowledgement settles
nothing. As long as receipts come, what was never sent goes at once, and again only what a receipt
tells is missing. When nothing is receipted, one message goes and then a longer and longer silence,
up to a day, each by a random part longer: a fleet whose aggregator is away or behind does not bury
it, nor the broker. Source: docs/adr/0029-back-off.md; docs/faults.md, NET-25, NET-26.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from agent.claims.batches import Key
from edge_ldp.protocol.messages import Receipt
from edge_ldp.protocol.released import FIRST_KEY

RESEND_INTERVALS = 2  # receipt intervals without a receipt after which something is sent again
DAY_S = 86_400.0  # the longest silence
STEPS = 1 << 16  # of a random part
UNCOUNTED = 3  # sendings that no receipt covered: six receipt intervals, and more


@dataclass(slots=True)
class Delivery:
    """What to send now; in memory only: after a restart nobody knows what was sent.

    Each batch is in one of three places: in the queue, first one first; on its way, in one of at
    most `window` messages, which is known by its first batch; or sent. The gate is open while
    receipts come; while it is closed one message goes a turn: what was never sent, or else the
    newest batch again, whose receipt tells of all before it. `now_s` is monotonic time at the
    clock's rate; `draw(n)` gives 0..n-1, for waits alone.
    """

    window: int
    resend_s: float
    draw: Callable[[int], int]
    several: bool = False  # whether the aggregator takes messages of several batches
    _queue: deque[Key] = field(default_factory=deque, init=False)
    _flying: dict[Key, list[Key]] = field(default_factory=dict, init=False)
    _sent: dict[Key, float] = field(default_factory=dict, init=False)  # and when it may go again
    _times: dict[Key, int] = field(default_factory=dict, init=False)  # how often each was sent
    _top: dict[int, int] = field(default_factory=dict, init=False)  # of a stream the last covered
    _is_open: bool = field(default=True, init=False)
    _has_turn: bool = field(default=False, init=False)
    _turns: int = field(default=0, init=False)  # turns without a receipt that covered anything
    _until_s: float | None = field(default=None, init=False)  # when the next turn is
    _believed_s: float | None = field(default=None, init=False)  # when `met` was believed last

    def add(self, keys: Iterable[Key]) -> None:
        """Take batches that were packed, oldest first."""
        self._queue.extend(keys)

    def resume(self, keys: Iterable[Key]) -> None:
        """Take what was kept before a restart, oldest first: it may have been sent or not."""
        kept = list(keys)
        self._sent |= dict.fromkeys(kept, 0.0)
        self._times |= dict.fromkeys(kept, 0)
        if kept:
            self._is_open, self._has_turn = False, True

    def take(self) -> Key | None:
        """Return the first batch of the next message to send now, or None; it is on its way."""
        key = self._next() if self._may_take else None
        if key is not None:
            self._popped(key)
            self._has_turn = False
            self._flying[key] = [key]
        return key

    def following(self, first: Key) -> Key | None:
        """Return the batch that may go along in this message: `join` takes it."""
        if not (self.several and self._queue) or first.stream >= FIRST_KEY:
            return None
        return self._queue[0] if self._queue[0].stream < FIRST_KEY else None

    def join(self, first: Key, key: Key) -> None:
        """Send a batch along in a message that is on its way."""
        self._popped(key)
        self._flying[first].append(key)

    def acknowledged(self, first: Key, now_s: float) -> None:
        """Note the broker's acknowledgement of a message: its batches now wait for a receipt."""
        if first not in self._flying:
            return
        for key in self._flying.pop(first):
            self._times[key] = self._times.get(key, 0) + 1
            self._sent[key] = now_s + self._wait_s(self._times[key] - 1)
        if not self._is_open:
            self._turns += 1
            self._until_s = now_s + self._wait_s(self._turns)
        elif self._until_s is None:
            self._until_s = now_s + self._wait_s(0)

    def failed(self, first: Key) -> None:
        """Put a message's batches back, to be sent first, oldest first: its link was lost."""
        if first in self._flying:
            along = self._flying.pop(first)
            for key in along:  # it may have come there all the same
                self._times.setdefault(key, 0)
            self._again(along)
            self._has_turn = not self._is_open

    def covered(self, receipt: Receipt) -> list[Key]:
        """Return the batches that a receipt covers; none that never went: who knows of it lies.

        `receipt`: in the numbers of this state, as `agent.claims.rollback.as_kept` returns it.
        """
        went = [*self._times, *(key for along in self._flying.values() for key in along)]
        return [key for key in dict.fromkeys(went) if receipt.covers(key.stream, key.number)]

    def received(self, receipt: Receipt, now_s: float, *, is_live: bool = True) -> list[Key]:
        """Forget the batches that a receipt covers and return them, to be deleted.

        What it tells is missing is due again, if that was not sent lately. `is_live`: it was not
        retained, so an aggregator is there.
        """
        covered = self.covered(receipt)
        for key in covered:
            self._top[key.stream] = max(key.number, self._top.get(key.stream, 0))
        self.forget(covered)
        self._again(self._missing(receipt, now_s, is_live=is_live))
        self._is_open |= is_live
        if covered:
            self._turns = 0
            self._has_turn |= not self._is_open
        if covered or (self._is_open and self._until_s is None):
            self._until_s = now_s + self._wait_s(self._turns) if self._sent else None
        return covered

    def met(self, now_s: float, spread_s: float) -> None:
        """Take in that the aggregator says it is there: the next turn is within `spread_s`.

        Believed once in `resend_s`, so that who forges it gains a message in that time, no more.
        """
        if self._is_open or self._until_s is None:
            return
        if self._believed_s is None or now_s - self._believed_s >= self.resend_s:
            self._believed_s = now_s
            self._until_s = min(self._until_s, now_s + spread_s * self.draw(STEPS) / STEPS)

    def forget(self, keys: Iterable[Key]) -> None:
        """Drop batches that are settled or expired; a message on its way goes on without them."""
        gone = set(keys)
        self._queue = deque(key for key in self._queue if key not in gone)
        for first, along in list(self._flying.items()):
            self._flying[first] = [key for key in along if key not in gone]
        for key in gone:
            self._sent.pop(key, None)
            self._times.pop(key, None)

    def clear(self) -> None:
        """Drop every batch: none of them is kept any more."""
        self.forget(self.kept)

    def overdue(self, now_s: float) -> None:
        """Close the gate and give a turn when nothing was receipted for too long."""
        if self._until_s is None or now_s < self._until_s:
            return
        self._until_s = None
        if self._sent or not self._is_open:
            self._is_open, self._has_turn = False, True

    @property
    def is_silent(self) -> bool:
        """Whether nothing goes before the next turn: nothing was receipted for too long."""
        return not self._is_open and not self._has_turn

    @property
    def is_uncounted(self) -> bool:
        """Whether a batch went again and again, and no receipt covers it or one after it."""
        return any(
            self._times[key] >= UNCOUNTED and key.number > self._top.get(key.stream, 0)
            for key in self._sent
        )

    @property
    def kept(self) -> list[Key]:
        """Every batch that no receipt covers yet."""
        flying = [key for along in self._flying.values() for key in along]
        return [*self._sent, *self._queue, *flying]

    @property
    def due(self) -> bool:
        """Whether a message waits to be sent."""
        return self._may_take and self._next() is not None

    @property
    def _may_take(self) -> bool:
        if self._is_open:
            return len(self._flying) < self.window
        return self._has_turn and not self._flying

    def _next(self) -> Key | None:
        """Return what goes next: in a turn, where nothing is new, a stream's newest batch again."""
        if self._queue:
            return self._queue[0]
        if self._is_open:
            return None
        newest = {key.stream: key for key in self._times if key in self._sent}
        return min(newest.values(), key=self._times.__getitem__, default=None)

    def _missing(self, receipt: Receipt, now_s: float, *, is_live: bool) -> list[Key]:
        """Take out what is to be sent again: what others overtook, and what nobody knows of."""
        missing = [
            key
            for key, again_s in self._sent.items()
            if again_s <= now_s
            and (receipt.lacks(key.stream, key.number) or (is_live and not self._times[key]))
        ]
        for key in missing:
            del self._sent[key]
        return missing

    def _popped(self, key: Key) -> None:
        """Take a batch from its place."""
        if self._queue and self._queue[0] == key:
            self._queue.popleft()
        else:
            del self._sent[key]

    def _again(self, keys: list[Key]) -> None:
        """Put batches first into the queue, each after older ones of its stream."""
        for key in reversed(keys):
            older = [at for at, other in enumerate(self._queue) if _is_older(other, key)]
            self._queue.insert(older[-1] + 1 if older else 0, key)

    def _wait_s(self, times: int) -> float:
        """Return the wait after so many: doubled each time, up to twice as long by chance."""
        longest = max(self.resend_s, DAY_S / 2)
        wait_s = min(longest, self.resend_s * 2.0 ** min(times, 32))
        return wait_s * (1 + self.draw(STEPS) / STEPS)


def _is_older(key: Key, other: Key) -> bool:
    return key.stream == other.stream and key.number < other.number
