"""The aggregator as a service: one link to the broker at a time, and what runs on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from aggregator.due import Due
from aggregator.shell.archive import open_spool
from aggregator.shell.intake import Intake, topics
from aggregator.shell.keeper import Keeper
from aggregator.shell.plan_desk import PlanDesk
from aggregator.shell.receipt_post import post_receipts
from edge_ldp.backoff import backoff_s
from edge_ldp.entropy import system_draw
from edge_ldp.health import DEGRADED, OK, combined
from edge_ldp.messages import topic
from edge_ldp.shell.mqtt import Broker, LinkLostError, RefusedError, open_link

if TYPE_CHECKING:
    from aggregator.config import AggregatorConfig
    from aggregator.shell.plan_seal import PlanSeal
    from aggregator.shell.store import Store
    from edge_ldp.shell.clock import Clock
    from edge_ldp.shell.mqtt import Link

BACKOFF_CAP_S = 30.0
STABLE_S = 10.0
REPEAT_S = 300.0
RETAINED_WAIT_S = 1.0
AUTH_WAIT_S = 30.0
AUTH_REASONS = ("not authorized", "bad user name or password")
DAY_S = 86_400
_log = logging.getLogger(__name__)


class Service:
    """Everything that runs on the links to the broker, one link after the other."""

    def __init__(
        self,
        config: AggregatorConfig,
        password: str | None,
        clock: Clock,
        store: Store,
        seal: PlanSeal | None = None,
    ) -> None:
        self._config = config
        self._broker = make_broker(config, password)
        self._keeper = Keeper(store)
        self._due = Due()
        self._desk = PlanDesk(config, clock, self._keeper, seal)
        self._spool = open_spool(config, store)
        self._intake = Intake(config, self._keeper, self._due, self._desk.rules, self._spool)
        self._is_linked = False
        self._said: str | None = None
        self._said_s = 0.0

    @property
    def health(self) -> str:
        """Return `ok`, or `degraded: ` and what is waited for: the broker, the store, or both."""
        link = OK if self._is_linked else f"{DEGRADED}link down"
        store = f"{DEGRADED}store held" if self._keeper.is_held else OK
        return combined([link, store])

    async def serve(self) -> None:
        """Serve until cancelled; raises StoreError when the store cannot be used any more."""
        draw, attempt = system_draw(), 0
        loop = asyncio.get_running_loop()
        try:
            await self._desk.load()
            while True:
                began = loop.time()
                lost = await self._one_link()
                if loop.time() - began > STABLE_S:
                    attempt = 0
                self._say(lost)
                refused = lost.reason in AUTH_REASONS
                wait_s = AUTH_WAIT_S if refused else backoff_s(attempt, draw, cap_s=BACKOFF_CAP_S)
                attempt += 1
                await asyncio.sleep(wait_s)
        finally:
            self._keeper.close()
            if self._spool is not None:
                self._spool.close()

    def _say(self, lost: LinkLostError | RefusedError) -> None:
        """One line for a change, and one every few minutes while it lasts."""
        now = asyncio.get_running_loop().time()
        if lost.reason != self._said or now - self._said_s >= REPEAT_S:
            self._said, self._said_s = lost.reason, now
            _log.warning("%s; connecting again, at most %.0f s apart", lost, BACKOFF_CAP_S)

    async def _one_link(self) -> LinkLostError | RefusedError:
        """Connect and work until the link is lost; return how it was."""
        try:
            link = await open_link(self._broker)
        except LinkLostError as exc:
            return exc
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._intake.run(link), name="intake")
                group.create_task(self._plan(link), name="planner")
                group.create_task(self._post(link), name="receipts")
        except BaseExceptionGroup as group_exc:
            return _how_lost(group_exc)
        finally:
            self._is_linked = False
            await link.close()
        raise AssertionError("the tasks of a link end only by an error")

    async def _plan(self, link: Link) -> None:
        # beside the intake: the broker's answer stands behind the backlog of our session
        await link.subscribe(topics(self._config.fleet))
        self._said, self._is_linked = None, True
        _log.info("connected to %s, MQTT %s", self._broker.endpoint, link.protocol)
        fleet = self._config.fleet
        names = [topic(fleet, "plan", stream.name) for stream in self._config.streams]
        await self._desk.run(link, await read_retained(self._broker, names, RETAINED_WAIT_S))

    async def _post(self, link: Link) -> None:
        rate = self._config.intake.receipts_per_s
        await post_receipts(link, self._keeper, self._due, self._config.fleet, rate)


def make_broker(config: AggregatorConfig, password: str | None) -> Broker:
    """Return how to connect: a durable session, and every message acknowledged by us."""
    table = config.broker
    return Broker(
        host=table.host,
        port=table.use_port,
        client_id=config.client_id,
        username=table.username,
        password=password,
        tls=table.use_tls,
        ca_file=table.ca_file,
        cert_file=table.cert_file,
        key_file=table.key_file,
        crl_file=table.crl_file,
        protocol=table.protocol,
        keepalive_s=table.keepalive_s,
        session_s=table.session_days * DAY_S,
        manual_ack=True,
        window=table.window,
    )


async def read_retained(broker: Broker, names: Sequence[str], wait_s: float) -> dict[str, bytes]:
    """Return what the broker retains at each topic, by a connection of its own.

    It waits for all of them or `wait_s`; our session's own backlog would stand in the way.
    """
    link = await open_link(
        replace(broker, client_id=f"{broker.client_id}-look", session_s=0, manual_ack=False)
    )
    found: dict[str, bytes] = {}
    try:
        await link.subscribe(names)
        async with asyncio.timeout(wait_s):
            while len(found) < len(names):
                message = await link.receive()
                found[message.topic] = message.payload
    except TimeoutError:
        pass
    except RefusedError as exc:
        _log.warning("%s: retained plans cannot be read; check the access list", exc)
    finally:
        await link.close()
    return found


def _how_lost(group: BaseExceptionGroup) -> LinkLostError | RefusedError:
    """Return the link's error; anything else in the group is raised by itself."""
    for exc in group.exceptions:
        if not isinstance(exc, LinkLostError | RefusedError):
            raise exc
    found = group.exceptions[0]
    assert isinstance(found, LinkLostError | RefusedError)  # noqa: S101 (just seen)
    return found
