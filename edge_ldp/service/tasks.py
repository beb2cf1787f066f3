"""Tasks that live and end together, in a task that goes on afterwards."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def task_group() -> AsyncIterator[asyncio.TaskGroup]:  # noqa: TID251 (the one place)
    """Be an asyncio.TaskGroup that leaves no cancellation behind in the task that used it.

    The group cancels that task when a child fails, and up to Python 3.12 forgets to take it back
    if the task was already waiting for the children. In 3.11.2 (Debian 12) the next
    asyncio.timeout() that runs out there is then taken for a cancellation: the task ends without a
    word, and a lost link is never made again.
    """
    task = asyncio.current_task()
    asked = task.cancelling() if task else 0
    try:
        async with asyncio.TaskGroup() as group:  # noqa: TID251 (same)
            yield group
    except BaseExceptionGroup:
        while task and task.cancelling() > asked:
            task.uncancel()
        raise
