"""Plans going out: stored, then published and retained; estimated in a thread beside the loop.

Only who leads does it. Before it stores or publishes it asks whether it still leads, the store
takes no epoch that is not above every other (FencedError), and after publishing it looks whether a
newer plan is stored: so a leader that slept through the loss of its lead leaves no old plan behind
(AGG-08). Everybody else goes by what is stored (`follow`, `reread`).
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from aggregator.config import AggregatorConfig, StreamTable
from aggregator.counting.frames import FrameBatch
from aggregator.counting.refusals import Measured, Rules
from aggregator.courier.courier import AnyLink
from aggregator.errors import FencedError
from aggregator.plans import planner
from aggregator.plans.cache import PlanCache, read_recent_counts
from aggregator.plans.clock_jumps import BelievedClock
from aggregator.plans.epsilons import epsilon_changes
from aggregator.plans.orders import apart_s, issued_by
from aggregator.plans.revision import revise
from aggregator.plans.rivals import Rivals
from aggregator.plans.signing import PlanSeal
from aggregator.store.contract import PlanRow, RevisionRow, Store, identity
from aggregator.store.store_thread import StoreThread
from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.plan import Plan, last_epoch, parse_plan
from edge_ldp.protocol.utc import utc
from edge_ldp.service.clock import Clock

Sure = Callable[[], Awaitable[None]]
ReadRetained = Callable[[], Awaitable[Mapping[str, bytes] | None]]

POLL_S = 1.0  # real
REMEMBERED = 16  # messages
LEAST_READ_S = 5.0  # real, between two readings of what the broker retains
REFUSED = ": homes whose policy allows less report nothing under it"
_log = logging.getLogger(__name__)


async def _leads() -> None:
    """Be sure that we lead: nobody else can."""


class PlanPublisher:
    """The plans of all streams: what the guard goes by, and what devices are asked to run.

    `sure` raises when we do not lead (any more); `rivals` takes in what others publish.
    """

    def __init__(  # noqa: PLR0913 (what it works with)
        self,
        config: AggregatorConfig,
        clock: Clock,
        keeper: StoreThread,
        seal: PlanSeal | None = None,
        sure: Sure = _leads,
        *,
        rivals: Rivals | None = None,
    ) -> None:
        self._rivals = rivals or Rivals()
        self._seal = seal or PlanSeal()
        self._config = config
        self._clock = BelievedClock(clock, config.intake.tolerance_s)
        self._keeper = keeper
        self._sure = sure
        self._listed = config.intake.listed
        self._measured = {
            one.name: Measured(one.id, one.unit, one.low, one.ceiling) for one in config.streams
        }
        self.cache = PlanCache(config.streams, self._seal)
        self._published: dict[int, bytes] = {}  # what we know to be retained
        self._topics = {self._topic(stream): stream.id for stream in config.streams}
        self._heard: dict[int, bytes] = {}  # what somebody published, the last of each stream
        self._known: deque[bytes] = deque(maxlen=REMEMBERED)  # ours, and what we went above
        self._had_ours: set[int] = set()  # streams whose plan ours was, since the start

    async def load(self) -> None:
        """Read the stored plans and revisions; raises StoreError when one does not parse."""
        self._clock.begin(await self._keeper.call(lambda store: store.last_commit_s()))
        await self._keeper.call(self.cache.read)
        self._rivals.store = await self._keeper.call(identity)

    @property
    def health(self) -> str:
        """Return `ok`, or why the time is in doubt."""
        return self._clock.health

    def rules(self) -> Rules:
        """Return what the guard goes by at this moment."""
        intake = self._config.intake
        return Rules(
            streams=self.cache.rules,
            devices=self._listed,
            max_devices=intake.max_devices,
            window_s=intake.resend_window_s,
            tolerance_s=intake.tolerance_s,
            now_s=self._clock.now(),
            closed_s=self._clock.closed_s,
            is_open=intake.enrolment == "open",
            marks_hold=self._config.guard.quarantine == "marked",
            measured=self._measured,
        )

    def rules_for(self, store: Store, frames: FrameBatch, rules: Rules) -> Rules:
        """Return the rules with the plans of now, read again when a frame's epoch is above all.

        To be called on the store's thread. Without it a worker would refuse for good what was
        reported under a plan that another worker has just issued; `rules` may be older than it.
        """
        if not self.cache.covers(frames):
            self.cache.refresh(store)
        return replace(rules, streams=self.cache.rules)

    def hear(self, at: str, payload: bytes) -> None:
        """Take in what was published at a plan topic, by us or by anybody."""
        stream = self._topics.get(at)
        if stream is not None and payload:
            self._heard[stream] = payload

    async def follow(self) -> None:
        """Take over what others issue, until cancelled."""
        while True:
            await asyncio.sleep(POLL_S)
            await self._keeper.call(self.cache.refresh)

    async def run(
        self, link: AnyLink, retained: Mapping[str, bytes], read: ReadRetained | None = None
    ) -> None:
        """Publish the plans in force, then revise them, until the link or the lead is lost.

        But for those of streams that an operator retired, and none of those of which homes give
        sums alone. `read` gives what the broker retains, or None when it cannot be read: every
        receipt interval, as a broker may lose it unsaid (NET-23).
        """
        await self._keeper.call(self.cache.read)
        self._published.clear()
        begun: set[int] = set()
        read_s = asyncio.get_running_loop().time()
        every_s = max(LEAST_READ_S, self._clock.real(self._config.intake.receipt_interval_s))
        while True:
            now_s = asyncio.get_running_loop().time()
            if read is not None and now_s - read_s >= every_s:
                read_s, found = now_s, await read()
                if found is not None:
                    retained = found
                    begun -= self._forget_lost(retained)
            retired = await self._keeper.call(lambda store: store.retired())
            for stream in self._config.planned:
                if stream.id in retired:
                    begun.discard(stream.id)
                elif stream.id not in begun or self.cache.current(stream) is None:
                    await self._begin(link, stream, retained.get(self._topic(stream)))
                    begun.add(stream.id)
                else:
                    await self._answer(link, stream)
                    await self._publish(link, stream)
                    await self._revise(link, stream)
            await asyncio.sleep(POLL_S)
            await self._keeper.call(self.cache.refresh)

    def _forget_lost(self, retained: Mapping[str, bytes]) -> set[int]:
        """Return the streams whose plan is not what the broker retains: they are begun anew."""
        lost = set()
        for at, number in self._topics.items():
            if number in self._published and retained.get(at) != self._published[number]:
                _log.warning("%s: the broker retains our plan no more; published again", at)
                del self._published[number]
                lost.add(number)
        return lost

    async def _begin(self, link: AnyLink, stream: StreamTable, retained: bytes | None) -> None:
        """Make the retained plan the one in force, with an epoch above both."""
        current, theirs = self.cache.current(stream), self._foreign(stream, retained)
        if retained is not None and retained == self.cache.payload(stream):
            self._published[stream.id] = retained
        if theirs is not None and retained is not None:
            if not self._may_go_above(stream, theirs, current):
                self._published[stream.id] = self.cache.payload(stream)  # for now
                return
            await self._adopt(stream, theirs, retained)
        seen = None if retained is None else self._seal.epoch_of(retained)
        if retained is not None and seen is None:
            where = self._topic(stream)
            _log.warning("%s: what is retained there is no plan of ours; it is replaced", where)
        stored = None if current is None else current.epoch
        if current is None or not planner.matches(current, self._config.fleet, stream):
            epoch = planner.next_epoch(stored, seen, self._now)
            await self._issue(link, stream, await self._anew(stream, current, epoch))
        elif (
            (seen is not None and seen >= current.epoch and stream.id not in self._published)
            or current.store not in (None, self._rivals.store)
            or self._is_ahead(current, stream)
        ):
            epoch = planner.next_epoch(stored, seen, self._now)
            await self._issue(link, stream, planner.renewed(current, epoch=epoch, now_s=self._now))
        await self._publish(link, stream)
        self._had_ours.add(stream.id)

    async def _answer(self, link: AnyLink, stream: StreamTable) -> None:
        """Look at what was published after ours; go above another store's plan."""
        payload = self._heard.pop(stream.id, None)
        if payload is None or payload in self._known or payload == self.cache.payload(stream):
            return
        theirs, current = self._foreign(stream, payload), self.cache.current(stream)
        if theirs is None or current is None or theirs.epoch < current.epoch:
            return  # devices go by the higher one
        self._published.pop(stream.id, None)
        await self._begin(link, stream, payload)

    def _foreign(self, stream: StreamTable, payload: bytes | None) -> Plan | None:
        """Return the plan in a message that our store never made; None for any other."""
        if payload is None:
            return None
        try:
            plan = parse_plan(self._seal.open(payload))
        except ValueError:  # every error of ours is one
            return None
        return None if self.cache.plans(stream).get(plan.epoch) == plan else plan

    def _may_go_above(self, stream: StreamTable, theirs: Plan, current: Plan | None) -> bool:
        """Say, also in the log, what another store's plan means; raises RivalError."""
        whose, now_s = self._rivals.named(theirs.store), time.monotonic()
        told = "plan %s: a foreign plan of epoch %d stands, of %s"
        if current is not None and theirs.epoch < current.epoch:
            return True
        if stream.id not in self._had_ours:
            _log.warning(f"{told}: receipts wait a minute", stream.name, theirs.epoch, whose)
            self._rivals.found(now_s)
            return True
        told += ": another aggregator serves this fleet"
        _log.error(told, stream.name, theirs.epoch, whose)
        return self._rivals.met(theirs.store, now_s)

    async def _adopt(self, stream: StreamTable, theirs: Plan, payload: bytes) -> None:
        """Keep another store's plan that asks what ours would: what is reported under it counts."""
        self._known.append(payload)
        if (
            not planner.matches(theirs, self._config.fleet, stream)
            or theirs.epoch > last_epoch(self._now)
            or planner.is_ahead(theirs, self._now, self._config.intake.tolerance_s)
        ):
            return
        row = PlanRow(stream.id, theirs.epoch, theirs.issued_s, self._seal.open(payload))
        with suppress(FencedError):  # below ours: no device has it that heard ours
            await self._keeper.call(lambda store: store.add_plan(row))
        await self._keeper.call(self.cache.refresh)

    async def _revise(self, link: AnyLink, stream: StreamTable) -> None:
        plan, last = self.cache.current(stream), self.cache.revision(stream)
        assert plan is not None  # noqa: S101 (run() sees to it)
        now, revised_s = self._clock.now(), None if last is None else last.at_s
        if planner.needs_renewal(plan, now) or self._is_ahead(plan, stream):
            await self._issue(
                link, stream, planner.renewed(plan, epoch=plan.epoch + 1, now_s=self._now)
            )
        elif planner.is_due(plan, stream, revised_s, now):
            await self._estimate(link, stream, plan)

    def _is_ahead(self, plan: Plan, stream: StreamTable) -> bool:
        """Say, also in the log, whether a plan is dated ahead: it is to be issued anew."""
        now_s = self._now
        if not planner.is_ahead(plan, now_s, self._config.intake.tolerance_s):
            return False
        text = (
            "plan %s: epoch %d is dated %s UTC, ahead of now: was the clock ahead, or is it behind?"
        )
        text += " It is issued anew, and what was reported under it counts"
        _log.warning(text, stream.name, plan.epoch, f"{utc(plan.issued_s):%Y-%m-%d %H:%M}")
        return True

    async def _estimate(self, link: AnyLink, stream: StreamTable, plan: Plan) -> None:
        """Estimate in a thread; store the revision, and any plan that it leads to with it.

        Not while an operator holds the plan.
        """
        if await self._keeper.call(lambda store: stream.id in store.plan_holds()):
            return
        read = partial(read_recent_counts, stream=stream, now_s=self._now)
        recent = await self._keeper.call(read)
        plans = dict(self.cache.plans(stream))
        found = await asyncio.to_thread(
            partial(revise, plan, stream, plans, recent, now_s=self._now)
        )
        if found is None:
            return
        revision, following = found
        if following is not None:
            following = await asyncio.to_thread(planner.proved, following)
        for reason in revision.reasons:
            _log.info("plan %s: %s", stream.name, reason)
        if (refused := planner.refused_by_default(stream, following or plan)) is not None:
            revision = replace(revision, reasons=(*revision.reasons, refused))  # as status shows
        row = RevisionRow(stream.id, revision.at_s, revision.to_json())
        for verdict in revision.screen:
            if verdict.rings:
                text = "; ".join((str(verdict), *verdict.warnings))
                _log.warning("plan %s: %s", stream.name, text)
        if following is not None:
            await self._issue(link, stream, following, row)
            return
        await self._sure()
        await self._keeper.call(lambda store: store.add_revision(row))
        self.cache.note_revision(row)

    async def _issue(
        self, link: AnyLink, stream: StreamTable, plan: Plan, revision: RevisionRow | None = None
    ) -> None:
        """Store first: a crash in between publishes the same plan at the next start (AGG-17)."""
        plan = replace(plan, store=self._rivals.store or None)
        row = PlanRow(stream.id, plan.epoch, plan.issued_s, plan.to_json())

        def store_it(store: Store) -> bool:
            held = revision is not None and stream.id in store.plan_holds()
            if held or stream.id in store.retired():
                return False  # an operator held the plan, or retired the stream, meanwhile
            try:
                store.add_plan(row, revision)
            except FencedError as exc:
                self.cache.refresh(store)
                self._tell_fenced(store, stream, exc)
                return False
            self.cache.refresh(store)
            return True

        await self._sure()
        if await self._keeper.call(store_it):
            if revision is not None:
                self.cache.note_revision(revision)
            survey = plan.survey_mechanism
            for told in epsilon_changes(self.cache.plans(stream))[-1:]:
                if told.epoch == plan.epoch:
                    _log.warning("plan %s%s", told, REFUSED if told.after > told.before else "")
            _log.info(
                "plan %s: epoch %d, θ = %d %s, %d of %d slots survey %d to %d",
                *(stream.name, plan.epoch, plan.theta, plan.unit, *plan.share),
                *(survey.low, survey.high),
            )
            if (refused := planner.refused_by_default(stream, plan)) is not None:
                _log.warning("plan %s: %s", stream.name, refused)
        await self._publish(link, stream)

    def _tell_fenced(self, store: Store, stream: StreamTable, fenced: FencedError) -> None:
        """Say whose plan came first: an operator's is in order, another service's is not."""
        newest = self.cache.current(stream)
        if newest is not None:
            log = store.audit(newest.issued_s - apart_s(self._config))
            by = [issued_by(row, self._config, stream) for row in log]
            if told := next((one for one in reversed(by) if one is not None), None):
                text = "plan %s: epoch %d, %s, came first: ours is not issued"
                _log.info(text, stream.name, newest.epoch, told)
                return
        _log.warning("plan %s: %s", stream.name, fenced)

    async def _publish(self, link: AnyLink, stream: StreamTable) -> None:
        """Let the newest stored plan be the retained one, if it is not."""
        if self._published.get(stream.id, b"") == self.cache.payload(stream):
            return
        await self._sure()
        # from here on what is retained is ours to put right, whoever leads by then
        while self._published.get(stream.id) != (payload := self.cache.payload(stream)):
            self._known.append(payload)
            await link.publish(self._topic(stream), payload, retain=True)
            self._published[stream.id] = payload
            await self._keeper.call(self.cache.refresh)

    async def _anew(self, stream: StreamTable, before: Plan | None, epoch: int) -> Plan:
        """Return the plan for one that may not stand; in a thread, as proving takes a while."""
        times = {"epoch": epoch, "now_s": self._now}
        raised = None if before is None else planner.raised(before, stream, **times)
        if before is None or raised is None:
            make = partial(planner.first_plan, self._config.fleet, stream, **times)
            return await asyncio.to_thread(make)
        text = "plan %s: devices refuse θ = %d %s, so it is raised to the least that they admit"
        _log.warning(text, stream.name, before.theta, before.unit)
        return await asyncio.to_thread(planner.proved, raised)

    def _topic(self, stream: StreamTable) -> str:
        return topic(self._config.fleet, "plan", stream.name)

    @property
    def _now(self) -> int:
        return int(self._clock.now())
