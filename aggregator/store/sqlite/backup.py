"""Backups of a SQLite store by SQLite's own online backup."""

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple

from aggregator.archive.directory import make_durable, put_in_place
from aggregator.archive.spool import MODE
from aggregator.errors import StoreError, StoreHeldError
from aggregator.store.contract import PlanRow, Reader
from aggregator.store.rows import AuditRow
from aggregator.store.sqlite.reader import SqliteReader, check, refuse_moved, translate
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.service.files import make_closed

GoingOn = Callable[[Reader, "Since"], "Since"]

WAIT_S = 20.0
_OTHER = "name a file that can be written"


class Since(NamedTuple):
    """What a backup lacks: plans and orders of the store that is replaced, and what goes on."""

    plans: Sequence[PlanRow] = ()
    orders: Sequence[AuditRow] = ()


def back_up(store: Path, target: Path) -> int:
    """Write a store into a file and return its size; the file is there whole or not at all.

    One read transaction, so what is in it is one moment; the service writes on meanwhile.
    """
    with closing(SqliteReader.open(store)) as reader, reader.reading() as db:
        refuse_moved(db, store)  # the backup would be taken for one of what is counted
    draft = target.with_name(target.name + ".new")
    try:
        _remove(draft)
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE))
        _copy(store, draft)
        make_durable(draft)
        size = draft.stat().st_size
        put_in_place(draft, target)
    except OSError as exc:
        raise StoreError(str(target), exc.strerror or str(exc), _OTHER) from exc
    finally:
        with suppress(OSError):
            _remove(draft)
    return size


def restore(store: Path, source: Path, going_on: GoingOn) -> tuple[Since, Path | None]:
    """Put a backup in the place of a store that nobody writes to; return what was added to it.

    What was there is first kept beside it (the second thing returned). The restored store is made
    complete in a file of its own and then copied in one transaction, or renamed where there is no
    store: killed at any moment, the store is as it was, or as it shall be.
    """
    if not source.exists():
        raise StoreError(str(source), "does not exist", "name a backup")
    writer = SqliteStore(store)
    draft = store.with_name(store.name + ".restoring")
    try:
        writer.hold()  # refuses while a service runs
        _remove(draft)
        make_closed(draft)
        _copy_backup(source, draft)
        since, kept = Since(), None
        if store.exists():
            since, kept = _keep(store)
        else:
            _refuse_remains(store)
        with closing(SqliteStore.open(draft)) as restored:
            added = going_on(restored, since)
            for row in sorted(added.plans, key=lambda row: (row.stream, row.epoch)):
                restored.add_plan(row)
            restored.add_audit(added.orders)
        if kept is None:
            put_in_place(draft, store)
        else:
            _copy(draft, store)
    except OSError as exc:
        raise StoreError(str(store), exc.strerror or str(exc), _OTHER) from exc
    finally:
        _remove(draft)
        writer.close()
    return added, kept


def free_name(wanted: Path) -> Path:
    """Return a name that no file has: nothing that was kept is ever overwritten."""
    names = (wanted.with_name(f"{wanted.name}-{at}") for at in count(2))
    return next(path for path in chain([wanted], names) if not path.exists())


def _copy_backup(source: Path, draft: Path) -> None:
    try:
        _copy(source, draft)
    except StoreHeldError:
        raise
    except StoreError as exc:
        remedy = "the store is as it was: name another backup"
        raise StoreError(exc.where, exc.reason, remedy) from exc


def _keep(store: Path) -> tuple[Since, Path]:
    """Back up what is replaced; return its plans and orders, which may be newer."""
    kept = free_name(store.with_name(store.name + ".replaced"))
    try:
        with closing(SqliteReader.open(store)) as reader:
            since = Since(reader.plans(), reader.audit())
        back_up(store, kept)
    except StoreError as exc:
        remedy = "move it aside (never delete it) with its -wal and -shm, and restore again"
        raise StoreError(exc.where, exc.reason, remedy) from exc
    return since, kept


def _refuse_remains(store: Path) -> None:
    """Raise StoreError for what SQLite wrote beside a store that is gone: it is not this one's."""
    for suffix in ("-wal", "-shm", "-journal"):
        path = store.with_name(store.name + suffix)
        if path.exists():
            remedy = "move it aside (never delete it), and restore again"
            raise StoreError(str(path), "is of a store that is not there", remedy)


def _copy(source: Path, target: Path) -> None:
    """Copy a store, one moment of it, in one transaction of the target."""
    try:
        uri = f"{source.absolute().as_uri()}?mode=ro"
        with (
            closing(sqlite3.connect(uri, uri=True, timeout=WAIT_S)) as old,
            closing(sqlite3.connect(target, timeout=WAIT_S)) as new,
        ):
            check(old, source)
            old.backup(new)
            verdict = new.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
    except sqlite3.Error as exc:
        raise translate(exc, source) from exc


def _remove(draft: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal", ".lock"):
        draft.with_name(draft.name + suffix).unlink(missing_ok=True)
