"""The aggregator as a service: one link to the broker at a time, and what runs on it."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from aggregator.archive.directory import open_spool
from aggregator.config import AggregatorConfig
from aggregator.courier.courier import AnyLink, open_courier
from aggregator.courier.retained import read_retained
from aggregator.errors import RivalError, StoreError
from aggregator.intake.intake import Intake, status_topic, topics
from aggregator.intake.last_times import OUTRUN, LastTimes
from aggregator.intake.receipt_post import ReceiptSeal, post_receipts
from aggregator.intake.receipt_schedule import ReceiptSchedule
from aggregator.plans.publisher import PlanPublisher
from aggregator.plans.rivals import Rivals
from aggregator.plans.signing import PlanSeal
from aggregator.running.announcer import announce
from aggregator.running.certificates import CertificateWatch
from aggregator.running.election import Election, LeadLostError
from aggregator.store.contract import Store
from aggregator.store.rows import STOPPED, BeatRow, BeatTimes
from aggregator.store.store_thread import StoreThread
from aggregator.store.worker import ALONE, Worker
from edge_ldp.entropy import system_draw
from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.presence import ALONE_NAME, Presence, parse_presence
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.backoff import backoff_s
from edge_ldp.service.broker import LOGIN_REMEDY, is_refused, remedy_of
from edge_ldp.service.clock import Clock
from edge_ldp.service.health import DEGRADED, LINK, LOST, OK, combined
from edge_ldp.service.mqtt import Broker, LinkLostError, Message, RefusedError, open_link
from edge_ldp.service.tasks import task_group

BACKOFF_CAP_S = 30.0
STABLE_S = 10.0
REPEAT_S = 300.0
AUTH_WAIT_S = 30.0
DAY_S = 86_400
BETWEEN_S = 0.2  # steps of a chore
ROUND_S = 60.0
_RIGHTS = {"plan": "readwrite", "receipt": "write", "presence": "write", "sum": "write"}  # or read
BEAT_S = 30
GOODBYE_S = 1.0
_OUTRUN = "batches numbered above their slots (outrun): bring those agents to this version"
_AGES = (LINK, LOST, "report", "receipt", "commit")  # to the service manager, in this order
_log = logging.getLogger(__name__)
Chore: TypeAlias = Callable[[Store], bool]  # one step; whether there is more to do


class Service:
    """Everything that runs on the links to the broker, one link after the other.

    `chores`: what only who leads does with the store; `file`: the configuration's name.
    """

    def __init__(  # noqa: PLR0913 (what it works with)
        self,
        config: AggregatorConfig,
        password: str | None,
        clock: Clock,
        store: Store,
        seal: PlanSeal | None = None,
        *,
        worker: Worker = ALONE,
        chores: Sequence[Chore] = (),
        file: str = "",
    ) -> None:
        self._config = config
        self._clock = clock
        self._file = file
        self._chores = chores
        self._worker = worker
        self._broker = make_broker(config, password, worker)
        self._keeper = StoreThread(store)
        self._election = Election(worker.lock)
        self._due = ReceiptSchedule()
        self._last_times = LastTimes(clock)
        self._rivals = Rivals(os.urandom(8).hex(), int(time.time()), clock.rate)
        self._since_s = 0
        self._say_again = asyncio.Event()
        self._desk = PlanPublisher(
            config, clock, self._keeper, seal, self._election.sure, rivals=self._rivals
        )
        self._spool = open_spool(config, store, worker.name)
        desk = self._desk
        name = worker.name or ALONE_NAME
        self._presence_topic = topic(config.fleet, "presence", name)
        self._intake = Intake(
            config,
            self._keeper,
            self._due,
            desk.rules,
            last_times=self._last_times,
            spool=self._spool,
            rules_for=desk.rules_for,
            heed=self._hear,
        )
        self._receipt_seal = ReceiptSeal(clock.now, seal.signer if seal else None)
        self._is_linked = self._was_linked = False
        self._last_reason: str | None = None
        self._warned_s = 0.0
        self._certificates = CertificateWatch(config.devices)

    @property
    def health(self) -> str:
        """Return `ok`, or `degraded: ` and what is waited for: the broker, the store, the time."""
        link = OK if self._is_linked else f"{DEGRADED}link down"
        store = f"{DEGRADED}store held" if self._keeper.is_held else OK
        rivals = self._rivals.health(time.monotonic())
        outrun_s = self._last_times.ages.get(OUTRUN, DAY_S)
        outrun = f"{DEGRADED}{_OUTRUN}" if outrun_s < DAY_S else OK
        return combined([link, store, self._desk.health, rivals, outrun])

    @property
    def ages(self) -> dict[str, float]:
        """Return how long there is a link or none, and the seconds since what happened last.

        Of report, commit and receipt those that there were since the start.
        """
        ages = self._last_times.ages
        return {name: ages[name] for name in _AGES if name in ages}

    async def serve(self) -> None:
        """Serve until cancelled; raises StoreError when the store cannot be used any more.

        Raises RivalError where another aggregator was there before.
        """
        draw, attempt = system_draw(), 0
        loop = asyncio.get_running_loop()
        self._last_times.turn(LOST, LINK)
        beating = asyncio.create_task(self._beat(), name="heartbeat")
        try:
            await self._desk.load()
            while True:
                began = loop.time()
                lost = await self._one_link()
                self._rivals.lost(time.monotonic(), was_up=self._was_linked)
                if loop.time() - began > STABLE_S:
                    attempt = 0
                self._warn_of_loss(lost)
                refused = is_refused(lost.reason)
                wait_s = AUTH_WAIT_S if refused else backoff_s(attempt, draw, cap_s=BACKOFF_CAP_S)
                attempt += 1
                await asyncio.sleep(wait_s)
        except RivalError as exc:
            health = f"{DEGRADED}{exc.words}"
            self._keeper.leave(partial(_put_beat, row=self._heartbeat(health)))
            raise
        except asyncio.CancelledError:
            self._last_times.forget(LINK, LOST)
            self._keeper.leave(partial(_put_beat, row=self._heartbeat(STOPPED)))
            raise
        finally:
            beating.cancel()
            self._election.close()
            self._keeper.close()
            if self._spool is not None:
                self._spool.close()

    async def _beat(self) -> None:
        """Tell who reads the store that somebody serves it, and how that goes."""
        while True:
            row = self._heartbeat(self.health)
            with suppress(StoreError):  # whoever counts meets it too, and ends the service
                await self._keeper.call(partial(_put_beat, row=row))
            await self._certificates.look(time.monotonic())
            for _ in range(max(1, round(BEAT_S / max(1.0, self._clock.rate)))):
                await asyncio.sleep(1)
                if self.health != row.health:
                    break

    def _heartbeat(self, health: str) -> BeatRow:
        times = BeatTimes.of(self._last_times.times)._replace(valid_s=self._certificates.valid_s)
        return BeatRow(self._worker.name, int(self._clock.now()), health, times)

    def _warn_of_loss(self, lost: LinkLostError | RefusedError) -> None:
        """One line for a change, and one every few minutes while it lasts."""
        now = asyncio.get_running_loop().time()
        if lost.reason != self._last_reason or now - self._warned_s >= REPEAT_S:
            self._last_reason, self._warned_s = lost.reason, now
            remedy = remedy_for(lost, self._broker)
            why = f"{lost}: {remedy}" if remedy else str(lost)
            _log.warning("%s; connecting again, at most %.0f s apart", why, BACKOFF_CAP_S)

    async def _one_link(self) -> LinkLostError | RefusedError:
        """Connect and work until the link is lost; return how it was."""
        self._was_linked = False
        try:
            link = await open_courier(replace(self._broker, will=self._presence(online=False)))
        except LinkLostError as exc:
            return exc
        try:
            async with task_group() as group:
                group.create_task(self._intake.run(link), name="intake")
                group.create_task(self._work(link), name="planner")
                group.create_task(self._post(link), name="receipts")
                group.create_task(self._desk.follow(), name="plans")
                group.create_task(self._answer(link), name="presence")
        except BaseExceptionGroup as group_exc:
            return _how_lost(group_exc)
        finally:
            self._was_linked, self._is_linked = self._is_linked, False
            self._last_times.turn(LOST, LINK)
            try:
                await self._say_present(link, online=False)
                await self._election.resign()
            finally:
                await link.close()
        raise AssertionError("the tasks of a link end only by an error")

    async def _work(self, link: AnyLink) -> None:
        # beside the intake: the broker's answer stands behind the backlog of our session
        await link.subscribe(topics(self._config.fleet, self._config.broker.share))
        self._last_reason, self._is_linked = None, True
        self._rivals.linked(time.monotonic())
        self._last_times.turn(LINK, LOST)
        self._certificates.link_s = link.valid_until_s
        _log.info("connected to %s, MQTT %s", self._broker.endpoint, link.protocol)
        self._since_s = int(self._clock.now())
        await self._listen_for_others(link)
        await self._say_present(link, online=True)
        while True:
            await self._election.won()
            try:
                async with task_group() as group:
                    group.create_task(self._election.held(), name="lead")
                    group.create_task(self._lead(link), name="plans")
                    group.create_task(do_chores(self._keeper, self._chores), name="chores")
                    if (table := self._config.announce) is not None:
                        sums = announce(link, self._file, table, self._clock)
                        group.create_task(sums, name="sums")
                    if self._election.is_shared:
                        group.create_task(self._receive_statuses(), name="statuses")
            except* LeadLostError:
                _log.warning("leads no more: another worker issues plans")

    async def _listen_for_others(self, link: AnyLink) -> None:
        """Hear what stands where we publish, and whoever else publishes there."""
        try:
            await link.subscribe([topic(self._config.fleet, "plan", "+"), self._presence_topic])
        except RefusedError as exc:
            told = "%s: another aggregator would not be noticed; %s"
            _log.warning(told, exc, remedy_for(exc, self._broker))

    def _presence(self, *, online: bool) -> Message:
        since_s, own = self._since_s if online else int(self._clock.now()), self._rivals
        told = Presence(online, since_s, process=own.process, began_s=own.began_s)
        return Message(self._presence_topic, told.to_json(), retain=True)

    def _hear(self, at: str, payload: bytes) -> None:
        """Take in what stands where we publish; raises RivalError."""
        if at != self._presence_topic:
            self._desk.hear(at, payload)
            return
        with suppress(MessageError):
            if self._rivals.hear(parse_presence(payload), time.monotonic()):
                self._say_again.set()

    async def _answer(self, link: AnyLink) -> None:
        """Say again that we are there, so that who came later hears it."""
        while True:
            await self._say_again.wait()
            self._say_again.clear()
            _log.error("another aggregator ran under this name, and began later than this one")
            await self._say_present(link, online=True)
            await asyncio.sleep(1)

    async def _say_present(self, link: AnyLink, *, online: bool) -> None:
        """Say that we are there, or go; a broker whose access list is older refuses it."""
        message = self._presence(online=online)
        try:
            async with asyncio.timeout(GOODBYE_S):
                await link.publish(message.topic, message.payload, retain=True)
        except RefusedError as exc:
            if online:
                told = "%s: devices wait longer than they must; %s"
                _log.warning(told, exc, remedy_for(exc, self._broker))
        except (TimeoutError, LinkLostError):
            return  # whoever reads sees the link end

    async def _lead(self, link: AnyLink) -> None:
        """Do what only one worker does."""
        if self._election.is_shared:
            _log.info("leads: issues plans, hears statuses")
        fleet = self._config.fleet
        names = [topic(fleet, "plan", stream.name) for stream in self._config.streams]

        async def retained() -> dict[str, bytes] | None:
            try:
                return await read_retained(self._broker, names)
            except LinkLostError as exc:
                _log.warning("what is retained cannot be read: %s", exc)
                return None

        await self._desk.run(link, await read_retained(self._broker, names), retained)

    async def _receive_statuses(self) -> None:
        """Take in statuses by a link without a session: what is retained comes at its start."""
        name = f"{self._broker.client_id}-status"
        link = await open_link(replace(self._broker, client_id=name, session_s=0))
        try:
            async with task_group() as group:
                group.create_task(self._intake.run(link), name="intake of statuses")
                await link.subscribe([status_topic(self._config.fleet)])
        finally:
            await link.close()

    async def _post(self, link: AnyLink) -> None:
        await post_receipts(
            link,
            self._keeper,
            self._due,
            self._config.fleet,
            self._config.intake.receipts_per_s,
            last_times=self._last_times,
            seal=self._receipt_seal,
            turns=self._worker.turns,
            may_post=lambda: self._rivals.is_sure(time.monotonic()),
        )


def _put_beat(store: Store, row: BeatRow) -> None:
    store.beat(row)


def make_broker(config: AggregatorConfig, password: str | None, worker: Worker = ALONE) -> Broker:
    """Return how to connect: a durable session, and every message acknowledged by us."""
    table = config.broker
    return replace(
        table.named(worker.names(config.client_id), password),
        protocol=table.protocol if table.share is None else "5",
        session_s=table.session_days * DAY_S,
        manual_ack=True,
        window=table.window,
    )


def remedy_for(lost: LinkLostError | RefusedError, broker: Broker) -> str:
    """Return what may mend it: of a right that is missing, the line of the access list."""
    if isinstance(lost, RefusedError):
        lines = [_right(one.split("/")) for one in lost.topic.split(", ") if one.count("/") > 1]
        name = broker.username or "the aggregator's user name"
        return f"the broker's access list lacks, under `user {name}`: {', '.join(lines)}"
    remedy = remedy_of(lost.reason, broker)
    return f"{remedy}, then restart" if remedy == LOGIN_REMEDY else remedy


def _right(at: Sequence[str]) -> str:
    """Return the line of an access list that gives a topic of ours."""
    if at[-1] == "config":  # of a sensor, for Home Assistant
        return f"topic write {'/'.join(at[:-2])}/+/config"
    return f"topic {_RIGHTS.get(at[-2], 'read')} {'/'.join(at[:-1])}/+"


def _how_lost(group: BaseExceptionGroup) -> LinkLostError | RefusedError:
    """Return the link's error; anything else in the group is raised by itself."""
    found = list(_errors(group))
    for exc in found:
        if not isinstance(exc, LinkLostError | RefusedError):
            raise exc
    lost = found[0]
    assert isinstance(lost, LinkLostError | RefusedError)  # noqa: S101 (just seen)
    return lost


def _errors(group: BaseExceptionGroup) -> Iterator[BaseException]:
    """Yield what a group holds, and the groups in it."""
    for exc in group.exceptions:
        if isinstance(exc, BaseExceptionGroup):
            yield from _errors(exc)
        else:
            yield exc


async def do_chores(keeper: StoreThread, chores: Sequence[Chore]) -> None:
    """Do each chore until nothing is left of it, again and again, until cancelled."""
    while True:
        for chore in chores:
            while await keeper.call(chore):  # noqa: ASYNC110 (steps, nothing is waited for)
                await asyncio.sleep(BETWEEN_S)
        await asyncio.sleep(ROUND_S)
