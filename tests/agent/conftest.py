"""What tests of the agent share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.state.journal import Journal
from firmware_stubs.meters import PtyPort
from tests.agent.summed import in_memory


@pytest.fixture
def pty(tmp_path: Path) -> Iterator[PtyPort]:
    port = PtyPort(tmp_path / "meter")
    port.plug()
    yield port
    port.unplug()


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every state that a test opened: from Python 3.13 on what is left open is told."""
    opened: list[Journal] = []
    make = Journal.__init__

    def noted(journal: Journal, *args: Any, **more: Any) -> None:
        make(journal, *args, **more)
        opened.append(journal)

    monkeypatch.setattr(Journal, "__init__", noted)
    yield
    for journal in opened:
        journal.close()


@pytest.fixture
def runtime() -> Iterator[Path]:
    with in_memory() as place:
        yield place
