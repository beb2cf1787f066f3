"""Time that has surely passed, and the claims made in it: what no wall clock can step over.

The window counts slots of the wall clock; whoever sets that clock could pass a window in a minute.
So at most k reports are claimed in w slot lengths of monotonic time as well, and a silence lasts as
long by that time, too. Time runs on over restarts of the agent; after a reboot it goes on where it
was last stored, so that the unknown gap gains nothing. Pure: every time is an argument.

Time is counted in whole slot lengths whose borders lie a quarter of one before those that the wall
clock had when the count began: a slot is claimed a little after its end, and neither that delay nor
a clock corrected by seconds costs a report. Source: docs/faults.md,
AGT-22, AGT-23, AGT-24.
"""

from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from edge_ldp.lean_class import lean_class
from edge_ldp.protocol.ledger import Ledger, Window
from edge_ldp.protocol.strict_json import MessageError

MAX_RUNS = 8
REASONS = ("new", "window", "clock", "slot", "rollback")
VERSION = 1
_HIGH = 128
_PAIR = 2


class Moment(NamedTuple):
    """Now: seconds UTC by the wall clock, and milliseconds since the machine was started."""

    wall_s: float
    boot_ms: int


@lean_class(frozen=True, slots=True)
class Elapsed:
    """What goes with a ledger: passed time `ms`, known at `boot_ms`, and what happened in it.

    `claims`: (elapsed slot, reports), rising, of one window. `silent`: first elapsed slot that may
    report, since the window that began for this `reason`. `runs`: first and last slot of the last
    stretches of claims, so that none is reported again after the wall clock was set back.
    """

    slot_seconds: int
    boot_ms: int
    ms: int
    silent: int
    reason: str
    claims: tuple[tuple[int, int], ...] = ()
    runs: tuple[tuple[int, int], ...] = ()

    @property
    def slot(self) -> int:
        """The elapsed slot that time is in."""
        length = 1000 * self.slot_seconds
        return (4 * self.ms + length) // (4 * length)

    @property
    def wait_s(self) -> int:
        """Seconds until the silence ends; 0 once it has."""
        length = 1000 * self.slot_seconds
        return max(0, -(-(self.silent * length - length // 4 - self.ms) // 1000))

    def at(self, moment: Moment) -> "Elapsed":
        """Return the same at a later moment.

        A lower time since the start shows a reboot: none is then known to have passed. A higher one
        may be another boot's, too: then even more has passed.
        """
        passed_ms = max(0, moment.boot_ms - self.boot_ms)
        return replace(self, boot_ms=moment.boot_ms, ms=self.ms + passed_ms)

    def when_over(self, slot: int, moment: Moment, most_s: float) -> "Elapsed":
        """Return the same when the wall clock ended a slot: at most so long before the moment.

        Never before this: what was claimed last stays behind.
        """
        now = self.at(moment)
        late_s = max(0.0, moment.wall_s - (slot + 1) * self.slot_seconds)
        late_ms = min(int(1000 * min(late_s, most_s)), now.ms - self.ms)
        return replace(now, boot_ms=now.boot_ms - late_ms, ms=now.ms - late_ms)

    def allows(self, window: Window, slot: int, reports: int) -> bool:
        """Say whether so many more reports may be claimed now, for this slot of the wall clock."""
        made = self.made(window)
        is_taken = any(first <= slot <= last for first, last in self.runs)
        return self.slot >= self.silent and made + reports <= window.reports and not is_taken

    def made(self, window: Window) -> int:
        """Return how many reports were claimed in the last window: no fewer were."""
        return sum(count for at, count in self.claims if at > self.slot - window.slots)

    def claimed(self, window: Window, slot: int, reports: int) -> "Elapsed":
        """Return the same with a claim of so many reports for a slot."""
        recent = [one for one in self.claims if one[0] > self.slot - window.slots]
        if recent and recent[-1][0] == self.slot:
            reports += recent.pop()[1]
        *earlier, run = self.runs or ((slot, slot),)
        if run[1] <= slot <= run[1] + window.slots:
            runs = (*earlier, (run[0], slot))
        else:
            runs = (*self.runs, (slot, slot))[-MAX_RUNS:]
        return replace(self, claims=(*recent, (self.slot, reports)), runs=runs)

    def taken_until(self, slot: int) -> int | None:
        """Return the end of a stretch of claims that holds a slot, if there is one."""
        return next((last for first, last in self.runs if first <= slot <= last), None)

    def encode(self) -> bytes:
        """Return the one encoding: short, for it is written with every claim."""
        at, steps = 0, []
        for slot, count in self.claims:
            steps += [slot - at, count]
            at = slot
        ends = [end for run in self.runs for end in run]
        numbers = (
            *(self.slot_seconds, self.boot_ms, self.ms, self.silent, REASONS.index(self.reason)),
            *(len(self.claims), *steps, *ends),
        )
        return bytes((VERSION,)) + b"".join(map(_varint, numbers))


def decode_elapsed(payload: bytes) -> Elapsed:
    """Return what was stored; raises MessageError when it is damaged."""
    try:
        version, *numbers = payload[0], *_numbers(payload[1:])
        slot_seconds, boot_ms, ms, silent, reason, count, *rest = numbers
        name = REASONS[reason]
    except (ValueError, IndexError) as exc:
        raise MessageError("shape", "elapsed") from exc
    steps, ends = rest[: _PAIR * count], rest[_PAIR * count :]
    if version != VERSION or not slot_seconds or len(steps) < _PAIR * count or len(ends) % _PAIR:
        raise MessageError("shape", "elapsed")
    slots = accumulate(steps[::2])
    return Elapsed(
        slot_seconds=slot_seconds,
        boot_ms=boot_ms,
        ms=ms,
        silent=silent,
        reason=name,
        claims=tuple(zip(slots, steps[1::2], strict=True)),
        runs=tuple(zip(ends[::2], ends[1::2], strict=True)),
    )


def begun(
    reason: str,
    slot_seconds: int,
    moment: Moment,
    pause: int,
    runs: tuple[tuple[int, int], ...] = (),
) -> Elapsed:
    """Return time from now on, with a silence of `pause` slots first."""
    ms = int(moment.wall_s * 1000) % (1000 * slot_seconds)
    fresh = Elapsed(slot_seconds, moment.boot_ms, ms, 0, reason, (), runs)
    return replace(fresh, silent=fresh.slot + pause)


def reconstructed(ledger: Ledger, slot_seconds: int, moment: Moment) -> Elapsed:
    """Return time for a ledger stored without it: its claims were made when the wall clock says."""
    window = ledger.window
    slot = int(moment.wall_s // slot_seconds)
    ms = int(moment.wall_s * 1000) % (1000 * slot_seconds) + 1000 * slot_seconds * window.slots
    fresh = Elapsed(slot_seconds, moment.boot_ms, ms, 0, "new")
    claims = []
    for past in range(max(slot - window.slots, ledger.silent_until), min(slot, ledger.floor + 1)):
        first = past % window.period * window.streams
        count = sum(first <= cell < first + window.streams for cell in ledger.cells)
        if count:
            claims.append((window.slots + past + 1 - slot, count))
    silent = window.slots + max(0, ledger.silent_until - slot)
    before = slot - 1 - window.slots  # what to add to an elapsed slot to have the wall clock's
    runs = ((claims[0][0] + before, claims[-1][0] + before),) if claims else ()
    return replace(fresh, claims=tuple(claims), silent=silent, runs=runs)


def _varint(number: int) -> bytes:
    """Return a number not below 0 in bytes of 7 bits, the last one without its high bit."""
    made = bytearray()
    while number >= _HIGH:
        made.append(number % _HIGH + _HIGH)
        number //= _HIGH
    return bytes((*made, number))


def _numbers(payload: bytes) -> list[int]:
    """Return the numbers; raises ValueError when the last one is cut off."""
    found, number, weight = [], 0, 1
    for byte in payload:
        number += byte % _HIGH * weight
        weight *= _HIGH
        if byte < _HIGH:
            found.append(number)
            number, weight = 0, 1
    if weight > 1:
        raise ValueError
    return found
