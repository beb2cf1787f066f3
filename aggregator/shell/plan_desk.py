"""Plans going out: stored, then published and retained; estimated in a thread beside the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from aggregator import planner
from aggregator.errors import AggregatorError
from aggregator.estimate import ems
from aggregator.guard import Rules, StreamRules, allowed_codes
from aggregator.shell.store import PlanRow, StoreError
from aggregator.strata import pool_surveys, split_epochs
from edge_ldp.messages import topic
from edge_ldp.plan import Plan, parse_plan
from edge_ldp.strict_json import MessageError

if TYPE_CHECKING:
    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.records import CountRows
    from aggregator.shell.keeper import Keeper
    from edge_ldp.shell.clock import Clock
    from edge_ldp.shell.mqtt import Link

POLL_S = 1.0  # real
_log = logging.getLogger(__name__)
Plans = dict[int, Plan]  # by epoch


class PlanDesk:
    """The plans of all streams: what the guard goes by, and what devices are asked to run."""

    def __init__(self, config: AggregatorConfig, clock: Clock, keeper: Keeper) -> None:
        self._config = config
        self._clock = clock
        self._keeper = keeper
        listed = config.intake.enrolment
        self._listed = None if listed == "open" else frozenset(listed)
        self._plans: dict[int, Plans] = {stream.id: {} for stream in config.streams}
        self._payloads: dict[int, bytes] = {}
        self._looked_s: dict[int, float] = {}
        self._rules: dict[int, StreamRules] = {}

    async def load(self) -> None:
        """Read the stored plans; raises StoreError when one does not parse."""
        for row in await self._keeper.call(lambda store: store.plans()):
            if row.stream in self._plans:
                self._take(row)
        self._make_rules()

    def rules(self) -> Rules:
        """Return what the guard goes by at this moment."""
        intake = self._config.intake
        return Rules(
            streams=self._rules,
            devices=self._listed,
            max_devices=intake.max_devices,
            window_s=intake.resend_window_s,
            tolerance_s=intake.tolerance_s,
            now_s=self._clock.now(),
        )

    async def run(self, link: Link, retained: Mapping[str, bytes]) -> None:
        """Publish the plans in force, then revise them, until the link is lost."""
        for stream in self._config.streams:
            await self._begin(link, stream, retained.get(self._topic(stream)))
        while True:
            await asyncio.sleep(POLL_S)
            for stream in self._config.streams:
                await self._revise(link, stream)

    async def _begin(self, link: Link, stream: StreamTable, retained: bytes | None) -> None:
        """Make the retained plan the one in force, with an epoch above both."""
        current = self._current(stream)
        seen = None if retained is None else _epoch_of(retained, self._topic(stream))
        stored = None if current is None else current.epoch
        if current is None or not planner.matches(current, self._config.fleet, stream):
            epoch = planner.next_epoch(stored, seen)
            await self._issue(link, stream, self._first(stream, epoch))
        elif seen is not None and seen >= current.epoch and retained != self._payloads[stream.id]:
            epoch = planner.next_epoch(stored, seen)
            _log.warning("plan %s: a foreign plan of epoch %d is retained", stream.name, seen)
            await self._issue(link, stream, planner.renewed(current, epoch=epoch, now_s=self._now))
        elif retained != self._payloads[stream.id]:
            await self._publish(link, stream)

    async def _revise(self, link: Link, stream: StreamTable) -> None:
        plan = self._current(stream)
        assert plan is not None  # noqa: S101 (run() issues one first)
        now = self._clock.now()
        if planner.needs_renewal(plan, now):
            await self._issue(
                link, stream, planner.renewed(plan, epoch=plan.epoch + 1, now_s=self._now)
            )
        elif planner.is_due(plan, stream, self._looked_s.get(stream.id), now):
            totals = await self._keeper.call(lambda store: store.totals(stream.id))
            plans = dict(self._plans[stream.id])
            revise = partial(_revised, plan, stream, plans, totals, now_s=self._now)
            enough, following = await asyncio.to_thread(revise)
            if enough:
                self._looked_s[stream.id] = now
            if following is not None:
                await self._issue(link, stream, following)

    async def _issue(self, link: Link, stream: StreamTable, plan: Plan) -> None:
        """Store first: a crash in between publishes the same plan at the next start (AGG-17)."""
        row = PlanRow(stream.id, plan.epoch, plan.issued_s, plan.to_json())
        await self._keeper.call(lambda store: store.add_plan(row))
        self._take(row)
        self._make_rules()
        _log.info(
            "plan %s: epoch %d, θ = %d %s, %d of %d slots survey",
            *(stream.name, plan.epoch, plan.theta, plan.unit, *plan.share),
        )
        await self._publish(link, stream)

    async def _publish(self, link: Link, stream: StreamTable) -> None:
        await link.publish(self._topic(stream), self._payloads[stream.id], retain=True)

    def _take(self, row: PlanRow) -> None:
        try:
            self._plans[row.stream][row.epoch] = parse_plan(row.payload)
        except MessageError as exc:
            reason = f"holds a damaged plan (stream {row.stream}, epoch {row.epoch}: {exc})"
            raise StoreError("plans", reason, "restore a backup") from exc
        if row.epoch == max(self._plans[row.stream]):
            self._payloads[row.stream] = row.payload

    def _make_rules(self) -> None:
        self._rules = {
            stream.id: StreamRules(
                stream.slot_seconds,
                stream.bucket_slots,
                {epoch: allowed_codes(plan) for epoch, plan in self._plans[stream.id].items()},
            )
            for stream in self._config.streams
        }

    def _current(self, stream: StreamTable) -> Plan | None:
        plans = self._plans[stream.id]
        return plans[max(plans)] if plans else None

    def _first(self, stream: StreamTable, epoch: int) -> Plan:
        return planner.first_plan(self._config.fleet, stream, epoch=epoch, now_s=self._now)

    def _topic(self, stream: StreamTable) -> str:
        return topic(self._config.fleet, "plan", stream.name)

    @property
    def _now(self) -> int:
        return int(self._clock.now())


def _revised(
    plan: Plan, stream: StreamTable, plans: Plans, totals: CountRows, *, now_s: int
) -> tuple[bool, Plan | None]:
    """Return (whether there are enough surveys, the plan to follow or None)."""
    surveys = pool_surveys(
        plan.survey_mechanism, plans, split_epochs(plans, totals.epoch, totals.code, totals.count)
    )
    if surveys.sum() < stream.min_survey_reports:
        return False, None
    density = ems(plan.survey_mechanism, surveys)
    return True, planner.next_plan(plan, stream, density, now_s=now_s)


def _epoch_of(payload: bytes, where: str) -> int | None:
    try:
        return parse_plan(payload).epoch
    except (MessageError, AggregatorError, ValueError):
        _log.warning("%s: what is retained there is no plan; it is replaced", where)
        return None
