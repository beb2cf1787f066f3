"""Sums with intervals to the broker, for whoever may read them; never in the counting's way."""

from __future__ import annotations

import asyncio
import logging
from contextlib import closing
from typing import TYPE_CHECKING

from aggregator.answers.announcement import announcements
from aggregator.store.opening import open_reader
from edge_ldp.device.errors import EdgeLdpError
from edge_ldp.service.broker import RefusedError

if TYPE_CHECKING:
    from aggregator.config import AggregatorConfig, AnnounceTable
    from aggregator.courier.courier import AnyLink
    from edge_ldp.service.clock import Clock

_log = logging.getLogger(__name__)


async def announce(
    link: AnyLink, config: AggregatorConfig, table: AnnounceTable, clock: Clock
) -> None:
    """Announce again and again, from a reader of its own in a thread, until cancelled.

    What cannot be read, or is refused by the broker, is told of and tried again: only a lost link
    ends it.
    """
    said: list[str] = []
    while True:
        troubles = []
        try:
            made = await asyncio.to_thread(_made, config, table, int(clock.now()))
        except EdgeLdpError as exc:
            made, troubles = [], [str(exc)]
        for topic, payload in made:
            try:
                await link.publish(topic, payload, retain=True)
            except RefusedError as exc:
                troubles.append(f"{exc}; check the access list")
        if troubles and troubles != said:
            _log.warning("sums are not announced: %s", troubles[0])
        said = troubles
        await clock.sleep(table.interval_s)


def _made(config: AggregatorConfig, table: AnnounceTable, now_s: int) -> list[tuple[str, bytes]]:
    with closing(open_reader(config, "configuration")) as reader:
        return list(announcements(reader, config, table, now_s))
