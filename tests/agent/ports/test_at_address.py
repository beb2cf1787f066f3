"""A product found at an address: by twins that stand there, and by what stands there otherwise."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from agent.errors import PortError
from agent.main import main
from agent.ports import at_address as module
from agent.ports.at_address import at_address, token_at
from edge_ldp.service.mqtt import Broker, open_link
from firmware_stubs.meters.products import TWINS
from firmware_stubs.meters.twin import PageTwin
from tests.agent.ports.page_server import page_server
from tests.agent.ports.test_sources import VALUES, meter_says, own_certificate, product, twin_at
from tests.integration.conftest import RealBroker, broker

__all__ = ["broker"]  # a fixture

pytestmark = pytest.mark.integration


def host_in(name: str) -> str:
    return "/".join(name.split("/")[:3])


@pytest.mark.parametrize("name", TWINS)
async def test_SER_47_a_product_is_found_by_its_address_alone(
    name: str, broker: RealBroker, tmp_path: Path
) -> None:
    said: list[str] = []
    async with twin_at(name, broker.port, tmp_path) as (twin, _):
        payload = meter_says(TWINS[name].show, *VALUES[0])
        await twin.write(payload)
        looking = asyncio.create_task(at_address(host_in(twin.name), None, said.append, 1))
        while not isinstance(twin, PageTwin) and not looking.done():
            await twin.write(payload)
            await asyncio.sleep(0.05)
        found = await looking
    assert found is not None
    assert (found.product, found.port) == (product(name), twin.name)
    assert found.wants_token == (name == "homewizard-v2")
    assert str(VALUES[0][0]) not in re.findall(r"\d+", " ".join(said))  # nor in part of a port


async def test_SER_48_a_token_is_given_while_the_button_is_pressed_and_to_the_pinned_device_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN_S", 0.01)
    tls, pin = own_certificate(tmp_path)
    twin = PageTwin(TWINS["homewizard-v2"], "127.0.0.1", 0, tls)
    await twin.plug()
    await twin.write(b"x")
    said: list[str] = []
    found = await at_address(host_in(twin.name), None, said.append, 1)
    assert found is not None
    assert (found.pin, twin.requests) == (pin, ["GET /api/telegram HTTP/1.1"])

    async def press() -> None:
        while len(twin.requests) < 4:  # noqa: ASYNC110 (a twin tells nobody)
            await asyncio.sleep(0.01)
        twin.press()

    pressing = asyncio.create_task(press())
    token = await token_at(found, said.append)
    await pressing
    assert {token} == twin.tokens
    assert token not in " ".join(said)
    other = found.__class__(found.product, found.port, "sha256:" + "0" * 64, wants_token=True)
    asked = len(twin.requests)
    monkeypatch.setattr(module, "PRESSED_S", 0.5)
    with pytest.raises(PortError, match="gave no token"):
        await token_at(other, said.append)
    assert len(twin.requests) == asked
    twin.unplug()


async def test_SER_47_where_nobody_is_and_what_is_no_product_is_said() -> None:
    said: list[str] = []
    async with page_server(b"<html>", 200) as page:
        host = f"http://127.0.0.1:{page.port}"
        assert await at_address(host, None, said.append, 1) is None
        page.status = 403
        assert await at_address(host, None, said.append, 1) is None
    assert any("Local API: on, if it is a HomeWizard P1 (v1)" in line for line in said)
    with pytest.raises(PortError, match="cannot be reached"):
        await at_address(host, None, said.append, 1)


async def test_SER_47_of_several_meters_at_a_broker_none_is_guessed(broker: RealBroker) -> None:
    where = f"mqtt://127.0.0.1:{broker.port}"
    assert await at_address(where, None, lambda _: None, 0.2) is None
    payload = meter_says(TWINS["zigbee2mqtt"].show, *VALUES[0])
    link = await open_link(Broker("127.0.0.1", broker.port, "plugs"))
    for plug in ("fridge", "oven"):
        await link.publish(f"zigbee2mqtt/{plug}", payload, retain=True)
    await link.close()
    with pytest.raises(PortError, match=rf"{where}/zigbee2mqtt/fridge, zigbee2mqtt; .*oven"):
        await at_address(where, None, lambda _: None, 1)


def test_SER_48_probe_names_a_product_that_wants_a_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = module.AtAddress(product("homewizard-v2"), "https://h/api/telegram", "p", True)

    async def there(*_: Any) -> Any:
        await asyncio.sleep(0)
        return found

    monkeypatch.setattr(module, "at_address", there)
    assert main(["probe", "--port", "https://h"]) == 3
    assert (
        "wants a token: `edge-ldp agent setup --port https://h` asks it" in capsys.readouterr().err
    )
