"""Tasks that live and end together, in a task that goes on afterwards."""

from __future__ import annotations

import asyncio
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:  # noqa: TID251 (the one place)
    """Be an asyncio.TaskGroup that leaves its own task just as cancelled as others asked for.

    The group cancels that task when a child fails. Up to Python 3.12 it forgets to take this back
    if the task was already waiting for the children: in 3.11.2 (Debian 12) the next
    asyncio.timeout() that runs out there is then taken for a cancellation, and a lost link is
    never made again. And where somebody cancels that task while a child fails, as when a machine
    shuts down service and broker, the cancellation is lost behind the error: it stands here again
    at the next await.
    """
    task = asyncio.current_task()
    asked = task.cancelling() if task else 0
    group = asyncio.TaskGroup()  # noqa: TID251 (same)
    known = False
    try:
        async with group:
            try:
                yield group
            finally:
                known = _has_cancelled(group)  # and takes it back on leaving
    except BaseExceptionGroup:
        if task and sys.version_info < (3, 13):  # from there on it does all of this itself
            if _has_cancelled(group) and not known:
                task.uncancel()
            if task.cancelling() > asked:
                task.uncancel()
                task.cancel()
        raise


def _has_cancelled(group: asyncio.TaskGroup) -> bool:  # noqa: TID251 (same)
    """Say whether the group has cancelled its own task; nothing public tells whose it was."""
    return bool(getattr(group, "_parent_cancel_requested", False))
