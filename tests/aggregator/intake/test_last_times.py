"""When things last happened, by a clock that may be set or run faster."""

from dataclasses import dataclass, field

from aggregator.intake.last_times import LastTimes
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
    last_times = LastTimes(clock)
    assert (last_times.ages, last_times.times) == ({}, {})
    last_times.note("report")
    clock.shown["steady_s"] += 20
    clock.shown["utc_s"] += 20 + 86_400  # and somebody set it
    assert last_times.ages == {"report": 2.0}
    assert last_times.times == {"report": 1_000 + 86_400}


def test_a_state_that_lasts_keeps_its_beginning_and_ends_the_other() -> None:
    clock = HandClock()
    last_times = LastTimes(clock)
    last_times.turn(LOST, LINK)
    clock.shown["steady_s"] += 10
    last_times.turn(LOST, LINK)  # an attempt failed
    assert last_times.ages == {LOST: 1.0}
    last_times.turn(LINK, LOST)
    assert last_times.ages == {LINK: 0.0}
    last_times.forget(LINK, LOST)
    assert last_times.ages == {}
