"""A device by itself: how it is, and on which of the last 30 days a status came.

Of a day no more than that is kept, for 31 days, and reports move none of it: when a home reported
is nobody's to read here.
"""

import shlex
from datetime import UTC, tzinfo

from aggregator.answers.fleet.audit import AuditEntry
from aggregator.answers.fleet.status import shown_device
from aggregator.answers.fleet.status_answer import ShownDevice
from aggregator.answers.parts import AnswerPart, Seconds
from aggregator.answers.units import age_text, clock_text
from aggregator.config import AggregatorConfig
from aggregator.store.contract import Reader
from aggregator.store.rows import AuditRow, DeviceRow
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.sums import DAY_S
from edge_ldp.protocol.messages import check_name
from edge_ldp.protocol.utc import utc

DAYS = 30
SIGNS = {  # of a day, for people
    "absent": "·",
    "not kept": "?",
    "heard": "H",
    "troubled": "T",
    "refusing": "R",
    "silent": "–",
    "revoked": "X",
}


class DeviceDay(AnswerPart, frozen=True, kw_only=True):
    """A day of a device.

    date: of UTC; state: "absent" (not enrolled yet), "heard" (a status came; on the last such day
    "troubled" or "refusing", if it said so), "silent", "not kept" (before this was kept) or
    "revoked"; changes: how many commands named it.
    """

    date: str
    state: str
    changes: int


class DeviceAnswer(AnswerPart, frozen=True, kw_only=True):
    """What `devices show` answers.

    fleet; zone of times as people read them; now_s; enrolled_s, or null; shown: what the console's
    list of devices has of it; days[]: the last 30, today last; changes[]: commands that named it in
    them, oldest first.
    """

    fleet: str
    zone: str
    now_s: Seconds
    enrolled_s: Seconds | None
    shown: ShownDevice
    days: list[DeviceDay]
    changes: list[AuditEntry]


def read_device(
    reader: Reader, config: AggregatorConfig, name: str, now_s: int, zone: tzinfo
) -> DeviceAnswer | None:
    """Return what `devices show` answers; None: no device has this name."""
    try:  # a store need not take any text
        row = next(iter(reader.some_devices([check_name("device", name)])), None)
    except ParameterError:
        row = None
    if row is None:
        return None
    names = {stream.id: stream.name for stream in config.streams}
    old_s, least = config.silent_before(now_s), config.query.min_devices
    records, marks = reader.states(name), reader.marks()
    days = range(now_s // DAY_S - DAYS + 1, now_s // DAY_S + 1)
    found = [one for one in reader.audit(days[0] * DAY_S) if name in _words(one)]
    at = [one.at_s // DAY_S for one in found]
    return DeviceAnswer(
        fleet=config.fleet,
        zone=str(zone),
        now_s=now_s,
        enrolled_s=row.enrolled_s,
        shown=shown_device(row, records, marks, names, old_s, least=least),
        days=[
            DeviceDay(
                date=str(utc(day * DAY_S).date()), state=_state(row, day), changes=at.count(day)
            )
            for day in days
        ],
        changes=[AuditEntry.of(one) for one in found],
    )


def _state(row: DeviceRow, day: int) -> str:
    if row.enrolled_s is not None and day < row.enrolled_s // DAY_S:
        return "absent"
    if row.revoked_s is not None and day >= row.revoked_s // DAY_S:
        return "revoked"
    is_heard = row.heard_on(day)
    if not is_heard:
        return "silent" if is_heard is False else "not kept"
    if day < row.seen_s // DAY_S:
        return "heard"
    return "refusing" if row.refusals else "troubled" if row.is_degraded else "heard"


def _words(change: AuditRow) -> list[str]:
    """Return what a command about devices named; a long one may end within a quoted word."""
    try:
        words = shlex.split(change.command)
    except ValueError:
        words = change.command.split()
    return words[2:] if words[:1] == ["devices"] else []


def device_text(view: DeviceAnswer, zone: tzinfo = UTC) -> str:
    """Return it as people read it."""
    one = view.shown
    heard = "never" if one.seen_s is None else f"{age_text(view.now_s - one.seen_s)} ago"
    told = {
        "device": f"{one.device}, in {one.group or 'no group'}",
        "state": f"{one.state}, last status {clock_text(one.seen_s, zone)} ({heard})",
        "software": one.software or "-",
        "health": one.health,
        "refused": "; ".join(one.refusals) or "-",
        "enrolled": clock_text(view.enrolled_s, zone),
        "revoked": clock_text(one.revoked_s, zone),
        "quarantine": clock_text(one.held_s, zone),
        "marked in": ", ".join(mark.stream for mark in one.marks) or "-",
        "30 days": f"{''.join(SIGNS[day.state] for day in view.days)} to {view.days[-1].date} UTC",
        "": ", ".join(f"{sign} {state}" for state, sign in SIGNS.items()),
    }
    lines = [f"{name:12}{text}".rstrip() for name, text in told.items()]
    lines += [f"{clock_text(one.at_s, zone)}  {one.who}  {one.command}" for one in view.changes]
    return "\n".join([*lines, ""])
