"""How the agent is now, told on a socket beside its state; no answer is an answer, too."""

import asyncio
import os
import socket
import stat
from pathlib import Path

import pytest

from agent.running import vitals
from agent.running.vitals import ask_agent, keep_answering
from tests.integration.agent_bench import until

TOLD = {"health": "ok", "ages": {"telegram_s": 2, "link_s": None}}


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_whoever_asks_hears_it_again_and_again_and_nobody_else_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "home.db"
    monkeypatch.setattr(vitals, "ASK_S", 60.0)
    assert ask_agent(state) is None, "nobody runs"
    answering = asyncio.create_task(keep_answering(state, lambda: TOLD))
    await until(lambda: names(tmp_path) == ["home.db.vitals"])
    assert stat.S_IMODE(os.stat(tmp_path / "home.db.vitals").st_mode) == 0o600  # noqa: PTH116
    for _ in range(3):
        assert await asyncio.to_thread(ask_agent, state) == TOLD
    answering.cancel()
    await asyncio.wait([answering])
    assert names(tmp_path) == []
    assert ask_agent(state) is None


async def test_what_a_killed_agent_left_is_in_nobodys_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / "home.db"
    monkeypatch.setattr(vitals, "ASK_S", 60.0)
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "home.db.vitals"))
    left.close()
    assert ask_agent(state) is None
    answering = asyncio.create_task(keep_answering(state, lambda: TOLD))
    while (told := await asyncio.to_thread(ask_agent, state)) is None:  # noqa: ASYNC110 (it is asked)
        await asyncio.sleep(0.01)
    assert told == TOLD
    answering.cancel()


def test_an_agent_that_hangs_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "home.db.vitals"))
        silent.listen()
        monkeypatch.setattr(vitals, "ASK_S", 0.1)
        assert ask_agent(tmp_path / "home.db") == {}


async def test_where_no_socket_can_be_it_is_done_without(tmp_path: Path) -> None:
    await keep_answering(tmp_path / ("x" * 200), lambda: TOLD)
    assert names(tmp_path) == []
