"""Products that tell their readings by a page or a topic: what each sends gives its readings.

Payloads are rebuilt from the makers' documents. The table of docs/meters.md is made of this one:
`python -m tests.agent.ports.test_sources` prints it.
"""

import asyncio
import csv
import hashlib
import json
import ssl
import sys
import tomllib
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from agent.config import parse_meter
from agent.meters.port_names import source_of
from agent.meters.reading import Telegram
from agent.ports.meters import hear, make_meter
from agent.ports.open_port import open_meter
from edge_ldp.service.mqtt import Broker, open_link
from firmware_stubs.meters import p1_telegram
from tests.agent.ports.page_server import page_server
from tests.integration.certificates import Authority
from tests.integration.conftest import RealBroker, broker

__all__ = ["broker"]  # a fixture

SOURCES = Path(__file__).parent / "sources"
PAGE = Path(__file__).parents[3] / "docs" / "meters.md"
P1 = p1_telegram(meter_id="E0043007052870318", time_s=1_800_000_000, import_wh=1000, power_w=378)
P1_SHOWN = {"power": 378, "energy_import": 1000}


class Product(NamedTuple):
    """One row: where a product tells what it does, and what that means."""

    product: str
    port: str
    file: str
    keys: str
    right: str

    @property
    def payload(self) -> bytes:
        """What it sends."""
        return P1 if self.file == "-" else (SOURCES / self.file).read_bytes()


def products() -> list[Product]:
    with (Path(__file__).parent / "sources.csv").open() as table:
        return [Product(**row) for row in csv.DictReader(table)]


def table() -> str:
    """Return the table of docs/meters.md."""
    lines = ["| product | `port` | what it tells |", "| --- | --- | --- |"]
    lines += [f"| {one.product} | `{one.port}` | {_told(one)} |" for one in products()]
    return "\n".join(lines)


def _told(one: Product) -> str:
    fields = tomllib.loads(one.keys).get("fields", [])
    return (
        "a telegram"
        if not fields
        else "; ".join(
            f"`{field['field']}` ({field['quantity']}, {field['unit']})" for field in fields
        )
    )


@pytest.mark.integration
@pytest.mark.parametrize("product", products(), ids=lambda one: one.product)
async def test_SER_37_SER_41_a_product_gives_its_readings(
    product: Product, broker: RealBroker, tmp_path: Path
) -> None:
    source = source_of(product.port)
    assert source is not None
    tls, pin = own_certificate(tmp_path)
    async with page_server(product.payload, tls=tls if source.is_encrypted else None) as page:
        port = page.port if source.is_asked else broker.port
        keys = [f'port = "{product.port.replace("HOST", f"127.0.0.1:{port}")}"', product.keys]
        if "protocol" not in product.keys:
            keys.append('protocol = "lines"')
        if source.is_encrypted:
            keys.append(f'access.certificate = "{pin}"')
        table = parse_meter("\n".join(keys), "agent.toml")
        with closing(await open_meter(table)) as opened:
            if not source.is_asked:
                await publish(broker, source.path, product.payload)
            shown = await first_shown(opened, table)
    due = json.loads(product.right) if product.right else P1_SHOWN
    assert {name: shown[name] for name in due} == due


def own_certificate(directory: Path) -> tuple[ssl.SSLContext, str]:
    """Return the TLS of a device that made its certificate itself, and its pin."""
    pair = Authority(directory / "own").issue("appliance", "appliance")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return context, "sha256:" + hashlib.sha256(pair.made.public_bytes(Encoding.DER)).hexdigest()


async def publish(broker: RealBroker, topic: str, payload: bytes) -> None:
    link = await open_link(Broker(host="127.0.0.1", port=broker.port, client_id="product"))
    await link.publish(topic, payload)
    await link.close()


async def first_shown(opened: Any, table: Any) -> dict[str, int]:
    meter = make_meter(table)
    async with asyncio.timeout(60):
        while True:
            for event in (await hear(opened, meter))[1]:
                if isinstance(event, Telegram):
                    return dict(event.shown)


def test_the_page_has_the_table_of_products() -> None:
    assert table() in PAGE.read_text(), "python -m tests.agent.ports.test_sources prints it"


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
