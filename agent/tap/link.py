"""The tap's own link: to the household's broker, and to no other; readings live here for a moment.

Before a reading is said the peer's address must be one of this machine or of a local network, and
not that of the broker that reports go to. Nothing waits here but the newest telegram.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from ipaddress import ip_address

from agent.config import AgentConfig, TapTable
from agent.config.tap_faults import is_local_address
from agent.meters.reading import Telegram
from agent.tap import messages
from edge_ldp.entropy import system_draw
from edge_ldp.protocol.group_month import GroupMonth
from edge_ldp.service.backoff import backoff_s, unhurried
from edge_ldp.service.mqtt import Broker, Link, LinkLostError, Message, RefusedError, open_link

OK = "ok"
STABLE_S = 60.0
Peer = tuple[str, int]
log = logging.getLogger("edge-ldp.agent")


class TapLink:
    """A link that takes a LocalMessage and nothing else."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def send(self, message: messages.LocalMessage) -> None:
        """Publish at QoS 0; raises LinkLostError, and TypeError for whatever is no LocalMessage."""
        if type(message) is not messages.LocalMessage:
            raise TypeError("only a LocalMessage goes to the tap")
        await self._link.publish(message.topic, message.text.encode(), retain=message.retain, qos=0)


class Tap:
    """Publishes the newest readings of a meter to the household's own broker, until cancelled.

    `outgoing_peer` says to whom the outgoing link speaks, or None while nobody knows; `month` what
    the fleet tells of this home's group.
    """

    def __init__(
        self,
        config: AgentConfig,
        password: str | None,
        outgoing_peer: Callable[[], Peer | None],
        month: Callable[[], GroupMonth | None] = lambda: None,
    ) -> None:
        self._month = month
        self._compared = [one.name for one in config.streams] if config.device.group else []
        self._told: tuple[messages.LocalMessage, ...] = ()
        assert config.tap is not None  # noqa: S101 (made for a [tap] table only)
        self._table: TapTable = config.tap
        self._device = config.device.id
        self._outgoing = (config.broker.host, config.broker.use_port)
        self._outgoing_peer = outgoing_peer
        self._broker = _broker(self._table, self._device, password)
        self._newest: dict[str, messages.LocalReading] = {}
        self._known: set[str] = set()
        self._draw = unhurried(system_draw())
        self._last_line = ""
        self.health = "degraded: tap link down"

    def offer(self, telegram: Telegram) -> None:
        """Take a telegram; of each quantity the newest reading stays until it is sent."""
        for reading in messages.local_readings(telegram):
            self._newest[reading.quantity] = reading

    async def run(self) -> None:
        """Keep a link, and publish every interval what is new."""
        attempt = 0
        while True:
            begun_s = asyncio.get_running_loop().time()
            try:
                await self._check_address()
                await self._session()
            except (LinkLostError, RefusedError) as exc:
                self.health = "degraded: tap link down"
                self._newest.clear()
                self._log_once(f"tap: {exc}; trying again")
            if asyncio.get_running_loop().time() - begun_s > STABLE_S:
                attempt = 0
            await asyncio.sleep(backoff_s(attempt, self._draw))
            attempt += 1

    async def _session(self) -> None:
        link = await open_link(self._broker)
        out = TapLink(link)
        try:
            self._check_peer(link.peer)
            await out.send(messages.availability(self._device, messages.ONLINE))
            self._known.clear()
            self._told = ()
            self.health = OK
            self._log_once(f"tap: raw readings go to {self._broker.endpoint}, as [tap] asks")
            while True:
                await self._publish(out)
                await asyncio.sleep(self._table.interval_s)
                self._check_peer(link.peer)
        finally:
            await _leave(out, self._device)
            await link.close()

    async def _publish(self, out: TapLink) -> None:
        newest, self._newest = self._newest, {}
        for quantity in newest.keys() - self._known:
            table, reading = self._table, newest[quantity]
            await out.send(
                messages.discovery(self._device, reading, table.discovery, table.interval_s)
            )
            self._known.add(quantity)
        for message in messages.states(self._device, newest.values()):
            await out.send(message)
        told = messages.month_messages(
            self._device, self._compared, self._month(), self._table.discovery
        )
        for message in told if told != self._told else ():
            await out.send(message)
        self._told = told

    async def _check_address(self) -> None:
        """Look up the tap's host, and the outgoing broker's: they must not be the same."""
        table = self._table
        found = await _addresses(table.host, table.use_port)
        if not found:
            raise LinkLostError(self._broker.endpoint, "its name does not resolve")
        forbidden = await _addresses(*self._outgoing)
        for peer in found:
            self._check_peer(peer)
            if peer in forbidden:
                raise LinkLostError(self._broker.endpoint, _SAME)

    def _check_peer(self, peer: Peer | None) -> None:
        """Raise LinkLostError unless a peer may see readings."""
        if peer is None:
            raise LinkLostError(self._broker.endpoint, "gone")
        if peer == self._outgoing_peer():
            raise LinkLostError(self._broker.endpoint, _SAME)
        address = ip_address(peer[0].partition("%")[0])
        if not (self._table.allow_beyond_lan or is_local_address(address)):
            raise LinkLostError(
                self._broker.endpoint, f"{peer[0]} is not of a local network: nothing is sent"
            )

    def _log_once(self, line: str) -> None:
        if line != self._last_line:
            log.warning("%s", line)
            self._last_line = line


_SAME = "it is the broker that reports go to: nothing is sent"


async def _leave(out: TapLink, device: str) -> None:
    try:
        async with asyncio.timeout(1):
            await out.send(messages.availability(device, messages.OFFLINE))
    except (LinkLostError, RefusedError, TimeoutError):
        return


async def _addresses(host: str, port: int) -> set[Peer]:
    """Return every address and port that a host's name stands for; empty when it has none."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):  # the second for what can be no name
        return set()
    return {(str(address[0]), int(address[1])) for *_, address in found}


def _broker(table: TapTable, device: str, password: str | None) -> Broker:
    return Broker(
        host=table.host,
        port=table.use_port,
        client_id=f"edge-ldp-tap-{device}",
        username=table.username,
        password=password,
        tls=table.tls,
        ca_file=table.ca_file,
        will=Message(messages.availability_topic(device), messages.OFFLINE.encode(), retain=True),
    )
