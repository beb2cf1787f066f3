"""A home is erased: what a store kept of it alone goes, and its name bars its old reports.

What stays is of many homes: counts, sums and totals, and in its record how many reports were
counted, so that accounts still add up. Its noisy sums of a period, which the intervals of few homes
need one by one, get a random name each, so that they are of nobody; the hash of its name, by which
crowds are counted, becomes a random one. What was kept apart of a home in quarantine is in no sum:
it goes, and counts as rejected. Source: docs/administration.md, Erasing a home.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from aggregator.counting.records import UNNAMED, Record
from aggregator.errors import MemberError
from aggregator.store.administration.renaming import RENAMED, former_names, rename_reporter
from aggregator.store.contract import Session
from aggregator.store.forms import unpack_pairs
from aggregator.store.shared_reads import PUT_FACT
from edge_ldp.protocol.released import FIRST_KEY, FIRST_SUMS_KEY

Draw = Callable[[int], int]  # a random number below it

ERASED = "erased, device "  # of a fact's name
GONE = "(an erased device)"
_HELD = "SELECT stream, pairs FROM held_counts WHERE device = ?"
_UNNAME = "UPDATE period_sums SET device = ? WHERE device = ? AND name = ? AND first_s = ?"
_BLANK = """UPDATE devices SET state = 'unknown', software = '', refusals = '', health = '',
    ages = '', heard = 2, grp = 0, cls = 0, seen_s = ?, enrolled_s = ?, revoked_s = ?,
    held_s = NULL, cleared_s = NULL WHERE device = ?"""


class Erased(NamedTuple):
    """What was erased of a device: rows by table, lines of the log that had its name.

    `reports`: how many stay in counts; `unnamed`: sums of a period that stay.
    """

    device: str
    rows: Mapping[str, int]
    audited: int
    reports: int
    unnamed: int


def erased_devices(facts: Mapping[str, str]) -> dict[str, int]:
    """Return the devices that were erased, and how many reports of each stay in counts."""
    return {
        name.removeprefix(ERASED): int(json.loads(value)["reports"])
        for name, value in facts.items()
        if name.startswith(ERASED)
    }


def erase(
    session: Session, devices: Iterable[str], at_s: int, draw: Draw
) -> tuple[list[Erased], bool]:
    """Erase devices, all or none, and say whether their bytes are overwritten.

    Of one that was erased before nothing is left to be erased. `draw`: makes new names.
    Raises MemberError for one that the store does not know.
    """
    with session.transaction():
        gone = erased_devices(session.facts())
        found = []
        for device in devices:
            if device in gone:
                found.append(Erased(device, {}, 0, gone[device], 0))
            else:
                found.append(_erase(session, device, at_s, draw))
    return found, session.forget_deleted()


def _erase(session: Session, device: str, at_s: int, draw: Draw) -> Erased:
    now = former_names(session.facts()).get(device)
    if now or not session.rows("SELECT 1 FROM devices WHERE device = ?", (device,)):
        what = f"was renamed to {now}" if now else "is not known"
        raise MemberError(f"device {device}", what, "see `devices list`")
    held: dict[int, int] = {}
    for stream, blob in session.rows(_HELD, (device,)):
        held[stream] = held.get(stream, 0) + int(unpack_pairs(bytes(blob))[1].sum())
    unnamed = _unname_sums(session, device, draw)
    rows = {table: _delete(session, table, device) for table in session.device_tables()}
    records = session.states(device)
    for stream, record in records:
        if FIRST_KEY <= stream < FIRST_SUMS_KEY:  # released values, which are in no sum
            session.rows("DELETE FROM records WHERE device = ? AND stream = ?", (device, stream))
        else:
            session.put_record(device, stream, _blank(record, held.get(stream, 0)))
    rename_reporter(session, device, draw(1 << 32))
    reports = sum(record.counted for stream, record in records if stream < FIRST_KEY)
    reports -= sum(held.values())
    audited = _bar(session, device, at_s, reports)
    return Erased(device, rows, audited, reports, unnamed)


def _unname_sums(session: Session, device: str, draw: Draw) -> int:
    kept = session.rows(
        "SELECT name, first_s FROM period_sums WHERE device = ? AND held = 0", (device,)
    )
    for name, first_s in kept:
        values = (f"{UNNAMED}{draw(1 << 64):016x}", device, name, first_s)
        session.rows(_UNNAME, values)
    return len(kept)


def _delete(session: Session, table: str, device: str) -> int:
    ((many,),) = session.rows(f"SELECT count(*) FROM {table} WHERE device = ?", (device,))  # noqa: S608 (our own words)
    session.rows(f"DELETE FROM {table} WHERE device = ?", (device,))  # noqa: S608 (here too)
    return int(many)


def _blank(record: Record, held: int) -> Record:
    """Return what accounts need of a record: how many reports, and nothing of when."""
    counted, rejected = record.counted - held, record.rejected + held
    return Record(
        counted=counted,
        rejected=rejected,
        duplicates=record.duplicates,
        conflicts=record.conflicts,
        created=counted + rejected,
    )


def _bar(session: Session, device: str, at_s: int, reports: int) -> int:
    """Keep of a device, and of names that it had before, that they were erased."""
    audited = 0
    former = [name for name, now in former_names(session.facts()).items() if now == device]
    for name in (device, *former):
        audited += _blank_audit(session, name)
        session.rows(_BLANK, (at_s, at_s, at_s, name))
        session.rows("DELETE FROM facts WHERE name = ?", (f"{RENAMED}{name}",))
        told = json.dumps({"at_s": at_s, "reports": reports if name == device else 0})
        session.rows(PUT_FACT, (f"{ERASED}{name}", told))
    return audited


def _blank_audit(session: Session, device: str) -> int:
    """Take a device's name out of what operators typed; return how many lines had it."""
    word = re.compile(rf"(?<![\w.-]){re.escape(device)}(?![\w.-])")
    lines = [
        (word.sub(GONE, command), number)
        for number, command in session.rows("SELECT id, command FROM audit")
        if word.search(command)
    ]
    session.each("UPDATE audit SET command = ? WHERE id = ?", lines)
    return len(lines)
