"""Sums with intervals to the broker, for whoever may read them; never in the counting's way."""

import asyncio
import json
import logging
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from contextlib import suppress

from aggregator.config import AnnounceTable
from aggregator.courier.courier import AnyLink
from aggregator.errors import AggregatorError
from edge_ldp.protocol.strict_json import dumps
from edge_ldp.service.broker import RefusedError
from edge_ldp.service.clock import Clock

COMMAND = ("-P", "-m", "edge_ldp.cli", "aggregator", "announced", "--json", "-c")
NICE = 10
_log = logging.getLogger(__name__)


class _NotMadeError(AggregatorError):
    """The command that makes the messages failed; the text is its last word."""


async def announce(link: AnyLink, file: str, table: AnnounceTable, clock: Clock) -> None:
    """Publish what the command `announced` says, again and again, until cancelled; groups daily.

    What cannot be read, or is refused by the broker, is told of and tried again: only a lost link
    ends it.
    """
    warned: list[str] = []
    day = -1  # of which groups were told
    while True:
        troubles, today = [], int(clock.now()) // 86_400
        try:
            made = {**await _made(file)}
            if table.groups and today != day:
                made |= await _made(file, "--groups")
                day = today
        except _NotMadeError as exc:
            made, troubles = {}, [str(exc)]
        for topic, message in made.items():
            payload = b"" if message is None else dumps(message)
            try:
                await link.publish(topic, payload, retain=True)
            except RefusedError as exc:
                troubles.append(f"{exc}; check the access list")
        if troubles and troubles != warned:
            _log.warning("sums are not announced: %s", troubles[0])
        warned = troubles
        await clock.sleep(table.interval_s)


async def _made(file: str, *more: str) -> Mapping[str, Mapping[str, object] | None]:
    """Return the messages by topic, made by a process of its own: it takes a core for seconds."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *COMMAND, file, *more, stdout=PIPE, stderr=PIPE
    )
    try:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICE)
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise _NotMadeError(err.decode(errors="replace").strip().rpartition("\n")[2])
    found: Mapping[str, Mapping[str, object] | None] = json.loads(out)["announced"]
    return found
