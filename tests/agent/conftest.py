"""What tests of the agent share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware_stubs.meters import PtyPort


@pytest.fixture
def pty(tmp_path: Path) -> Iterator[PtyPort]:
    """Give a meter's port that is plugged in."""
    port = PtyPort(tmp_path / "meter")
    port.plug()
    yield port
    port.unplug()
