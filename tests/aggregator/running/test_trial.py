"""`check --live` beside a service that has just started."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, cast

from aggregator.running import trial
from aggregator.store.rows import BeatRow, BeatTimes
from edge_ldp.service.clock import Clock

if TYPE_CHECKING:
    import pytest

    from aggregator.store.contract import Reader

DOWN = "degraded: link down"


class Beating:
    """A reader of a served store: one heartbeat at each look, the last one for good."""

    def __init__(self, *beats: BeatRow) -> None:
        self.left = list(beats)

    def is_served(self) -> bool:
        return True

    def beats(self) -> list[BeatRow]:
        return [self.left.pop(0) if len(self.left) > 1 else self.left[0]]


def told(*beats: BeatRow) -> tuple[str, str]:
    reader = cast("Reader", Beating(*beats))
    found = trial._try_running(reader, Clock())  # noqa: SLF001 (alone: without a broker)
    return found.outcome, re.sub(r"\d+ s", "N s", found.told)


def test_a_heartbeat_from_before_the_first_link_is_not_the_verdict() -> None:
    now_s = int(time.time())
    before = BeatRow("", now_s, DOWN, BeatTimes(lost_s=now_s))
    after = BeatRow("", now_s + 1, "ok", BeatTimes(link_s=now_s))
    assert told(before, before, after) == ("ok", "one runs; it said ok N s ago")


def test_a_link_that_stays_down_fails_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "LINKS_S", 0.5)
    now_s = int(time.time())
    began = time.monotonic()
    assert told(BeatRow("", now_s, DOWN, BeatTimes(lost_s=now_s + 60)))[0] == "fails"
    assert 0.5 <= time.monotonic() - began < 60


def test_a_link_that_went_a_while_ago_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", None)
    now_s = int(time.time())
    for times in (BeatTimes(lost_s=now_s - 60), BeatTimes(link_s=now_s), BeatTimes()):
        assert told(BeatRow("", now_s, DOWN, times)) == (
            "fails",
            f"one runs; it said {DOWN} N s ago",
        )
