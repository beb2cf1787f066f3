"""What one worker does for all now and then, in small steps between the flushes of its intake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from aggregator.shell.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aggregator.shell.keeper import Keeper

Chore: TypeAlias = Callable[[Store], bool]  # one step; whether there is more to do

BETWEEN_S = 0.2  # steps
ROUND_S = 60.0


async def do_chores(keeper: Keeper, chores: Sequence[Chore]) -> None:
    """Do each chore until nothing is left of it, again and again, until cancelled."""
    while True:
        for chore in chores:
            while await keeper.call(chore):  # noqa: ASYNC110 (steps, nothing is waited for)
                await asyncio.sleep(BETWEEN_S)
        await asyncio.sleep(ROUND_S)
