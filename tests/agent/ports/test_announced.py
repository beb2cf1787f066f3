"""Products that announce themselves by mDNS, with the real library on loopback."""

import asyncio
import importlib.util
import socket
from typing import Any

import pytest

from agent.commands import found_meter
from agent.commands.talk import SetupError, Talk
from agent.meters.port_names import host_of
from agent.ports import announced
from agent.ports.announced import announced_products
from tests import needs

HERE = ["127.0.0.1"]
SAID = (
    ("_hwenergy._tcp.local.", "p1meter-1", 80),
    ("_homewizard._tcp.local.", "p1;meter", 8443),
    ("_mqtt._tcp.local.", "house", 1883),
)


@pytest.mark.integration
async def test_SER_49_what_announces_itself_is_an_address_to_look_at() -> None:
    if importlib.util.find_spec("zeroconf") is None:
        needs.missing("zeroconf", "pip install zeroconf")
    from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf  # noqa: PLC0415 (an extra)

    zero = AsyncZeroconf(interfaces=HERE)
    for kind, name, port in SAID:
        address = [socket.inet_aton(HERE[0])]
        told = AsyncServiceInfo(kind, f"{name}.{kind}", port, addresses=address, server="x.local.")
        await (await zero.async_register_service(told))
    found: list[tuple[str, str]] = []
    for _ in range(5):  # a datagram may be lost where the machine is busy
        if len(found) < len(SAID):
            found = await announced_products(2, HERE)
    await zero.async_close()
    await asyncio.sleep(0)
    assert found == [
        ("http://127.0.0.1", "HomeWizard: p1meter-1"),
        ("https://127.0.0.1:8443", "HomeWizard, v2: p1?meter"),
        ("mqtt://127.0.0.1", "a broker: house"),
    ]
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
