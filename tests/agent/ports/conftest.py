"""What tests of ports share."""

from typing import Any

import pytest
import serial


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> list[serial.Serial]:
    """Return the serial devices that are opened from now on, as pyserial knows them."""
    found: list[serial.Serial] = []

    opening = serial.Serial

    def opened(*args: Any, **keywords: Any) -> serial.Serial:
        found.append(opening(*args, **keywords))
        return found[-1]

    monkeypatch.setattr(serial, "Serial", opened)
    return found
