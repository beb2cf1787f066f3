"""A home goes on under another name, and nothing of it counts twice: its old name is barred.

All that is kept of it gets the new name in one transaction, also what stands for it where crowds
are counted, so accounts go on and what it sends again is known. What it still sends under the old
name is refused, and waits on the device until that has the new one. An archive keeps the name that
a report came under. Source: docs/administration.md, Another name or fleet.
"""

import json
from collections.abc import Mapping

from aggregator.counting.members import checked_name
from aggregator.counting.reporters import hash_of, renamed
from aggregator.errors import MemberError
from aggregator.store.contract import Session
from aggregator.store.shared_reads import PUT_FACT

RENAMED = "renamed, device "  # of a fact's name
_CELL = "stream, epoch, grp, cls, bucket"


def former_names(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the names that devices had before, and which each has now."""
    return {
        name.removeprefix(RENAMED): json.loads(value)["to"]
        for name, value in facts.items()
        if name.startswith(RENAMED)
    }


def rename(session: Session, old: str, new: str, at_s: int) -> bool:
    """Give a device another name; return whether it had not got it before.

    Raises MemberError for one that the store does not know, and for a name that it has seen.
    """
    checked_name("device", f"device {new}", new)
    with session.transaction():
        former = former_names(session.facts())
        if former.get(old) == new:
            return False
        ((known, taken),) = session.rows(
            "SELECT (SELECT count(*) FROM devices WHERE device = ?),"
            " (SELECT count(*) FROM devices WHERE device = ?)",
            (old, new),
        )
        if old in former or not known:
            what = f"was renamed to {former[old]}" if old in former else "is not known"
            raise MemberError(f"device {old}", what, "see `devices list`")
        if taken:
            remedy = "two homes' reports would mix: choose a name that no device ever had"
            raise MemberError(f"device {new}", "is known already", remedy)
        for table in ("devices", "records", *session.device_tables()):
            session.rows(f"UPDATE {table} SET device = ? WHERE device = ?", (new, old))  # noqa: S608 (our own words)
        rename_reporter(session, old, hash_of(new))
        session.enrol([old], at_s)
        session.rows("UPDATE devices SET revoked_s = ? WHERE device = ?", (at_s, old))
        for one in (old, *(name for name, now in former.items() if now == old)):
            session.rows(PUT_FACT, (f"{RENAMED}{one}", json.dumps({"to": new})))
    return True


def rename_reporter(session: Session, device: str, new: int) -> None:
    """Let another hash stand for a device wherever crowds are counted."""
    old = hash_of(device)
    for table in (*session.COUNTED, "sums"):
        cells = [
            (after, *key, bytes(blob))
            for *key, blob in session.rows(f"SELECT {_CELL}, reporters FROM {table}")  # noqa: S608 (our own words)
            if (after := renamed(bytes(blob), old, new)) != blob
        ]
        where = " AND ".join(f"{name} = ?" for name in (*_CELL.split(", "), "reporters"))
        session.each(f"UPDATE {table} SET reporters = ? WHERE {where}", cells)  # noqa: S608 (here too)
