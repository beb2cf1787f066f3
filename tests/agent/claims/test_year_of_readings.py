"""A year of telegrams, slow and fast, with outages and what adapters keep, against the load itself.

Energies are together what the register rose, less what is given up by name; powers err by no more
than docs/meters.md says (What a slot's value is). One day comes as bytes.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from agent.claims.gauges import round_half_up
from agent.claims.slots import Kind, SlotBuilder, SlotValues
from agent.claims.spacing import Spacing
from agent.meters.obis.dsmr import P1Meter
from agent.meters.reading import Telegram
from firmware_stubs.meters.telegram import p1_telegram

Ints = NDArray[np.signedinteger]
Event = tuple[int, int, int]  # when it came, the power and the register that it tells

SLOT_S = 900
DAY_S = 86_400
METER = "E0043007052870318"
PARTS = ((1, 8), (10, 72), (60, 70), (75, 70), (120, 70), (300, 75))  # interval, days
DAYS = sum(days for _, days in PARTS)
BYTES_DAY = 30  # of the part with a telegram each 10 s
FAR_S, NEAR_S, TOGETHER_S = 450, 60, 2


def load(source: np.random.Generator) -> Ints:
    """Return the power of every second, W: what is on changes every few minutes, and by kW."""
    steps = DAYS * 400
    changes = np.sort(source.choice(DAYS * DAY_S, steps - 1, replace=False))
    lengths = np.diff(changes, prepend=0, append=DAYS * DAY_S)
    levels = source.choice([0, 90, 250, 400, 2300, 3600, 11_000], steps)
    return np.repeat(levels, lengths).astype(np.int32)


def heard(power_w: Ints, wh: Ints, source: np.random.Generator) -> Iterator[Event]:
    """Yield what comes: after an outage a day the last telegrams at once, or nothing of it."""
    begin_s = 0
    for interval_s, days in PARTS:
        for day_s in range(begin_s, begin_s + days * DAY_S, DAY_S):
            jitter = source.integers(0, interval_s // 8 + 1, DAY_S // interval_s)
            times = day_s + np.arange(0, DAY_S, interval_s) + jitter
            gone_s = int(day_s + source.integers(20_000, DAY_S - 32_000))
            back_s = gone_s + int(source.integers(3 * interval_s, 12_000))
            lost = times[(times > gone_s) & (times <= back_s)]
            kept = lost[-12:] if day_s // DAY_S % 2 else lost[:0]
            for at in times[times <= gone_s].tolist():
                yield at, int(power_w[at]), int(wh[at])
            for at in kept.tolist():
                yield back_s, int(power_w[at]), int(wh[at])
            for at in times[times > back_s].tolist():
                yield at, int(power_w[at]), int(wh[at])
        begin_s += days * DAY_S


def as_bytes(event: Event, meter: P1Meter) -> Event:
    """Return what a parser makes of a telegram's bytes."""
    at, power_w, wh = event
    sent = p1_telegram(meter_id=METER, time_s=1_800_000_000 + at, import_wh=wh, power_w=power_w)
    (telegram,) = meter.feed(sent)
    assert isinstance(telegram, Telegram)
    told = {reading.quantity: reading.value for reading in telegram.readings}
    return at, told["power"], told["energy_import"]


def closed_slots(events: list[Event]) -> Iterator[SlotValues]:
    builder = SlotBuilder(SLOT_S, [("p", Kind.MEAN), ("e", Kind.RISE)])
    before_s = 0
    for at, power_w, wh in events:
        if at - before_s > TOGETHER_S:
            while (closed := builder.pass_to(at)) is not None:
                yield closed
        if (closed := builder.read(at, {"p": power_w, "e": wh})) is not None:
            yield closed
        before_s = at
    while (closed := builder.pass_to(before_s + SLOT_S)) is not None:
        yield closed


def borders(events: list[Event]) -> dict[int, int]:
    """Return what the register was where a slot begins, as far as telegrams around it show it."""
    found, spacing = dict[int, int](), Spacing(10)
    for at, (time_s, _, _) in enumerate(events):
        is_late = spacing.is_after_silence(time_s)
        spacing.note(time_s)
        slot, (heard_s, _, shown) = time_s // SLOT_S, events[at - 1] if at else (-SLOT_S, 0, 0)
        if heard_s // SLOT_S == slot:
            continue
        last = at
        while is_late and events[last + 1][0] <= time_s + TOGETHER_S:
            last += 1
        first_s, _, wh = events[last]
        border_s = slot * SLOT_S
        if first_s - heard_s <= FAR_S:
            part = round_half_up((wh - shown) * (border_s - heard_s), first_s - heard_s)
            found[slot] = shown + part
        elif first_s - border_s <= NEAR_S:
            found[slot] = wh
    return found


def stood(events: list[Event], *, as_known: bool) -> Ints:
    """Return the power that telegrams stand for, each second; -1 where none does.

    By the interval that is known when the next one comes or, `as_known`, before: where an outage
    goes beyond a slot, the clock has closed that by then.
    """
    standing = np.full(DAYS * DAY_S + SLOT_S, -1, np.int32)
    spacing = Spacing(10)
    spacing.note(events[0][0])
    for (at, power_w, _), (until_s, _, _) in pairwise(events):
        interval_s = spacing.seconds
        spacing.note(until_s)
        interval_s = interval_s if as_known else spacing.seconds
        standing[at : min(until_s, at + min(SLOT_S, 3 * interval_s))] = power_w
    return standing


@pytest.mark.slow
def test_SER_31_SER_32_a_year_adds_up_to_what_the_meter_counted_and_drew() -> None:
    source = np.random.default_rng(39)
    power_w = load(source)
    wh = np.concatenate(([0], np.cumsum(power_w, dtype=np.int64))) // 3600
    meter, events = P1Meter(crc="required"), list(heard(power_w, wh, source))
    day = range(BYTES_DAY * DAY_S, (BYTES_DAY + 1) * DAY_S)
    events = [as_bytes(event, meter) if event[0] in day else event for event in events]
    values = {one.slot: one.values for one in closed_slots(events)}
    last = max(values)
    energies = {slot: energy for slot, (_, energy) in values.items() if energy is not None}

    # energy: each slot's is exactly the register's rise between its borders, where both are known
    known = borders(events)
    both = [slot for slot in range(last) if slot in known and slot + 1 in known]
    assert energies == {slot: known[slot + 1] - known[slot] for slot in both}
    given_up = [slot for slot in range(last) if slot not in energies]
    edges = sorted({slot for slot in known if {slot, slot - 1} & energies.keys()})
    lost = [(a, b) for a, b in pairwise(edges) if a not in energies]
    assert {slot for a, b in lost for slot in range(a, b)} <= set(given_up)
    whole = known[edges[-1]] - known[edges[0]]
    assert sum(energies.values()) == whole - sum(known[b] - known[a] for a, b in lost)
    # a slot is lost at an outage alone: about one a day, of two hours at most and both its ends
    assert len(given_up) <= DAYS * (12_000 // SLOT_S + 3)
    within = [slot for slot in both if not {slot - 1, slot + 1} - energies.keys()]
    off_wh = [energies[slot] - (wh[(slot + 1) * SLOT_S] - wh[slot * SLOT_S]) for slot in within]
    assert max(map(abs, off_wh)) <= 11_000 * FAR_S // 3600 + 1

    # power: off by what the load moved while a telegram stood, or where none did, and by 1/2 W
    drawn = power_w[: last * SLOT_S].reshape(-1, SLOT_S)
    means = np.array([values.get(slot, (None,))[0] or 0 for slot in range(last)], np.int32)
    has_mean = np.array([values.get(slot, (None,))[0] is not None for slot in range(last)])
    came = np.zeros(last, bool)
    came[[at // SLOT_S for at, _, _ in events if at < last * SLOT_S]] = True
    off = means * SLOT_S - drawn.sum(axis=1)
    error = np.abs(off)
    is_right, is_present = np.zeros(last, bool), np.zeros(last, bool)
    for as_known in (False, True):
        standing = stood(events, as_known=as_known)[: last * SLOT_S].reshape(-1, SLOT_S)
        covered_s = (standing >= 0).sum(axis=1)
        moved = np.abs(np.where(standing >= 0, standing, means[:, None]) - drawn).sum(axis=1)
        is_right |= error <= moved + covered_s // 2 + 1
        is_present |= (2 * covered_s >= SLOT_S) == has_mean
    assert np.all(is_right[has_mean])
    assert np.all(is_present[came])
    assert not np.any(has_mean[~came])
    assert abs(off[has_mean].sum()) <= drawn[has_mean].sum() // 100, "and over the year nearly 0"
