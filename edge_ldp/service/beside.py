"""What blocks, done beside the loop: in a thread that no stop waits for, as for a pool's."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], name: str) -> T:
    """Return what `work` does, or raise what it raises; a cancelled wait leaves it to itself."""
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
