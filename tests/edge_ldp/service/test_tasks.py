"""A group of tasks leaves its own task as it was."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from edge_ldp.service.tasks import task_group


class BrokenError(Exception):
    """What a child fails with."""


async def fails() -> None:
    raise BrokenError


async def together(*all_of_them: Coroutine[Any, Any, Any]) -> None:
    async with task_group() as tasks:
        for one in all_of_them:
            tasks.create_task(one)


async def test_after_a_child_failed_its_task_is_not_cancelled_and_a_timeout_is_one() -> None:
    with pytest.raises(ExceptionGroup) as told:
        await together(fails(), asyncio.Event().wait())
    assert told.group_contains(BrokenError)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await asyncio.Event().wait()


async def test_a_cancellation_from_outside_still_ends_it() -> None:
    task = asyncio.create_task(together(asyncio.Event().wait()))
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
