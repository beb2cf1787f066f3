"""What `check --live` of either service tries: a verdict on each part, and what to do about it.

Here is the way to the broker (name, connection, TLS, login), which is the same for both.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from edge_ldp.service.broker import Broker, LinkLostError, is_refused, remedy_of
from edge_ldp.service.mqtt import Link, open_link

Outcome = Literal["ok", "fails", "untried"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What one part of it all is like, and what to do where it fails."""

    what: str
    outcome: Outcome
    told: str
    remedy: str = ""

    def text(self) -> str:
        """Return it as a line, and another for the remedy."""
        line = f"{self.outcome:<8}{self.what:<15} {self.told}\n"
        return line + (f"{'':<24}→ {self.remedy}\n" if self.remedy else "")

    def fact(self) -> dict[str, str]:
        """Return it for machines."""
        return asdict(self)


def untried(parts: Sequence[str], why: str) -> list[Finding]:
    """Return a verdict on each part that was left out."""
    return [Finding(part, "untried", why) for part in parts]


def own_name() -> str:
    """Return a client id that nobody has: a service that may run keeps its session."""
    return f"edge-ldp-check-{os.urandom(8).hex()}"


async def try_broker(
    broker: Broker, parts: Sequence[str], use: Callable[[Link], Awaitable[list[Finding]]]
) -> list[Finding]:
    """Return the verdicts from the broker's name to those of `use`; after a failure untried ones.

    `parts`: all that `use` tells of, in this order; it is called with the link once there is one.
    """
    way = ["name", "connection", *(["TLS"] if broker.tls else []), "login"]
    found = [await _resolve(broker)]
    if found[0].outcome == "ok":
        link, reached = await _try_login(broker)
        found += reached
        if link is not None:
            try:
                found += await use(link)
            finally:
                await link.close()
    failed = next((one.what for one in found if one.outcome == "fails"), "")
    known = {one.what: one for one in found}
    return [
        known.get(part) or Finding(part, "untried", f"{failed} fails, see above")
        for part in (*way, *parts)
    ]


async def _resolve(broker: Broker) -> Finding:
    loop = asyncio.get_running_loop()
    try:
        await loop.getaddrinfo(broker.host, broker.port, type=socket.SOCK_STREAM)
    except OSError as exc:
        remedy = remedy_of(exc.strerror or "name or service not known", broker)
        return Finding("name", "fails", f"{broker.host}: {exc.strerror}", remedy)
    except UnicodeError:
        return Finding("name", "fails", f"{broker.host}: no host can have this name", "write it so")
    return Finding("name", "ok", broker.host)


async def _try_login(broker: Broker) -> tuple[Link | None, list[Finding]]:
    """Return a link, or None, and the verdicts on connection, TLS (where it is on) and login."""
    who = f"as {broker.username}" if broker.username else "without a user name"
    plain = "" if broker.tls else ", no TLS"
    reached = Finding("connection", "ok", f"{broker.endpoint}{plain}")
    secured = [Finding("TLS", "ok", "the broker's certificate is verified")] if broker.tls else []
    try:
        link = await open_link(broker)
    except LinkLostError as exc:
        remedy = remedy_of(exc.reason, broker)
        if is_refused(exc.reason):
            failed = Finding("login", "fails", f"{who}: {exc.reason}", remedy)
            return None, [reached, *secured, failed]
        told = f"{broker.endpoint}: {exc.reason}"
        if broker.tls and await _is_reached(broker):
            return None, [reached, Finding("TLS", "fails", told, remedy)]
        return None, [Finding("connection", "fails", told, remedy)]
    reached = replace(reached, told=f"{reached.told}, MQTT {link.protocol}")
    return link, [reached, *secured, Finding("login", "ok", who)]


async def _is_reached(broker: Broker) -> bool:
    """Say whether anything listens there, so that what failed was said over a connection."""
    try:
        async with asyncio.timeout(broker.connect_timeout_s):
            _, writer = await asyncio.open_connection(broker.host, broker.port)
    except OSError:  # a TimeoutError is one
        return False
    writer.close()
    return True
