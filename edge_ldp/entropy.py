"""Randomness from the operating system, and from nowhere else, watched while it is used.

`system_draw()` is what every report of a real device is drawn with; a `ReportDraw` serves one
report and is forgotten with it. A forked child drops the words its parent had buffered
(docs/methods.md, Attacks: two processes must never share noise).

Health test: with every read come *guard* words that are compared and never drawn from. Two equal
ones mean that the source repeats itself. Since no draw uses a guard, the words that are used keep
exactly the law they have without the test, and nothing of a used word is remembered by it. After
the repetition count test of NIST SP 800-90B §4.4.1: samples of 64 bits of entropy, cutoff 2.
"""

import os
import weakref
from collections.abc import Callable
from struct import Struct
from typing import TypeAlias

from edge_ldp.device.draw import WORD_BYTES, WORD_RANGE, Draw, fold
from edge_ldp.device.errors import EntropyError

Entropy: TypeAlias = Callable[[int], bytes]  # as many bytes as asked for
Uniform: TypeAlias = Callable[[int], int]  # a uniform integer from 0 to below it
FALSE_ALARM_A_BLOCK = 22 / 2**64  # 6 pairs among its four guards, 16 with the four before
_ENDS = 2 * WORD_BYTES  # two guards before a block, two after it
_SIX = Struct("<6Q")  # guard, four words, guard
_alive: "weakref.WeakSet[_SystemDraw]" = weakref.WeakSet()


class StuckEntropyError(EntropyError):
    """The entropy source repeats itself: it is broken, and waiting will not mend it."""

    def __init__(self) -> None:
        super().__init__(
            "the source of randomness repeats itself, so nothing can be randomised or sent; "
            "restart this machine, and replace it if this is said again"
        )


class Checked:
    """An entropy source that raises before bytes of a stuck source are used.

    `source(size) -> bytes`. Raises EntropyError when it fails or does not give what was asked for
    (it may work again), StuckEntropyError when a guard word is equal to another of this block or of
    the one before; from then on always. False alarms: FALSE_ALARM_A_BLOCK, about 8e-13 in 20 years
    of 96 blocks a day. Noticed at once: constant bytes, or a constant first or last 32 bytes; one
    block late: a block that comes again. Not noticed: a generator that someone else can predict.
    """

    __slots__ = ("_guards", "_is_stuck", "_source")

    def __init__(self, source: Entropy) -> None:
        self._source = source
        self._guards: frozenset[bytes] = frozenset()
        self._is_stuck = False

    def __call__(self, size: int) -> bytes:
        """Return `size` bytes; reads 32 more."""
        fresh = read_source(self._source, size + 2 * _ENDS)
        ends = fresh[:_ENDS] + fresh[-_ENDS:]
        guards = frozenset(ends[at : at + WORD_BYTES] for at in range(0, len(ends), WORD_BYTES))
        if self._is_stuck or len(guards) < len(ends) // WORD_BYTES or guards & self._guards:
            self._is_stuck = True
            raise StuckEntropyError
        self._guards = guards
        return fresh[_ENDS:-_ENDS]


class _SystemDraw(Draw):
    __slots__ = ("__weakref__",)


def system_draw(source: Entropy | None = None) -> Draw:
    """Return a Draw on the operating system's CSPRNG (or `source`), checked, safe across fork.

    Raises, when used, what `Checked` raises.
    """
    draw = _SystemDraw(Checked(source or _system_bytes))
    _alive.add(draw)
    return draw


class ReportDraw:
    """A draw for one report, from words read for it alone; each report needs its own.

    Nothing outlives the report, so threads, forks and snapshots share nothing. Four words are read
    at a time, between two guards, so constant bytes raise StuckEntropyError (a false alarm: 2⁻⁶⁴);
    bytes that come again in another report are not noticed. Raises EntropyError if there is no
    randomness.
    """

    __slots__ = ("_words",)

    def __init__(self) -> None:
        self._words = _four_words()

    def below(self, n: int) -> int:
        """Return a uniform integer in `0..n-1`, 1 ≤ n ≤ 2**64."""
        words = self._words
        if not words:
            words.extend(_four_words())
        word = words.pop()
        if 0 < n <= WORD_RANGE - word:  # then the word lies below the limit: no division needed
            return word % n
        folded = fold(word, n)
        return folded if folded >= 0 else self.below(n)


def read_source(source: Entropy, size: int) -> bytes:
    """Return `size` bytes; raises EntropyError for whatever else the source does.

    Whoever waits for randomness waits for every kind of failure: there is none that a process
    should end with, and nothing else to draw from.
    """
    try:
        fresh: object = source(size)
    except EntropyError:
        raise
    except Exception as exc:
        raise EntropyError("the operating system gave no randomness; nothing is sent") from exc
    if not isinstance(fresh, bytes) or len(fresh) != size:
        raise EntropyError("the entropy source did not give the bytes that it was asked for")
    return fresh


def _four_words() -> list[int]:
    guard, first, second, third, fourth, other = _SIX.unpack(read_source(_system_bytes, _SIX.size))
    if guard == other:
        raise StuckEntropyError
    return [fourth, third, second, first]  # they are taken from the end


def _system_bytes(size: int) -> bytes:
    return os.urandom(size)


def _forget_all() -> None:
    for draw in tuple(_alive):
        draw.forget()


os.register_at_fork(after_in_child=_forget_all)
