"""Finds a product at an address of the network: which of those that are known tells there, and how.

A host is asked for the pages of products, a broker is listened to on their topics; what came is
looked at for its form and dropped. Also what a broker kept: that a device tells is true of it, too.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass

from agent.errors import PortError
from agent.meters.port_names import source_of
from agent.meters.products import PRODUCTS, Product, product_of
from agent.meters.section import AccessTable
from agent.ports.open_port import open_port
from agent.ports.page_port import answer_to, pin_of
from agent.ports.payload import line_of
from agent.ports.port import GONE, NO_CONNECTION, NO_TELEGRAM_THERE, NOT_LET_IN
from agent.ports.topic_port import subscribed
from edge_ldp.service.mqtt import LinkLostError

ASKED_FOR = b'{"name": "local/edge-ldp"}'
PRESSED_S, AGAIN_S = 60.0, 2.0
_LETS_IN = "api/user"
_FEW = 8  # of one broker's devices are named
Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class AtAddress:
    """A product and its port; `pin`: of the certificate that it made itself."""

    product: Product
    port: str
    pin: str = ""
    wants_token: bool = False


async def at_address(
    host: str, access: AccessTable | None, say: Say, seconds: float
) -> AtAddress | None:
    """Return the product at `scheme://host[:port]`; None: none that is known, and `say` was told.

    Raises PortError where nobody is there, and where several are.
    """
    if host.startswith("mqtt"):
        return await _of_broker(host, access or AccessTable(), say, seconds)
    scheme, _, where = host.partition("://")
    schemes = ("http", "https") if scheme == "http" and ":" not in where else (scheme,)
    failed = list[PortError]()
    for one in schemes:
        try:
            if outcome := await _of_pages(f"{one}://{where}", access, say):
                return outcome
        except PortError as exc:
            failed.append(exc)
    if len(failed) == len(schemes):
        raise failed[0]
    return None


async def token_at(found: AtAddress, say: Say) -> str:
    """Return the token that a product gives while its button is pressed; raises PortError."""
    page = f"{found.port.partition('/api/')[0]}/{_LETS_IN}"
    source = source_of(page)
    assert source is not None  # noqa: S101 (the host of a page that answered)
    say("press the button of the device now, shortly: it gives a token to read with")
    refused: PortError | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout(PRESSED_S):
            while True:
                try:
                    token = json.loads(await answer_to(page, source, found.pin, ASKED_FOR))["token"]
                    if isinstance(token, str) and token.isalnum():
                        return token
                    break
                except (ValueError, LookupError, TypeError, RecursionError):
                    break
                except PortError as exc:
                    refused = exc
                    if exc.reason != NOT_LET_IN:
                        raise
                await asyncio.sleep(AGAIN_S)
    remedy = "setup again, and press it when told to"
    raise PortError(page, NOT_LET_IN, f"the device gave no token; {remedy}") from refused


async def _of_pages(host: str, access: AccessTable | None, say: Say) -> AtAddress | None:
    """Ask a host for each page of a product once."""
    scheme = host.partition("://")[0]
    for path in dict.fromkeys(one.path for one in PRODUCTS if one.scheme == scheme):
        port = f"{host}/{path}"
        say(f"asking for {port}")
        try:
            if product := await _told_at(port, access):
                return AtAddress(product, port)
        except PortError as exc:
            first = next(one for one in PRODUCTS if one.path == path)
            if exc.reason in (NO_CONNECTION, GONE):
                raise
            if exc.reason == NOT_LET_IN and scheme == "https" and not access:
                return await _own_certificate(first, port)
            if exc.reason != NO_TELEGRAM_THERE:
                say(f"  {exc.reason}; {first.remark or exc.remedy}, if it is a {first.name}")
    return None


async def _own_certificate(product: Product, port: str) -> AtAddress | None:
    """Return what a device is that made its certificate itself, by how it answers without token."""
    source = source_of(port)
    assert source is not None  # noqa: S101 (it was asked for)
    pin = await pin_of(port, source)
    try:
        if found := await _told_at(port, AccessTable(certificate=pin)):
            return AtAddress(found, port, pin)
    except PortError as exc:
        if exc.reason == NOT_LET_IN:
            return AtAddress(product, port, pin, wants_token=True)
        if exc.reason != NO_TELEGRAM_THERE:
            raise
    return None


async def _told_at(port: str, access: AccessTable | None) -> Product | None:
    source = source_of(port)
    assert source is not None  # noqa: S101 (made of a host and a product's path)
    with closing(await open_port(port, 0, access=access)) as opened:
        payload = await opened.read() or await opened.read() or b""
    return product_of(source, payload)


async def _of_broker(host: str, access: AccessTable, say: Say, seconds: float) -> AtAddress | None:
    """Listen to a broker on the topics of products, for so long; what it kept comes at once."""
    known = [one for one in PRODUCTS if one.scheme == "mqtt"]
    topics = list(dict.fromkeys(one.path.replace("NAME", "+") for one in known))
    topics[0:1] = ["+/sensor/+/state"]  # what a sensor is called is its owner's choice
    source = source_of(f"{host}/any")
    if source is None:
        return None
    found: dict[str, Product] = {}
    say(f"listening to {host} for {seconds:g} s, for topics of products that are known")
    link = await subscribed(host, source, access, topics)
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while True:
                    message = await link.receive()
                    product = product_of(source, line_of(message.payload))
                    if product and source_of(f"{host}/{message.topic}"):
                        found[message.topic] = product
    except LinkLostError as exc:
        raise PortError(host, GONE, exc.reason) from exc
    finally:
        await link.close()
    if len(found) > 1:
        named = "; ".join(f"{host}/{topic}, {found[topic].name}" for topic in sorted(found)[:_FEW])
        raise PortError(host, "has several meters", f"name one with --port: {named}")
    for topic, product in found.items():
        return AtAddress(product, f"{host}/{topic}")
    say("nothing of them came; a Tasmota tells every 300 s unless its console sets TelePeriod")
    return None
