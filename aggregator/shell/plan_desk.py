"""Plans going out: stored, then published and retained; estimated in a thread beside the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from aggregator import planner
from aggregator.errors import AggregatorError, CountsError
from aggregator.guard import Codes, Rules, StreamRules, allowed_codes
from aggregator.revise import Look, Seen, read_look, revise
from aggregator.shell.plan_seal import PlanSeal
from aggregator.shell.store import LookRow, PlanRow, StoreError
from edge_ldp.messages import topic
from edge_ldp.plan import Plan, parse_plan
from edge_ldp.strict_json import MessageError

if TYPE_CHECKING:
    from aggregator.config import AggregatorConfig, StreamTable
    from aggregator.shell.keeper import Keeper
    from aggregator.shell.store import Store
    from edge_ldp.shell.clock import Clock
    from edge_ldp.shell.mqtt import Link

POLL_S = 1.0  # real
_log = logging.getLogger(__name__)
Plans = dict[int, Plan]  # by epoch


class PlanDesk:
    """The plans of all streams: what the guard goes by, and what devices are asked to run."""

    def __init__(
        self, config: AggregatorConfig, clock: Clock, keeper: Keeper, seal: PlanSeal | None = None
    ) -> None:
        self._seal = seal or PlanSeal()
        self._config = config
        self._clock = clock
        self._keeper = keeper
        listed = config.intake.enrolment
        self._listed = None if listed == "open" else frozenset(listed)
        self._plans: dict[int, Plans] = {stream.id: {} for stream in config.streams}
        self._payloads: dict[int, bytes] = {}
        self._looks: dict[int, Look] = {}  # the last of each stream
        self._codes: dict[tuple[int, int], Codes] = {}
        self._rules: dict[int, StreamRules] = {}

    async def load(self) -> None:
        """Read the stored plans and looks; raises StoreError when one does not parse."""
        for row in await self._keeper.call(lambda store: store.plans()):
            if row.stream in self._plans:
                self._take(row)
        for look in await self._keeper.call(lambda store: store.looks()):
            self._take_look(look)
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
        seen = None if retained is None else self._epoch_of(retained, stream)
        stored = None if current is None else current.epoch
        if current is None or not planner.matches(current, self._config.fleet, stream):
            await self._issue(
                link, stream, await self._first(stream, planner.next_epoch(stored, seen))
            )
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
        elif planner.is_due(plan, stream, self._looked_s(stream), now):
            await self._look(link, stream, plan)

    async def _look(self, link: Link, stream: StreamTable, plan: Plan) -> None:
        """Estimate in a thread; store the look, and with it the plan that it leads to, if any."""
        last = self._looks.get(stream.id)
        seen = await self._keeper.call(partial(_read, stream=stream, last=last))
        plans = dict(self._plans[stream.id])
        found = await asyncio.to_thread(
            partial(revise, plan, stream, plans, seen, last, now_s=self._now)
        )
        if found is None:
            return
        look, following = found
        row = LookRow(stream.id, look.at_s, look.to_json())
        for reason in look.reasons:
            _log.info("plan %s: %s", stream.name, reason)
        for verdict in look.screen:
            if verdict.rings:
                said = "; ".join((str(verdict), *verdict.warnings))
                _log.warning("plan %s: %s", stream.name, said)
        if following is None:
            await self._keeper.call(lambda store: store.add_look(row))
            self._take_look(row)
        else:
            await self._issue(link, stream, following, row)

    async def _issue(
        self, link: Link, stream: StreamTable, plan: Plan, look: LookRow | None = None
    ) -> None:
        """Store first: a crash in between publishes the same plan at the next start (AGG-17)."""
        row = PlanRow(stream.id, plan.epoch, plan.issued_s, plan.to_json())
        await self._keeper.call(lambda store: store.add_plan(row, look))
        self._take(row)
        if look is not None:
            self._take_look(look)
        await asyncio.to_thread(self._codes_of, stream.id, plan)  # takes a while, and is kept
        self._make_rules()
        survey = plan.survey_mechanism
        _log.info(
            "plan %s: epoch %d, θ = %d %s, %d of %d slots survey %d to %d",
            *(stream.name, plan.epoch, plan.theta, plan.unit, *plan.share),
            *(survey.low, survey.high),
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
            self._payloads[row.stream] = self._seal.wrap(row.payload)

    def _take_look(self, row: LookRow) -> None:
        try:
            self._looks[row.stream] = read_look(row.payload)
        except CountsError as exc:
            reason = f"holds a damaged look (stream {row.stream}, time {row.at_s})"
            raise StoreError("looks", reason, "restore a backup") from exc

    def _looked_s(self, stream: StreamTable) -> float | None:
        look = self._looks.get(stream.id)
        return None if look is None else look.at_s

    def _codes_of(self, stream: int, plan: Plan) -> Codes:
        if (stream, plan.epoch) not in self._codes:
            self._codes[stream, plan.epoch] = allowed_codes(plan)
        return self._codes[stream, plan.epoch]

    def _make_rules(self) -> None:
        self._rules = {
            stream.id: StreamRules(
                stream.slot_seconds,
                stream.bucket_slots,
                {
                    epoch: self._codes_of(stream.id, plan)
                    for epoch, plan in self._plans[stream.id].items()
                },
            )
            for stream in self._config.streams
        }

    def _current(self, stream: StreamTable) -> Plan | None:
        plans = self._plans[stream.id]
        return plans[max(plans)] if plans else None

    async def _first(self, stream: StreamTable, epoch: int) -> Plan:
        """Return a first plan; in a thread, as proving it takes a while."""
        make = partial(planner.first_plan, self._config.fleet, stream, epoch=epoch, now_s=self._now)
        return await asyncio.to_thread(make)

    def _topic(self, stream: StreamTable) -> str:
        return topic(self._config.fleet, "plan", stream.name)

    def _epoch_of(self, payload: bytes, stream: StreamTable) -> int | None:
        try:
            return parse_plan(self._seal.open(payload)).epoch
        except (MessageError, AggregatorError, ValueError):
            where = self._topic(stream)
            _log.warning("%s: what is retained there is no plan of ours; it is replaced", where)
            return None

    @property
    def _now(self) -> int:
        return int(self._clock.now())


def _read(store: Store, *, stream: StreamTable, last: Look | None) -> Seen:
    """Return what a look goes by: all that is kept, split where the last look ended."""
    kept, looked = (last.kept_bucket, last.looked_bucket) if last else (0, 0)
    present = [pair for pair in store.presence(stream.id) if pair[0] >= kept]
    return Seen(
        store.totals(stream.id, kept, looked - 1),
        store.totals(stream.id, looked),
        np.array(present, np.int64).reshape(-1, 2),
    )
