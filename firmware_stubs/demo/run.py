"""The run itself: start every process, watch, let everything be accounted for, ask, stop."""

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firmware_stubs.data import HOUSEHOLDS
from firmware_stubs.demo import files
from firmware_stubs.demo.ask import ask_command
from firmware_stubs.demo.broker import (
    BrokerChoice,
    choose_broker,
    search_path,
    wait_until_listening,
)
from firmware_stubs.demo.children import Crew
from firmware_stubs.demo.scenario import BASE_WH, BINS_W, STREAM, Scenario, agent_name, registers_wh
from firmware_stubs.demo.search import Searched, build_patterns, search_directory
from firmware_stubs.demo.watch import FleetLog, Snapshot, View

LOOK_S = 0.1  # real seconds between two looks at the processes
PORTS_S = 60.0
LATE_FACTOR = 4  # a machine this much too slow still ends, late
PATIENCE_S = 300.0
SETTLE_S = 60.0
AGENTS = tuple(agent_name(which) for which in range(HOUSEHOLDS))
METERS = tuple(f"meter-{which + 1}" for which in range(HOUSEHOLDS))


class TooSlowError(Exception):
    """Something did not happen in time; the text says what."""


class Playing:
    """What the run of any scenario does: it waits for its processes, and sees that they live."""

    def __init__(self, crew: Crew, started_s: float, seconds: float) -> None:
        self._crew = crew
        self._latest_s = started_s + LATE_FACTOR * seconds + PATIENCE_S

    def _wait(self, phase: str, done: Callable[[], bool], patience_s: float | None = None) -> None:
        """Show the run until `done()`; raises ChildDiedError or TooSlowError."""
        deadline = self._latest_s if patience_s is None else time.time() + patience_s
        while not done():
            self._crew.check()
            if time.time() > deadline:
                raise TooSlowError(f"{phase}: not done in time")
            self._pass(phase)
            time.sleep(LOOK_S)
        self._crew.check()

    def _pass(self, phase: str) -> None:
        """Show that a phase goes on."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Played:
    """What a run left: the aggregator's answers, and the search for readings.

    `created`: reports that each device made, by its own account.
    """

    broker: str
    query: dict[str, Any]
    status: dict[str, Any]
    created: dict[str, int]
    searched: Searched


class Run(Playing):
    """One run in `place`, in or at `root`; call `begin`, `play_half` and `play_on` once."""

    def __init__(self, scenario: Scenario, place: Path, crew: Crew, view: View, root: Path) -> None:
        super().__init__(crew, scenario.started_s, scenario.seconds)
        self._scenario = scenario
        self._place = place
        self._root = root
        self._view = view
        self._begun_s = time.monotonic()
        self._log = FleetLog(Path(os.devnull))  # until the homes are started
        self._broker = ""
        self.config = Path()  # the aggregator's, once the run has begun
        self._searched = Searched(0, 0, ())
        self._patterns = [
            build_patterns([base], registers_wh(base, powers))
            for base, powers in zip(BASE_WH, scenario.agent_values(), strict=True)
        ]

    def begin(self, broker_kind: str) -> bool:
        """Start everything; say whether the homes had a plan before the first slot.

        Raises what `play_on` does, or NoBrokerError.
        """
        self._show("starting broker, aggregator, meters, agents and homes")
        broker = choose_broker(broker_kind, self._place, search_path())
        self._broker, self.config = broker.name, self._start(broker)
        self._wait("starting", lambda: self._has_plan() or self._has_begun())
        return self._has_plan()

    def _has_begun(self) -> bool:
        return time.time() >= self._scenario.started_s

    def _has_plan(self) -> bool:
        return bool(self._log.thetas)

    def play_half(self) -> None:
        """Play the first half; raises what `play_on` does.

        Searches the agents' files in passing, while their write-ahead logs are full.
        """
        half = self._scenario.started_s + self._scenario.seconds / 2
        self._wait("playing", lambda: time.time() >= half)
        self._search()

    def play_on(self) -> Played:
        """Play to the end, settle and ask; raises ChildDiedError, TooSlowError or AskError."""
        self._wait("playing", lambda: self._crew.ended("homes", *METERS))
        self._search()
        self._show("stopping the agents")
        self._crew.stop(*AGENTS)
        self._search()
        self._show("asking for figures")
        return self._answers()

    def _start(self, broker: BrokerChoice) -> Path:
        """Start everything, broker first; meters before agents, which look for their port."""
        place, scenario, start = self._place, self._scenario, self._crew.start
        start("broker", broker.command, place)
        for which, name in enumerate(METERS):
            start(name, files.meter_command(place, which, scenario), place, may_end=True)
        wait_until_listening(broker.port)
        config = files.aggregator_files(place, scenario, broker)
        start("aggregator", files.command("aggregator", "run", "-c", str(config)), place)
        homes = start("homes", files.fleet_command(scenario, broker), place, may_end=True)
        self._log = FleetLog(homes.stdout)
        links = [files.meter_link(place, which) for which in range(HOUSEHOLDS)]
        self._wait("starting", lambda: all(link.is_symlink() for link in links), PORTS_S)
        for which, name in enumerate(AGENTS):
            own = files.agent_files(place, which, scenario, broker)
            start(name, files.command("agent", "run", "-c", str(own)), own.parent)
        return config

    def _pass(self, phase: str) -> None:
        scenario = self._scenario
        over = scenario.day(scenario.now_s(time.time())) >= scenario.days
        self._show("sending what is left" if over else phase)

    def _show(self, phase: str) -> None:
        log = self._log
        log.update()
        self._view.show(
            Snapshot(
                elapsed_s=time.monotonic() - self._begun_s,
                phase=phase,
                day=self._scenario.day(self._scenario.now_s(time.time())),
                days=self._scenario.days,
                created=log.created,
                confirmed=log.confirmed,
                thetas=tuple(log.thetas),
                usages=tuple(self._crew.usages()),
            )
        )

    def _search(self) -> None:
        """Look through what the agents wrote, also in a run that began too late."""
        for name, patterns in zip(AGENTS, self._patterns, strict=True):
            for written in self._root.rglob(name):
                self._searched += search_directory(written, patterns)

    def _answers(self) -> Played:
        """Ask all at the same time, until nothing is pending; a minute at most."""
        deadline = time.monotonic() + SETTLE_S
        by_hour = ["--stream", STREAM, "--by", "hour-of-day"]
        for low, high in BINS_W:
            by_hour += ["--range", f"{low}:{high}"]
        configs = [self._place / name / "agent.toml" for name in AGENTS]
        with ThreadPoolExecutor() as asking:
            while True:
                self._crew.check()
                query = asking.submit(ask_command, "aggregator", "query", self.config, *by_hour)
                agents = [
                    asking.submit(ask_command, "agent", "status", config) for config in configs
                ]
                status = asking.submit(
                    ask_command, "aggregator", "status", self.config, "--exact"
                ).result()
                pending = any(row["pending"] for row in status["completeness"])
                if pending and time.monotonic() < deadline:
                    time.sleep(LOOK_S)
                    continue
                created = dict(self._log.homes)
                for name, answer in zip(AGENTS, agents, strict=True):
                    created[name] = sum(row["created"] for row in answer.result()["streams"])
                return Played(self._broker, query.result(), status, created, self._searched)
