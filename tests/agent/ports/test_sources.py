"""Products that tell their readings by a page or a topic: what each sends gives its readings.

What they send is their twins', written apart from the agent. The table of docs/meters.md is made of
the agent's: `python -m tests.agent.ports.test_sources` prints it.
"""

import asyncio
import hashlib
import json
import re
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from agent.config import parse_meter
from agent.meters.port_names import source_of
from agent.meters.products import PRODUCTS, Product, product_of
from agent.meters.reading import Telegram
from agent.ports.findings import Found, toml_lines
from agent.ports.meters import make_meter
from agent.ports.open_port import open_meter
from agent.ports.payload import line_of
from agent.ports.probe import probe
from firmware_stubs.meters.products import TWINS
from firmware_stubs.meters.telegram import p1_telegram
from firmware_stubs.meters.twin import PageTwin, TopicTwin
from tests.agent.meters.samples import heard
from tests.agent.samples import make_plan
from tests.edge_ldp.laws import draw_from
from tests.integration.certificates import Authority
from tests.integration.conftest import RealBroker, broker

__all__ = ["broker"]  # a fixture

PAGE = Path(__file__).parents[3] / "docs" / "meters.md"
TOKEN = "0123456789ABCDEF"  # noqa: S105 (of a twin)
BY_TWIN = {
    "homewizard-v1": "HomeWizard P1 (v1)",
    "homewizard-v2": "HomeWizard P1 (v2)",
    "esphome": "ESPHome `dsmr`, its telegram",
    "shelly-gen2": "Shelly Pro 3EM and others of Gen2 and later",
    "shelly-gen1": "Shelly 3EM (Gen1)",
    "tasmota": "Tasmota, a plug or Teleinfo head",
    "tasmota-sml": "Tasmota, an SML head (names as in its script)",
    "ams-reader": "AMS reader (JSON)",
    "zigbee2mqtt": "zigbee2mqtt",
}
VALUES = [(378, 0), (0, 417), (17_250, 0), (1, 0)]  # drawn and given, in W
IMPORT_WH, EXPORT_WH = 15_637_234, 1_500


def meter_says(show: Any, power_w: int, export_power_w: int) -> bytes:
    said: bytes = show(
        meter_id="E0043007052870318",
        time_s=1_800_000_000,
        import_wh=IMPORT_WH,
        power_w=power_w,
        export_wh=EXPORT_WH,
        export_power_w=export_power_w,
    )
    return said


def table() -> str:
    """Return the table of docs/meters.md."""
    lines = ["| product | `port` | what it tells |", "| --- | --- | --- |"]
    lines += [f"| {one.name} | `{one.port}` | {_told(one)} |" for one in PRODUCTS]
    return "\n".join(lines)


def _told(one: Product) -> str:
    told = dict[str, list[str]]()
    for place, quantity, unit, _ in one.words:
        told.setdefault(f"`{place}`, {unit}", []).append(quantity)
    return "; ".join(f"{at}: {', '.join(which)}" for at, which in told.items()) or "a telegram"


@cache
def own_certificate(directory: Path) -> tuple[ssl.SSLContext, str]:
    """Return the TLS of a device that made its certificate itself, and its pin."""
    pair = Authority(directory / "own").issue("appliance", "appliance")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert, pair.key)
    return context, "sha256:" + hashlib.sha256(pair.made.public_bytes(Encoding.DER)).hexdigest()


@asynccontextmanager
async def twin_at(
    name: str, broker_port: int, directory: Path
) -> AsyncIterator[tuple[PageTwin | TopicTwin, tuple[str, ...]]]:
    """Give a product that is there, and what lets us in."""
    twin, access = TWINS[name], tuple[str, ...]()
    made: PageTwin | TopicTwin = TopicTwin(twin, "127.0.0.1", broker_port)
    if twin.path:
        tls, pin = own_certificate(directory) if twin.gives_token else (None, "")
        made = PageTwin(twin, "127.0.0.1", 0, tls)
        if twin.gives_token:
            made.tokens.add(TOKEN)
            (directory / "token").write_text(TOKEN)
            (directory / "token").chmod(0o600)
            file = json.dumps(str(directory / "token"))
            access = (f'access.certificate = "{pin}"', f"access.token_file = {file}")
    await made.plug()
    try:
        yield made, access
    finally:
        made.unplug()


@pytest.mark.integration
@pytest.mark.parametrize("name", TWINS)
async def test_SER_37_SER_41_a_product_is_known_by_what_it_says_and_gives_its_readings(
    name: str, broker: RealBroker, tmp_path: Path
) -> None:
    """`probe` names it, and what it writes reads it: no key of docs/meters.md is missing."""
    said: list[str] = []
    async with twin_at(name, broker.port, tmp_path) as (twin, access):

        async def speak() -> None:
            while True:
                await twin.write(meter_says(TWINS[name].show, *VALUES[0]))
                await asyncio.sleep(0.05)

        speaking = asyncio.create_task(speak())
        await asyncio.sleep(0)
        lets_in = parse_meter("\n".join([f'port = "{twin.name}"', *access]), "x").access
        outcome, _ = await probe(twin.name, said.append, seconds=20, access=lets_in)
        assert outcome is not None
        lines = [*toml_lines(twin.name, outcome)[1:], *access]
        table = parse_meter("\n".join(lines), "agent.toml")
        with closing(await open_meter(table)) as opened:
            (told,) = await heard(opened, table)
        speaking.cancel()
    assert "baud" not in " ".join([*said, outcome.text(), *lines])
    assert str(VALUES[0][0]) not in re.findall(r"\d+", outcome.text())  # nor in part of a port
    shown = dict(told.shown)
    assert shown.get("power_net", shown.get("power")) == VALUES[0][0]
    assert {one[1] for one in product(name).words} <= shown.keys()


def product(name: str) -> Product:
    return next(one for one in PRODUCTS if one.name == BY_TWIN[name])


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize(("power_w", "export_power_w"), VALUES)
def test_SER_45_the_same_values_over_serial_give_the_same_codes_from_the_same_entropy(
    name: str, power_w: int, export_power_w: int
) -> None:
    one, twin = product(name), TWINS[name]
    source = source_of(one.port.replace("NAME", "meter"))
    assert source is not None
    payload = line_of(meter_says(twin.show, power_w, export_power_w))
    assert product_of(source, payload) == one
    assert one.path.replace("NAME", "meter") == (twin.path[1:] or twin.topic)
    lines = toml_lines(one.port.replace("HOST", "h"), Found(None, one.keys))[1:]
    meter: Any = make_meter(parse_meter("\n".join(lines), "x"))
    serial: Any = make_meter(parse_meter('port = "/dev/x"', "x"))
    events = [*meter.silence(), *meter.feed(payload)]
    [told] = [e for e in events if isinstance(e, Telegram)]
    [due] = [
        e
        for e in serial.feed(meter_says(p1_telegram, power_w, export_power_w))
        if isinstance(e, Telegram)
    ]
    assert dict(told.shown).items() <= dict(due.shown).items()
    reporter, entropy = make_plan(1).reporter(), bytes(range(256)) * 8
    for quantity in told.shown:
        codes = [reporter.report(one.shown[quantity], draw_from(entropy)[0]) for one in (told, due)]
        assert codes[0] == codes[1]


def test_the_page_has_the_table_of_products() -> None:
    assert table() in PAGE.read_text(), "python -m tests.agent.ports.test_sources prints it"
    assert {one.name for one in PRODUCTS} - {*BY_TWIN.values()} == {
        "Shelly EM (Gen1), its first channel"  # the same page as the other's
    }


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
