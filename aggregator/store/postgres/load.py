"""What one flush has to know, read and locked in PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aggregator.counting.records import Known, Member
from aggregator.store.forms import unpack_record
from aggregator.store.postgres import statements as schema
from aggregator.store.shared_reads import FACTS, RETIRED, streams_of

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    import psycopg

    from aggregator.counting.records import Key


def load(db: psycopg.Connection[Any], keys: AbstractSet[Key], devices: AbstractSet[str]) -> Known:
    """Lock the records of `keys` and return what is known; later statements see the newest.

    Everything is asked for before the first answer is read: one round trip in a pipeline, two
    when a device is new. Locks: records by their keys, then the counter of enrolled devices.
    """
    named = sorted(devices)
    pairs = schema.columns(sorted(keys), 2)
    asked = db.execute(schema.LOCK_RECORDS, pairs, binary=True) if keys else ()
    kept = db.execute(schema.GET_WATCHED, pairs, binary=True) if keys else ()
    found = db.execute(schema.GET_DEVICES, (named,), binary=True)
    count = db.execute(schema.GET_ENROLLED)
    facts = db.execute(FACTS)
    records = {(device, stream): unpack_record(blob) for device, stream, blob in asked}
    watched = {(device, stream, law): blob for device, stream, law, blob in kept}
    known = {name: Member(*decided) for name, *decided in found}
    if len(known) < len(named):
        # who enrols does so alone, so that the limit on devices is exact with several workers
        count = db.execute(schema.LOCK_ENROLLED)
        found = db.execute(schema.GET_DEVICES, (named,), binary=True)
        known = {name: Member(*decided) for name, *decided in found}
    (devices_ever,) = count.fetchone() or (0,)
    members = {name: one for name, one in known.items() if one != Member()}
    retired = frozenset(streams_of(facts, RETIRED))
    return Known(records, frozenset(known), devices_ever, watched, members, retired)
