"""What is wrong with a meter or its line and no name of `simulate meter --fault` brings about."""

import asyncio
import re

from firmware_stubs.meters import PtyPort
from firmware_stubs.meters.player import Show
from firmware_stubs.meters.telegram import crc


def without_season(show: Show) -> Show:
    """Return a P1 meter that does not say whether its time is summer or winter time (SER-18)."""

    def shown(**rest: object) -> bytes:
        body = show(**rest)[:-6]
        body = re.sub(rb"(0-0:1\.0\.0\(\d{12})[SW]", rb"\1", body)
        return body + b"%04X\r\n" % crc(body)

    return shown


async def trickle(port: PtyPort, telegram: bytes, baud: int) -> bool:
    """Send bytes as slowly as a line of this speed does, ten bits each, a few at a time."""
    size = max(1, baud // 200)  # a twentieth of a second
    for at in range(0, len(telegram), size):
        if not await port.write(telegram[at : at + size]):
            return False
        await asyncio.sleep(10 * size / baud)
    return True
