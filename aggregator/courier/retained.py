"""What a broker retains, read without our session: its backlog would stand in the way."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from edge_ldp.service.mqtt import Broker, RefusedError, open_link

RETAINED_WAIT_S = 1.0
_log = logging.getLogger(__name__)


async def read_retained(
    broker: Broker, names: Sequence[str], wait_s: float = RETAINED_WAIT_S
) -> dict[str, bytes]:
    """Return what the broker retains at each topic, by a connection of its own.

    It waits for all of them or `wait_s`; our session's own backlog would stand in the way.
    """
    link = await open_link(
        replace(broker, client_id=f"{broker.client_id}-look", session_s=0, manual_ack=False)
    )
    found: dict[str, bytes] = {}
    try:
        await link.subscribe(names)
        async with asyncio.timeout(wait_s):
            while len(found) < len(names):
                message = await link.receive()
                found[message.topic] = message.payload
    except TimeoutError:  # a process that was set aside has them all the same
        found.update((one.topic, one.payload) for one in link.receive_ready(len(names)))
    except RefusedError as exc:
        _log.warning("%s: retained plans cannot be read; check the access list", exc)
    finally:
        await link.close()
    return found
