"""A backup of the whole store while it runs, and its restoration (AGG-20).

SQLite: its online backup, one consistent moment, into a file that is there whole or not at all.
PostgreSQL: pg_dump and pg_restore, the server's own programs. A restored store would issue epochs
again that devices have seen; so each stream's plan goes on with one far above, written before the
restored store is in place where it can be. Plans issued since the backup are taken over from the
store that is replaced: what is reported under them still counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from aggregator.config import AggregatorConfig
from aggregator.errors import StoreError
from aggregator.store.contract import PlanRow, Reader, stored_plan
from aggregator.store.rows import AuditRow
from aggregator.store.sqlite import backup as sqlite_backup
from aggregator.store.sqlite.backup import Since
from edge_ldp.protocol.plan import Plan

Renewed = Callable[[Plan, int], Plan]  # the same plan under a given epoch, issued now

EPOCHS_AHEAD = 1000  # more plans than are issued between a backup and its restoration


def back_up(config: AggregatorConfig, file: str, target: Path) -> dict[str, Any]:
    """Write the store into `target`; raises StoreError, and ConfigError naming `file`."""
    if config.store.path is not None:
        size = sqlite_backup.back_up(Path(config.store.path), target)
        return {"bytes": size, "engine": "sqlite"}
    from aggregator.store.opening import database  # noqa: PLC0415 (same)
    from aggregator.store.postgres import backup as postgres_backup  # noqa: PLC0415 (an extra)

    return {
        "bytes": postgres_backup.back_up(*database(config, file), target),
        "engine": "postgresql",
    }


def restore_store(
    config: AggregatorConfig, file: str, source: Path, renewed: Renewed, order: AuditRow
) -> dict[str, Any]:
    """Put a backup in the store's place; raises StoreError, and ConfigError naming `file`.

    `order`: who restores. What was ordered since the backup stays in the log, though it was undone.
    """
    names = {stream.id: stream.name for stream in config.streams}

    def going_on(restored: Reader, since: Since) -> Since:
        fleet = restored.facts().get("fleet", config.fleet)
        if fleet != config.fleet:
            remedy = "the store is as it was: name another backup"
            reason = f"is a backup of the fleet {fleet}, not of {config.fleet}"
            raise StoreError(str(source), reason, remedy)
        known = set(restored.audit())
        orders = [row for row in since.orders if row not in known]
        return Since(plans_to_add(restored.plans(), since.plans, renewed), [*orders, order])

    if config.store.path is not None:
        engine = "sqlite"
        added, kept = sqlite_backup.restore(Path(config.store.path), source, going_on)
    else:
        from aggregator.store.opening import database  # noqa: PLC0415 (same)
        from aggregator.store.postgres import backup as postgres_backup  # noqa: PLC0415 (an extra)

        engine = "postgresql"
        added, kept = postgres_backup.restore(*database(config, file), source, going_on)
    plans = sorted(added.plans, key=lambda row: row.epoch)
    newest = {row.stream: row.epoch for row in plans}
    return {
        "engine": engine,
        "plans": [
            {
                "stream": names.get(stream, str(stream)),
                "epoch": epoch,
                "taken_over": sum(row.stream == stream for row in plans) - 1,
            }
            for stream, epoch in sorted(newest.items())
        ],
        "replaced": None if kept is None else str(kept),
    }


def plans_to_add(
    restored: Sequence[PlanRow], since: Sequence[PlanRow], renewed: Renewed
) -> list[PlanRow]:
    """Return the plans of `since` that a restored store lacks, and of each stream one more.

    That one asks what the newest asks, under an epoch above any that was issued in between.
    """
    known = {(row.stream, row.epoch) for row in restored}
    missing = [row for row in since if (row.stream, row.epoch) not in known]
    newest: dict[int, PlanRow] = {}
    for row in sorted([*restored, *missing], key=lambda row: row.epoch):
        newest[row.stream] = row
    return [*missing, *(_following(row, renewed) for row in newest.values())]


def _following(row: PlanRow, renewed: Renewed) -> PlanRow:
    plan = renewed(stored_plan(row, "restore another backup"), row.epoch + EPOCHS_AHEAD)
    return replace(row, epoch=plan.epoch, issued_s=plan.issued_s, payload=plan.to_json())
