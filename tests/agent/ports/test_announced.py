"""Products that announce themselves by mDNS, with the real library on loopback."""

import asyncio
import importlib.util
import socket
from typing import Any
from uuid import uuid4

import pytest

from agent.commands.setup import found_meter
from agent.commands.setup.talk import SetupError, Talk
from agent.meters.port_names import host_of
from agent.ports import announced
from agent.ports.announced import announced_products
from tests import needs
from tests.integration.conftest import free_port

HERE = ["127.0.0.1"]
OURS = uuid4().hex[:8]  # others on this machine announce at the same address
SAID = (
    ("_hwenergy._tcp.local.", f"p1meter-{OURS}", free_port()),
    ("_homewizard._tcp.local.", f"p1;meter-{OURS}", free_port()),
    ("_mqtt._tcp.local.", f"house-{OURS}", free_port()),
)


@pytest.mark.integration
async def test_SER_49_what_announces_itself_is_an_address_to_look_at() -> None:
    if importlib.util.find_spec("zeroconf") is None:
        needs.missing("zeroconf", "pip install zeroconf")
    from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf  # noqa: PLC0415 (an extra)

    found: list[tuple[str, str]] = []
    zero = AsyncZeroconf(interfaces=HERE)
    try:
        for kind, name, port in SAID:
            at = [socket.inet_aton(HERE[0])]
            host = f"{OURS}.local."
            told = AsyncServiceInfo(kind, f"{name}.{kind}", port, addresses=at, server=host)
            await (await zero.async_register_service(told))
        for _ in range(20):  # a datagram may be lost where the machine is busy
            if len(found) < len(SAID):
                heard = await announced_products(2, HERE)
                found = [one for one in heard if one[1].endswith(OURS)]
    finally:
        await zero.async_close()
        await asyncio.sleep(0)
    ours = [port for _, _, port in SAID]
    assert found == [
        (f"http://127.0.0.1:{ours[0]}", f"HomeWizard: p1meter-{OURS}"),
        (f"https://127.0.0.1:{ours[1]}", f"HomeWizard, v2: p1?meter-{OURS}"),
        (f"mqtt://127.0.0.1:{ours[2]}", f"a broker: house-{OURS}"),
    ]
    usual = [announced._port(*one) for one in (("http", "::1", 80), ("mqtt", "h", 1883))]  # noqa: SLF001
    assert usual == ["http://[::1]", "mqtt://h"]
    assert all(host_of(address) == address for address, _ in found)


def test_SER_49_setup_offers_what_it_heard_where_no_serial_port_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def heard(*_: Any) -> list[tuple[str, str]]:
        return [("http://192.168.1.5", "HomeWizard: p1")]

    async def none(*_: Any) -> list[tuple[str, str]]:
        raise ModuleNotFoundError

    monkeypatch.setattr(found_meter, "list_ports", list)
    monkeypatch.setattr(announced, "announced_products", heard)
    assert found_meter._ports(Talk(is_silent=True)) == ["http://192.168.1.5"]  # noqa: SLF001
    assert "1  http://192.168.1.5  HomeWizard: p1" in capsys.readouterr().out
    monkeypatch.setattr(announced, "announced_products", none)
    with pytest.raises(SetupError, match=r"pip install 'edge-ldp-agent\[find\]'"):
        found_meter._ports(Talk(is_silent=True))  # noqa: SLF001
