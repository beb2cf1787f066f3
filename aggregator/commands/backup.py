"""`edge-ldp aggregator backup | restore | migrate`: the whole store, kept, put back or moved."""

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from msgspec import convert

from aggregator.answers.fleet.changes import MovedStore, RestoredStore, WrittenBackup
from aggregator.archive.directory import open_spool
from aggregator.commands.asking import Commands, Shown, option
from aggregator.commands.common import make_clock, order, refuse_own
from aggregator.config import AggregatorConfig, ConfigError, load_config
from aggregator.plans.planner import renewed
from aggregator.store.backup import back_up, restore_store
from aggregator.store.sqlite.store import SqliteStore

BAR = 30


def backup(args: argparse.Namespace) -> Shown:
    """Write the whole store to a file, as of one moment, also while the service runs."""
    config = load_config(args.config)
    refuse_own(args, config, args.file)
    if args.file.exists() and not args.force:
        expected = "expected a file that is not there yet; --force puts the new backup in its place"
        raise ConfigError(str(args.file), "file", expected)
    done = back_up(config, str(args.config), args.file)
    view = WrittenBackup(file=str(args.file), **done)
    return Shown(view, lambda: f"{args.file}: {view.bytes} bytes\n")


def restore(args: argparse.Namespace) -> Shown:
    """Put a backup in the place of the store; no service may run on it.

    Plans go on with an epoch above any that was issued since the backup was made.
    """
    config = load_config(args.config)
    now_s, who = int(make_clock(config).now()), order(args, config)
    going_on = partial(renewed, now_s=now_s)
    done = restore_store(config, str(args.config), args.file, going_on, who)
    view = convert({"file": str(args.file), **done}, RestoredStore)
    lines = [f"restored from {args.file}"]
    for one in view.plans:
        more = f", newer ones taken over: {one.taken_over}" if one.taken_over else ""
        lines.append(f"{one.stream}: plans go on with epoch {one.epoch}{more}")
    if view.replaced:
        lines.append(f"what was there before is kept in {view.replaced}")
    return Shown(view, lambda: "\n".join([*lines, ""]))


def migrate(args: argparse.Namespace) -> Shown:
    """Move all of a SQLite store into an empty PostgreSQL database; no service may run on either.

    Stop the service, run this, start the service with the new file: the broker keeps what comes in
    between. Cut off at any moment, run it again. Nothing is counted in the old file any more.
    """
    old, new = load_config(args.old), load_config(args.new)
    _check(old, new, args)
    from aggregator.store.moving import move  # noqa: PLC0415 (the driver is an extra)
    from aggregator.store.opening import database  # noqa: PLC0415 (same)
    from aggregator.store.postgres.store import PostgresStore  # noqa: PLC0415 (same)

    url, password = database(new, str(args.new))
    assert old.store.path is not None  # noqa: S101 (just checked)
    with closing(SqliteStore.open(Path(old.store.path))) as source:
        spool = open_spool(old, source)  # its last doubt is ended by the store that it is of
        if spool is not None:
            spool.close()
        with closing(PostgresStore.open(url, password)) as target:
            copied = move(source, target, _bar(quiet=args.json), [order(args, new)])
    view = MovedStore(tables=copied, from_=old.store.path, to=url)
    done = f"{sum(copied.values())} rows" if copied else "had been copied before"
    return Shown(view, lambda: f"{old.store.path} goes on in {url}: {done}\n")


def _check(old: AggregatorConfig, new: AggregatorConfig, args: argparse.Namespace) -> None:
    if old.store.path is None:
        raise ConfigError(str(args.old), "store.path", "expected a SQLite file to move from")
    if new.store.url is None:
        raise ConfigError(str(args.new), "store.url", "expected a PostgreSQL database to move to")
    if old.fleet != new.fleet:
        raise ConfigError(str(args.new), "fleet", f"expected {old.fleet}, as in {args.old}")
    before = {(s.id, s.name, s.unit, s.slot_seconds, s.bucket_slots) for s in old.streams}
    after = {(s.id, s.name, s.unit, s.slot_seconds, s.bucket_slots) for s in new.streams}
    if before - after:
        expected = f"expected id, name, unit, slots and buckets as in {args.old}"
        raise ConfigError(str(args.new), "streams", expected)


def _bar(*, quiet: bool) -> Callable[[str, int, int], None]:
    """Return what draws how far each table is, on a terminal."""

    def tell(table: str, done: int, size: int) -> None:
        if quiet or not sys.stderr.isatty():
            return
        full = BAR * done // max(1, size)
        line = f"{table:18} {'#' * full}{'.' * (BAR - full)} {done} of {size}"
        sys.stderr.write(f"\r{line:78}" + ("\n" if done >= size else ""))

    return tell


def add(commands: Commands) -> None:
    """Add the commands' options."""
    file = option("file", type=Path, help="of the backup")
    force = option("--force", action="store_true", help="also over a file that is there")
    commands.add(backup, WrittenBackup, file, force)
    commands.add(restore, RestoredStore, file)
    moved = (
        option("--from", dest="old", type=Path, required=True, help="TOML with store.path"),
        option("--to", dest="new", type=Path, required=True, help="TOML with store.url"),
    )
    commands.add(migrate, MovedStore, *moved, has_config=False)
