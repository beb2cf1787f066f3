"""CPU time of clients, best of several rounds; a round runs every client once, in one order.

So a noisy minute on a shared machine costs each client at most one round.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

LEAST_S = 0.05  # CPU time of one round of one client


@dataclass(frozen=True, slots=True)
class Case:
    """One client: `run(values(n))` makes n reports. Only `run` is timed.

    `at_once`: what an array client is given, or 0 for one that is called once a report.
    """

    library: str
    what: str
    values: Callable[[int], Any]
    run: Callable[[Any], object]
    at_once: int = 0


def best_of(cases: list[Case], rounds: int) -> list[float]:
    """Return each case's reports per second of CPU time, the best of `rounds` rounds."""
    inputs = [_input(case) for case in cases]
    fastest = [0.0] * len(cases)
    for _ in range(rounds):
        for at, (case, (count, values)) in enumerate(zip(cases, inputs, strict=True)):
            fastest[at] = max(fastest[at], count / _seconds(case, values))
    return fastest


def one_by_one(perturb: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return a run of scalar calls. The loop's own time is part of every figure."""

    def run(values: list[Any]) -> None:
        for value in values:
            perturb(value)

    return run


def _input(case: Case) -> tuple[int, Any]:
    """Return (n, values): enough for LEAST_S. It also warms up what compiles at the first call."""
    count = case.at_once or 64
    values = case.values(count)
    _seconds(case, values)
    while not case.at_once and _seconds(case, values) < LEAST_S:
        count *= 2
        values = case.values(count)
    return count, values


def _seconds(case: Case, values: Any) -> float:
    started = time.process_time()
    case.run(values)
    return time.process_time() - started
