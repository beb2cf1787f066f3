"""A topic of the household's own broker as a port: each message is a telegram and then silence.

It subscribes and never publishes. What the broker kept is never a reading: nobody knows of when it
is. Source: docs/faults.md, SER-41, SER-42.
"""

import asyncio
from collections.abc import Sequence

from agent.errors import PortError
from agent.meters.port_names import Source
from agent.meters.section import AccessTable
from agent.ports.letting_in import NoAnswerError, secret_in
from agent.ports.payload import MOST_BYTES, is_web_page, line_of
from agent.ports.port import GONE, NO_CONNECTION, NOT_LET_IN, QUIET, now_s
from edge_ldp.service.mqtt import Broker, Link, LinkLostError, RefusedError, open_link

_REACH = "is the broker on, its address right, and in this network?"
_TOPIC = "is the topic right, and does anything publish there? docs/meters.md has those of products"
_ASKED = "nothing is sent to a meter through a topic"


class TopicPort:
    """A subscription, made by `open_topic`; read by one task at a time."""

    def __init__(self, path: str, link: Link, *, silence_s: float, quiet_s: float) -> None:
        self.path = path
        self._link = link
        self._silence_s = silence_s
        self._quiet_s = quiet_s
        self._received_s = now_s()
        self._came: list[bytes | None] = [None]  # a line begins

    async def read(self, wait_s: float | None = None) -> bytes | None:
        """Return a message's bytes, None after them, and None after each silence without any.

        Raises PortError when the broker is gone, or nothing came for too long.
        """
        if self._came:
            return self._came.pop(0)
        try:
            async with asyncio.timeout(self._silence_s if wait_s is None else wait_s):
                message = await self._link.receive()
        except TimeoutError as exc:
            if now_s() - self._received_s > self._quiet_s:
                raise PortError(self.path, QUIET, _TOPIC) from exc
            return None
        except LinkLostError as exc:
            raise PortError(self.path, GONE, f"{exc.reason}; {_REACH}") from exc
        payload = message.payload
        if message.retain or len(payload) > MOST_BYTES or is_web_page(payload):
            return None
        self._received_s = now_s()
        self._came.append(None)
        return line_of(payload)

    def write(self, data: bytes) -> bool:  # noqa: ARG002 (a port has it)
        """Raise PortError: nothing is ever published here."""
        raise PortError(self.path, "takes nothing", _ASKED)

    def set_baud(self, baud: int) -> None:
        """Do nothing: a topic has no speed."""

    def close(self) -> None:
        """Leave the broker without waiting: it has nothing of ours."""
        self._link.leave()


async def open_topic(
    path: str, source: Source, access: AccessTable, *, silence_s: float, quiet_s: float
) -> TopicPort:
    """Connect and subscribe; raises PortError(path, reason, remedy) when that cannot be."""
    link = await subscribed(path, source, access, [source.path])
    return TopicPort(path, link, silence_s=silence_s, quiet_s=quiet_s)


async def subscribed(path: str, source: Source, access: AccessTable, topics: Sequence[str]) -> Link:
    """Return a link to a source's broker that hears of these topics; raises PortError."""
    try:
        password = secret_in(access.password_file) if access.password_file else None
    except NoAnswerError as exc:
        raise PortError(path, exc.reason, exc.remedy) from None
    broker = Broker(
        host=source.host,
        port=source.port,
        client_id="",  # a name of the broker's own making: nothing is kept for us
        username=access.username,
        password=password,
        tls=source.is_encrypted,
        ca_file=access.ca_file,
    )
    try:
        link = await open_link(broker)
    except LinkLostError as exc:
        raise PortError(path, NO_CONNECTION, f"{exc.reason}; {_REACH}") from exc
    try:
        await link.subscribe(topics)
    except (LinkLostError, RefusedError) as exc:
        await link.close()
        raise PortError(path, NOT_LET_IN, f"{exc.reason}; {_TOPIC}") from exc
    except BaseException:
        await link.close()
        raise
    return link
