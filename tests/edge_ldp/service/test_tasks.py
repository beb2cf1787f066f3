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


async def fails_when_cancelled() -> None:
    try:
        await asyncio.Event().wait()
    finally:
        raise BrokenError


async def fails_when(ready: asyncio.Event) -> None:
    await ready.wait()
    raise BrokenError


@pytest.mark.parametrize("first", ["cancelled", "failed", "failed in its body"])
async def test_a_cancellation_is_not_lost_behind_an_error_of_the_same_moment(first: str) -> None:
    """As when a machine shuts down: the service is told to end, and its broker goes."""
    ready, tries = asyncio.Event(), 0

    async def again_and_again() -> None:
        nonlocal tries
        while tries < 2:  # and then it would end, told or not
            tries += 1
            try:
                async with task_group() as tasks:
                    if first == "cancelled":
                        tasks.create_task(fails_when_cancelled())
                    else:
                        tasks.create_task(fails_when(ready))
                    if first == "failed in its body":
                        await asyncio.Event().wait()
            except* BrokenError:
                pass  # what is raised in here, 3.11.2 puts into a group
            await asyncio.sleep(0)

    task = asyncio.create_task(again_and_again())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    ready.set()
    if first != "cancelled":
        while not task.cancelling():  # noqa: ASYNC110 (till the child failed, and no turn longer)
            await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=300)
    assert done == {task}
    assert task.cancelled()
    assert tries == 1
