"""Ids for new flushes, by this machine's clock and its random numbers."""

from __future__ import annotations

import os
import time
from uuid import UUID

from aggregator.flush_ids import flush_id


def new_flush() -> UUID:
    """Return an id that no flush had before; the clock only says on which day it is kept."""
    return UUID(bytes=flush_id(time.time_ns() // 1_000_000, os.urandom(10)))
