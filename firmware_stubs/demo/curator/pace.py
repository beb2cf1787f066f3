"""How fast this machine can play now: a clock that races ahead would make everything too old."""

from __future__ import annotations

import time

from firmware_stubs.meters.telegram import p1_telegram

TRIES = 3000
COST = 2.5  # of the whole way of a telegram, in makings of one, the slowest process's share


def seconds_for(slots: int, asked: float) -> float:
    """Return real seconds to play so many telegrams in: as asked, or more when that is too fast.

    Takes about 0.3 s on an idle machine; what others do on it is measured with it.
    """
    begun_s = time.monotonic()
    for at in range(TRIES):
        p1_telegram(meter_id="E1", time_s=1_200_000_000 + at, import_wh=at, power_w=at)
    each_s = (time.monotonic() - begun_s) / TRIES
    return round(max(asked, COST * each_s * slots), 1)
