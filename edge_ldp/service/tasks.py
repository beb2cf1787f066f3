"""Tasks that live and end together, and what blocks, in a thread beside the loop."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")


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


async def in_thread(work: Callable[[], T], name: str) -> T:
    """Return what `work` does, or raise what it raises; a cancelled wait leaves it to itself.

    No stop waits for the thread, as it would for a pool's.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def fail(exc: Exception) -> None:
        if not done.done():
            done.set_exception(exc)

    def succeed(result: T) -> None:
        if not done.done():
            done.set_result(result)

    def run() -> None:
        try:
            result = work()
        except Exception as exc:  # noqa: BLE001 (handed to the one who waits)
            told: Callable[[], object] = partial(fail, exc)
        else:
            told = partial(succeed, result)
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(told)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done
