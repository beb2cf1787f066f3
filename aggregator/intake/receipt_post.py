"""Receipts going out: retained, rate-limited, built from what is committed, never in its way."""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aggregator.counting.seen_batches import build_receipt
from aggregator.courier.courier import AnyLink
from aggregator.intake.last_times import LastTimes
from aggregator.intake.receipt_schedule import ReceiptSchedule
from aggregator.store.contract import Store, identity
from aggregator.store.store_thread import StoreThread
from aggregator.store.worker import AlwaysOurs, Turns
from edge_ldp.protocol.messages import topic
from edge_ldp.protocol.signing import RECEIPT_CONTEXT, Signer
from edge_ldp.service.mqtt import LinkLostError, RefusedError

CHUNK = 50  # devices of one round; a signature takes 0.1 ms
IDLE_S = 0.05
BUSY_S = 0.2  # another worker posts this device's receipt just now
_OURS = AlwaysOurs()
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReceiptSeal:
    """What makes a receipt believable: the aggregator's time `now()`, and who signs, if anybody."""

    now: Callable[[], float]
    signer: Signer | None = None

    def wrap(self, store: Store, device: str) -> bytes:
        """Return a device's receipt as it is published; one of version 1 bears no signature."""
        records = list(store.states(device))
        states = ((stream, record.state) for stream, record in records)
        refused = sum(record.rejected for _, record in records)
        receipt = build_receipt(states, identity(store), int(self.now()), device, refused)
        payload = receipt.to_json()
        if self.signer is None or not receipt.store:
            return payload
        return self.signer.wrap(payload, RECEIPT_CONTEXT)


async def post_receipts(  # noqa: PLR0913 (what it works with)
    link: AnyLink,
    keeper: StoreThread,
    due: ReceiptSchedule,
    fleet: str,
    per_second: int,
    *,
    last_times: LastTimes,
    seal: ReceiptSeal,
    turns: Turns = _OURS,
    may_post: Callable[[], bool] = lambda: True,
) -> None:
    """Publish receipts as they fall due and `may_post`, until the link is lost (LinkLostError)."""
    loop = asyncio.get_running_loop()
    refused = False
    while True:
        devices = due.take(loop.time(), CHUNK) if may_post() else []
        if not devices:
            await asyncio.sleep(IDLE_S)
            continue
        try:
            later = await _post(
                link, keeper, fleet, devices, last_times=last_times, seal=seal, turns=turns
            )
        except (LinkLostError, asyncio.CancelledError):
            _note(due, devices, loop.time())
            raise
        except RefusedError as exc:
            if not refused:
                _log.error("%s: receipts cannot be given; check the access list", exc)
            refused = True
        else:
            _note(due, later, loop.time() + BUSY_S)
        await asyncio.sleep(len(devices) / per_second)


async def _post(  # noqa: PLR0913 (same)
    link: AnyLink,
    keeper: StoreThread,
    fleet: str,
    devices: list[str],
    *,
    last_times: LastTimes,
    seal: ReceiptSeal,
    turns: Turns,
) -> list[str]:
    """Post receipts of the devices whose turn is ours; return those that are to come again."""

    def build(store: Store) -> list[tuple[str, bytes]]:
        return [(device, seal.wrap(store, device)) for device in turns.take(store, devices)]

    try:
        built = await keeper.call(build)
        publishing = [
            link.publish(topic(fleet, "receipt", device), payload, retain=True)
            for device, payload in built
        ]
        failed = [one for one in await asyncio.gather(*publishing, return_exceptions=True) if one]
        if len(failed) < len(built):
            last_times.note("receipt")
    finally:  # also when `build` is still under way: calls of the store keep their order
        lost = await keeper.call(turns.give_back)
    failed.sort(key=lambda one: isinstance(one, RefusedError))  # a lost link matters more
    for one in failed:
        raise one
    return [*(set(devices) - {device for device, _ in built}), *lost]


def _note(due: ReceiptSchedule, devices: Iterable[str], at: float) -> None:
    for device in devices:
        due.note(device, at)
