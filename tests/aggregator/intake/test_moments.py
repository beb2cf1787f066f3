"""When things last happened, by a clock that may be set or run faster."""

from __future__ import annotations

from dataclasses import dataclass, field

from aggregator.intake.moments import Moments
from edge_ldp.service.clock import Clock
from edge_ldp.service.health import LINK, LOST


@dataclass(frozen=True)
class HandClock(Clock):
    """A clock whose seconds pass ten times as fast as real ones, set by hand."""

    rate: float = 10.0
    shown: dict[str, float] = field(default_factory=lambda: {"utc_s": 1_000.0, "steady_s": 50.0})

    def now(self) -> float:
        return self.shown["utc_s"]

    def monotonic(self) -> float:
        return self.shown["steady_s"]


def test_ages_are_real_seconds_and_times_those_of_the_clock_as_it_shows_now() -> None:
    clock = HandClock()
    moments = Moments(clock)
    assert (moments.ages, moments.times) == ({}, {})
    moments.note("report")
    clock.shown["steady_s"] += 20
    clock.shown["utc_s"] += 20 + 86_400  # and somebody set it
    assert moments.ages == {"report": 2.0}
    assert moments.times == {"report": 1_000 + 86_400}


def test_a_state_that_lasts_keeps_its_beginning_and_ends_the_other() -> None:
    clock = HandClock()
    moments = Moments(clock)
    moments.turn(LOST, LINK)
    clock.shown["steady_s"] += 10
    moments.turn(LOST, LINK)  # an attempt failed
    assert moments.ages == {LOST: 1.0}
    moments.turn(LINK, LOST)
    assert moments.ages == {LINK: 0.0}
    moments.forget(LINK, LOST)
    assert moments.ages == {}
