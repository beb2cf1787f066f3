"""Receipts going out: retained, rate-limited, built from what is committed, never in its way."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from aggregator.receipts import build_receipt
from edge_ldp.messages import topic
from edge_ldp.shell.mqtt import LinkLostError, RefusedError

if TYPE_CHECKING:
    from aggregator.due import Due
    from aggregator.shell.keeper import Keeper
    from aggregator.shell.store import Store
    from edge_ldp.shell.mqtt import Link

CHUNK = 50
IDLE_S = 0.05
_log = logging.getLogger(__name__)


async def post_receipts(link: Link, keeper: Keeper, due: Due, fleet: str, per_second: int) -> None:
    """Publish receipts as they fall due, until the link is lost (LinkLostError)."""
    loop = asyncio.get_running_loop()
    refused = False
    while True:
        devices = due.take(loop.time(), CHUNK)
        if not devices:
            await asyncio.sleep(IDLE_S)
            continue
        try:
            await _post(link, keeper, fleet, devices)
        except (LinkLostError, asyncio.CancelledError):
            for device in devices:
                due.note(device, loop.time())
            raise
        except RefusedError as exc:
            if not refused:
                _log.error("%s: receipts cannot be given; check the access list", exc)
            refused = True
        await asyncio.sleep(len(devices) / per_second)


async def _post(link: Link, keeper: Keeper, fleet: str, devices: list[str]) -> None:
    def build(store: Store) -> list[tuple[str, bytes]]:
        return [
            (device, build_receipt((s, r.state) for s, r in store.states(device)).to_json())
            for device in devices
        ]

    publishing = [
        link.publish(topic(fleet, "receipt", device), payload, retain=True)
        for device, payload in await keeper.call(build)
    ]
    failed = [one for one in await asyncio.gather(*publishing, return_exceptions=True) if one]
    failed.sort(key=lambda one: isinstance(one, RefusedError))  # a lost link matters more
    for one in failed:
        raise one
