"""Devices, groups, held plans and retired streams, changed by an operator beside the service.

Each change is one transaction, all or none. The service decides within its own transactions, so
what is changed here holds from its next one on.
"""

from collections.abc import Sequence
from dataclasses import replace

from aggregator.counting.members import Listed, Standing, Wish, decided
from aggregator.store.administration.erasure import erased_devices
from aggregator.store.administration.quarantine_release import count_held
from aggregator.store.administration.renaming import former_names
from aggregator.store.contract import Reader, Session
from aggregator.store.shared_reads import FACTS, PLAN_HELD, RETIRED, streams_of

FEW = 100  # devices: asked for one by one; of more, all rows are read
_ROWS = "SELECT device, grp, revoked_s, held_s FROM devices"
_CHANGES = {
    "group": "UPDATE devices SET grp = ? WHERE device = ?",
    "revoked_s": "UPDATE devices SET revoked_s = ? WHERE device = ?",
    "held_s": "UPDATE devices SET held_s = ? WHERE device = ?",
    "cleared_s": "UPDATE devices SET held_s = NULL, cleared_s = ? WHERE device = ?",
}


def apply(session: Session, wishes: Sequence[Wish], at_s: int) -> list[str]:
    """Fulfil all wishes, or none: return the devices of which something changed.

    Flushes wait meanwhile. Raises MemberError, StoreError.
    """
    with session.transaction():
        done = decided(wishes, _standing(session, wishes), session.groups(), at_s)
        session.each("INSERT INTO groups (name, id) VALUES (?, ?)", list(done.groups.items()))
        session.enrol(done.enrolled, at_s)
        for what, values in done.changes.items():
            session.each(_CHANGES[what], values)
        for device in done.released:
            count_held(session, device)
    return done.changed


def hold_plan(session: Session, stream: int, at_s: int) -> bool:
    """Hold a stream's plan; return whether it was not held before."""
    return _remember(session, PLAN_HELD, stream, at_s)


def release_plan(session: Session, stream: int) -> bool:
    """Let the planner choose a stream's plan again; return whether it was held."""
    return _forget(session, PLAN_HELD, stream)


def forget_plans(session: Session, stream: int, above: int) -> None:
    """Delete a stream's plans above an epoch, which no device believes; none of them has counts."""
    with session.transaction():
        session.rows("DELETE FROM plans WHERE stream = ? AND epoch > ?", (stream, above))


def retire_stream(session: Session, stream: int, at_s: int) -> bool:
    """Let a stream count nothing more; return whether it was not retired before."""
    return _remember(session, RETIRED, stream, at_s)


def reinstate_stream(session: Session, stream: int) -> bool:
    """Let a stream that was retired count again; return whether it was retired."""
    return _forget(session, RETIRED, stream)


def listed(reader: Reader) -> list[Listed]:
    """Return every device that has a row, by name."""
    return [
        Listed(
            *(row.device, row.group, row.state, row.seen_s),
            *(row.enrolled_s, row.revoked_s, row.held_s),
            *(row.health, row.ages),
        )
        for row in reader.devices()
    ]


def _remember(session: Session, what: str, stream: int, at_s: int) -> bool:
    with session.transaction():
        if stream in streams_of(session.rows(FACTS), what):
            return False
        values = (f"{what}{stream}", str(at_s))
        session.rows("INSERT INTO facts (name, value) VALUES (?, ?)", values)
    return True


def _forget(session: Session, what: str, stream: int) -> bool:
    with session.transaction():
        was_so = stream in streams_of(session.rows(FACTS), what)
        session.rows("DELETE FROM facts WHERE name = ?", (f"{what}{stream}",))
    return was_so


def _standing(session: Session, wishes: Sequence[Wish]) -> dict[str, Standing]:
    if len(wishes) > FEW:
        rows = session.rows(_ROWS)
    else:
        query = f"{_ROWS} WHERE device = ?"
        rows = [row for wish in wishes for row in session.rows(query, (wish.device,))]
    found = {device: Standing(*rest) for device, *rest in rows}
    facts = session.facts()
    barred = dict.fromkeys(erased_devices(facts), "was erased")
    barred |= {device: f"was renamed to {now}" for device, now in former_names(facts).items()}
    for device in barred.keys() & found:
        found[device] = replace(found[device], barred=barred[device])
    return found
