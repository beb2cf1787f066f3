"""The run: broker, meter, aggregator and agent started, watched, searched, asked and stopped."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firmware_stubs.demo.ask import ask_command
from firmware_stubs.demo.broker import choose_broker, search_path, wait_until_listening
from firmware_stubs.demo.children import Crew
from firmware_stubs.demo.curator import scenario as shared
from firmware_stubs.demo.files import command
from firmware_stubs.demo.run import LOOK_S, PORTS_S, SETTLE_S, Playing
from firmware_stubs.demo.search import Searched, build_patterns, search_directory

_SAID_DAYS = 56  # between two lines


@dataclass(frozen=True, slots=True)
class Played:
    """What a run left: the aggregator's answers, the agent's account, the search for readings."""

    broker: str
    daily: dict[str, Any]
    weekly: dict[str, Any]
    whole: dict[str, Any]
    status: dict[str, Any]
    ledger: dict[str, Any]
    searched: Searched


class Run(Playing):
    """One run in `place`; `say(line)` is told what goes on. Call `play` once."""

    def __init__(
        self, scenario: shared.Scenario, place: Path, crew: Crew, say: Callable[[str], None]
    ) -> None:
        super().__init__(crew, scenario.started_s, scenario.seconds)
        self._scenario = scenario
        self._place = place
        self._say = say
        self._said = -1
        self._patterns = build_patterns([shared.BASE_WH], shared.registers_wh(scenario.values))
        self._searched = Searched(0, 0, ())

    def play(self, broker_kind: str) -> Played:
        """Play everything; raises NoBrokerError, ChildDiedError, TooSlowError or AskError."""
        scenario, place = self._scenario, self._place
        self._say("starting broker, aggregator, meter and agent")
        broker = choose_broker(broker_kind, place, search_path())
        self._crew.start("broker", broker.command, place)
        self._crew.start("meter", shared.meter_command(place, scenario), place, may_end=True)
        wait_until_listening(broker.port)
        aggregator = shared.aggregator_files(place, scenario, broker)
        self._crew.start("aggregator", command("aggregator", "run", "-c", str(aggregator)), place)
        self._wait("starting", shared.meter_link(place).is_symlink, PORTS_S)
        agent = shared.agent_files(place, scenario, broker)
        self._crew.start("agent", command("agent", "run", "-c", str(agent)), agent.parent)
        half = scenario.started_s + scenario.seconds / 2
        self._wait("playing", lambda: time.time() >= half)
        self._search()
        self._wait("playing", lambda: self._crew.ended("meter"))
        self._search()
        self._crew.stop("agent")
        self._search()
        return self._answers(broker.name, aggregator, agent)

    def _pass(self, phase: str) -> None:
        day = int(self._scenario.day(time.time()))
        if phase == "playing" and day // _SAID_DAYS > self._said:
            self._said = day // _SAID_DAYS
            what = "choosing θ, nothing is published" if day < shared.THETA_DAYS else "publishing"
            self._say(f"day {day}: {what}")

    def _search(self) -> None:
        self._searched += search_directory(self._place / shared.HOME, self._patterns)

    def _answers(self, broker: str, aggregator: Path, agent: Path) -> Played:
        """Ask once every value is accounted for, or after a minute."""
        deadline = time.monotonic() + SETTLE_S
        self._say("asking for figures")
        while True:
            self._crew.check()
            status = ask_command("aggregator", "status", aggregator)
            rows = status["curated"]
            done = rows and not rows[0]["pending"] and not rows[0]["gaps"]
            if (done and rows[0]["created"] >= self._expected()) or time.monotonic() > deadline:
                break
            time.sleep(LOOK_S)
        scenario = self._scenario
        span = ["--since", str(scenario.first_published_s), "--until", str(scenario.ends_s)]
        ledger = ask_command("agent", "ledger", agent)
        daily, weekly, whole = (
            ask_command("aggregator", "released", aggregator, "--by", by, *span)
            for by in ("day", "week", "none")
        )
        return Played(broker, daily, weekly, whole, status, ledger, self._searched)

    def _expected(self) -> int:
        return self._scenario.days * shared.DAY_SLOTS
