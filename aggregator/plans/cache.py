"""Plans and revisions as the store holds them: read by the store's thread, gone by on the loop.

Whatever is gone by is one value that is replaced whole, so either thread sees it at one moment. An
epoch is stored before anybody can report under it, so a frame of an epoch above the newest known
one means: read again, then judge (`covers`). `refresh` is also how plans that another worker or a
command stored take effect.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from aggregator.config import StreamTable
from aggregator.config.streams import DAY_S
from aggregator.counting.classes import Weights
from aggregator.counting.frames import FrameBatch
from aggregator.counting.refusals import Codes, StreamRules, allowed_codes, dated
from aggregator.errors import StoreError
from aggregator.plans.revision import RecentCounts, Revision, read_revision
from aggregator.plans.signing import PlanSeal
from aggregator.store.contract import LAST_BUCKET, PlanRow, Reader, RevisionRow, Store, stored_plan
from edge_ldp.errors import CountsError
from edge_ldp.protocol.plan import Plan, plan_tag

Plans = Mapping[int, Plan]  # by epoch


@dataclass(frozen=True, slots=True)
class _Stream:
    """Plans of one stream, what each allows, and the newest one as it is published."""

    plans: Plans = field(default_factory=dict)
    codes: Mapping[int, Codes] = field(default_factory=dict)
    payload: bytes = b""


class PlanCache:
    """The plans of all streams; only the store's thread calls `read` and `refresh`."""

    def __init__(self, streams: Iterable[StreamTable], seal: PlanSeal) -> None:
        self._tables = {stream.id: stream for stream in streams}
        self._seal = seal
        self._streams = {stream: _Stream() for stream in self._tables}
        self._revisions: dict[int, Revision] = {}
        self._added_up: dict[int, int] = {}
        self.rules: Mapping[int, StreamRules] = self._make_rules()

    def read(self, store: Store) -> None:
        """Read plans, revisions and what is closed; raises StoreError when one does not parse."""
        self._added_up = {
            stream: max(store.rolled_up(stream).until.values(), default=0)
            for stream in self._tables
        }
        self.rules = self._make_rules()
        self.refresh(store)
        for row in store.revisions():
            self.note_revision(row)

    def refresh(self, store: Store) -> None:
        """Read plans issued since, by whomever; raises StoreError when one does not parse."""
        newest = store.newest_epochs()
        here = {stream: newest.get(stream, 0) for stream in self._streams}
        if all(epoch == self._newest(stream) for stream, epoch in here.items()):
            return
        streams = {
            stream: known if here[stream] >= self._newest(stream) else _Stream()  # a repair deleted
            for stream, known in self._streams.items()
        }
        for row in store.plans():
            known = streams.get(row.stream)
            if known is not None and row.epoch not in known.plans:
                streams[row.stream] = self._with(known, row)
        self._streams = streams
        self.rules = self._make_rules()

    def covers(self, frames: FrameBatch) -> bool:
        """Say whether every frame's epoch is one that could be known; O(frames)."""
        return all(epoch <= self._newest(stream) for stream, epoch in frames.plans[0])

    def note_revision(self, row: RevisionRow) -> None:
        """Remember a stream's last revision; raises StoreError when it does not parse."""
        try:
            self._revisions[row.stream] = read_revision(row.payload)
        except CountsError as exc:
            reason = f"holds a damaged revision (stream {row.stream}, time {row.at_s})"
            raise StoreError("looks", reason, "restore a backup") from exc

    def plans(self, stream: StreamTable) -> Plans:
        """Return the plans of a stream by epoch."""
        return self._streams[stream.id].plans

    def current(self, stream: StreamTable) -> Plan | None:
        """Return the plan in force, or None before the first."""
        plans = self.plans(stream)
        return plans[max(plans)] if plans else None

    def payload(self, stream: StreamTable) -> bytes:
        """Return the plan in force as it is published, signed where a key is configured."""
        return self._streams[stream.id].payload

    def revision(self, stream: StreamTable) -> Revision | None:
        """Return a stream's last revision, or None."""
        return self._revisions.get(stream.id)

    def _newest(self, stream: int) -> float:
        known = self._streams.get(stream)
        return float("inf") if known is None else max(known.plans, default=0)

    def _with(self, known: _Stream, row: PlanRow) -> _Stream:
        plan = stored_plan(row)
        is_newest = row.epoch > max(known.plans, default=0)
        return _Stream(
            {**known.plans, row.epoch: plan},
            {**known.codes, row.epoch: replace(allowed_codes(plan), tag=plan_tag(row.payload))},
            self._seal.wrap(row.payload) if is_newest else known.payload,
        )

    def _make_rules(self) -> dict[int, StreamRules]:
        return {
            table.id: StreamRules(
                table.slot_seconds,
                table.bucket_slots,
                dated(self._streams[table.id].codes),
                self._added_up.get(table.id, 0),
            )
            for table in self._tables.values()
        }


def read_recent_counts(store: Reader, *, stream: StreamTable, now_s: float) -> RecentCounts:
    """Return what a revision goes by: the counts of the last days of the stream's horizon."""
    first = max(0, int(now_s - stream.horizon_days * DAY_S) // stream.bucket_s)
    present = [bucket for bucket, _ in store.presence(stream.id) if bucket >= first]
    buckets = present[-1] - present[0] + 1 if present else 0
    rows = store.totals(stream.id, first)
    slots = store.device_slots(stream.id, first, LAST_BUCKET)
    return RecentCounts(rows, buckets * stream.bucket_s, Weights(rows.whose, rows.count, slots))
