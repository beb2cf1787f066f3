"""Products that say in the local network that they are there, by mDNS: for who sets up an agent.

Needs the extra `find` (zeroconf). What is heard is anybody's word: it names an address to look at,
nothing more. The service never listens for it. Source: docs/faults.md, SER-49.
"""

import asyncio
import re
from typing import Any

SERVICES = {
    "_hwenergy._tcp.local.": ("http", "HomeWizard"),
    "_homewizard._tcp.local.": ("https", "HomeWizard, v2"),
    "_shelly._tcp.local.": ("http", "Shelly"),
    "_mqtt._tcp.local.": ("mqtt", "a broker"),
}
"""What is listened for, how it is spoken to, and what it is."""

MOST = 32
_ASKING_MS = 1500
_USUAL = {"http": 80, "https": 443, "mqtt": 1883}
_UNSHOWN = re.compile(r"[^A-Za-z0-9_. -]")


async def announced_products(seconds: float, interfaces: Any = None) -> list[tuple[str, str]]:
    """Return (address, what it calls itself) of each that was heard, as `setup --port` takes it.

    Raises ModuleNotFoundError without the extra, and OSError where no network is.
    """
    from zeroconf import InterfaceChoice  # noqa: PLC0415 (an extra)
    from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf  # noqa: PLC0415

    heard = dict[str, str]()

    def note(name: str, service_type: str, **_: Any) -> None:
        if len(heard) < MOST:
            heard[name] = service_type

    zero = AsyncZeroconf(interfaces=interfaces or InterfaceChoice.Default)
    browser = AsyncServiceBrowser(zero.zeroconf, [*SERVICES], handlers=[note])
    found = dict[str, str]()
    try:
        await asyncio.sleep(seconds)
        for name, kind in sorted(heard.items()):
            told = AsyncServiceInfo(kind, name)
            if not await told.async_request(zero.zeroconf, _ASKING_MS):
                continue
            scheme, product = SERVICES[kind]
            shown = _UNSHOWN.sub("?", name.removesuffix(f".{kind}"))[:64]
            for address in told.parsed_addresses():
                found[_port(scheme, address, told.port)] = f"{product}: {shown}"
    finally:
        await browser.async_cancel()
        await zero.async_close()
        await asyncio.sleep(0)  # its sockets close in the loop's next turn
    return sorted(found.items())


def _port(scheme: str, address: str, number: int | None) -> str:
    host = f"[{address}]" if ":" in address else address
    return (
        f"{scheme}://{host}" if number in (None, _USUAL[scheme]) else f"{scheme}://{host}:{number}"
    )
