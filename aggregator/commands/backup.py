"""`edge-ldp aggregator backup | restore`: the whole store, while it runs and back again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import convert

from aggregator.answers.fleet.changes import RestoredStore, WrittenBackup
from aggregator.commands.asking import Shown, add_command
from aggregator.commands.common import make_clock, order, refuse_own
from aggregator.config import ConfigError, load_config
from aggregator.plans.planner import renewed
from aggregator.store.backup import back_up, restore_store

if TYPE_CHECKING:
    import argparse

    from aggregator.commands.asking import Commands
    from edge_ldp.protocol.plan import Plan


def backup(args: argparse.Namespace) -> int:
    """Write the whole store to a file, as of one moment, also while the service runs."""
    config = load_config(args.config)
    refuse_own(args, config, args.file)
    if args.file.exists() and not args.force:
        expected = "expected a file that is not there yet; --force puts the new backup in its place"
        raise ConfigError(str(args.file), "file", expected)
    done = back_up(config, str(args.config), args.file)
    view = WrittenBackup(file=str(args.file), **done)
    return Shown(view, lambda: f"{args.file}: {view.bytes} bytes\n").show(args)


def restore(args: argparse.Namespace) -> int:
    """Put a backup in the place of the store; no service may run on it.

    Plans go on with an epoch above any that was issued since the backup was made.
    """
    config = load_config(args.config)
    now_s = int(make_clock(config).now())

    def going_on(plan: Plan, epoch: int) -> Plan:
        return renewed(plan, epoch=epoch, now_s=now_s)

    who = order(args, config)
    done = restore_store(config, str(args.config), args.file, going_on, who)
    view = convert({"file": str(args.file), **done}, RestoredStore)
    lines = [f"restored from {args.file}"]
    for one in view.plans:
        more = f", {one.taken_over} newer ones taken over" if one.taken_over else ""
        lines.append(f"{one.stream}: plans go on with epoch {one.epoch}{more}")
    if view.replaced:
        lines.append(f"what was there before is kept in {view.replaced}")
    return Shown(view, lambda: "\n".join([*lines, ""])).show(args)


def add(commands: Commands) -> None:
    """Add the commands' options."""
    written = add_command(commands, backup, WrittenBackup)
    written.add_argument("--force", action="store_true", help="also over a file that is there")
    for sub in (written, add_command(commands, restore, RestoredStore)):
        sub.add_argument("file", type=Path, help="of the backup")
