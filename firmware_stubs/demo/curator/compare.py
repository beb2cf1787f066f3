"""The released daily sums beside the true ones: rows, coverage, accounting, verdict, JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from firmware_stubs.demo.curator.run import Played
from firmware_stubs.demo.curator.scenario import (
    DAY_S,
    DAY_SLOTS,
    EPSILON,
    SLOT_S,
    THETA_DAYS,
    Scenario,
)

CHANCE = 1e-5  # at most, that more intervals miss than may when each covers 95 %
KWH = SLOT_S / 3600 / 1000  # of a watt over a slot


@dataclass(frozen=True, slots=True)
class Row:
    """One range of days: energies in kWh; `truth` of readings as they were, `cut` at θ."""

    day: int
    days: int
    truth: float
    cut: float
    released: float
    low: float
    high: float

    @property
    def held(self) -> bool:
        """Whether the interval holds the sum of readings cut at θ, which it is about."""
        return self.low <= self.cut <= self.high


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything the demo shows."""

    scenario: Scenario
    played: Played
    theta_w: int
    days: tuple[Row, ...]
    weeks: tuple[Row, ...]
    whole: Row

    @property
    def held(self) -> int:
        """Daily intervals that hold."""
        return sum(row.held for row in self.days)

    @property
    def allowed_misses(self) -> int:
        """How many daily intervals may miss."""
        days = len(self.days)
        # as scipy.stats.binom.isf, which would take a second to load
        return next(k for k in range(days + 1) if scipy.special.bdtrc(k, days, 0.05) <= CHANCE)

    @property
    def account(self) -> Mapping[str, int]:
        """What became of every released value, by device and aggregator."""
        found = self.played.status["curated"]
        fields = ("created", "counted", "rejected", "expired", "pending", "duplicates")
        return {name: sum(row[name] for row in found) for name in fields}

    @property
    def reasons(self) -> list[str]:
        """Why the demo failed; empty when it did what it promises."""
        missed = len(self.days) - self.held
        account, released = self.account, self.played.ledger["curated"]["released"]
        expected = self.scenario.days * DAY_SLOTS
        reasons = []
        if missed > self.allowed_misses:
            reasons.append(
                f"{missed} of {len(self.days)} daily intervals miss; {self.allowed_misses} may"
            )
        if len(self.days) < self.scenario.days or released < expected:
            slower = 3 * int(self.scenario.seconds)
            reasons.append(
                f"{released:,} values released, {expected:,} were to be: if this machine was too "
                f"slow for the clock, play with --seconds {slower}"
            )
        if account["counted"] != released or account["created"] != released:
            reasons.append(f"accounting: {released:,} released, {account['counted']:,} counted")
        return reasons + self.played.searched.reasons


def compare(scenario: Scenario, played: Played) -> Comparison:
    """Return the comparison of a run; θ is what the stream itself says."""
    stream = played.daily["released"][0]
    theta = int(stream["theta"])
    values = scenario.values[THETA_DAYS * DAY_SLOTS :]
    truth = values.reshape(-1, DAY_SLOTS).sum(axis=1)
    cut = np.minimum(values, theta).reshape(-1, DAY_SLOTS).sum(axis=1)
    days, weeks, whole = (
        tuple(
            _row(one, scenario, truth, cut)
            for one in answer["released"][0]["sums"]
            if one["readings"]
        )
        for answer in (played.daily, played.weekly, played.whole)
    )
    return Comparison(scenario, played, theta, days, weeks, whole[0])


def to_json(found: Comparison) -> dict[str, Any]:
    """Return everything as one object; the keys are in the command's help."""
    played, scenario = found.played, found.scenario
    return {
        "ok": not found.reasons,
        "reasons": found.reasons,
        "run": {
            "mode": "curator",
            "broker": played.broker,
            "days": scenario.days,
            "theta_days": THETA_DAYS,
            "readings": scenario.slots,
            "rate": scenario.rate,
        },
        "privacy": {
            "epsilon_per_reading": float(EPSILON),
            "slot_seconds": SLOT_S,
            "theta_w": found.theta_w,
            "ledger": played.ledger["curated"],
        },
        "held": found.held,
        "missed_allowed": found.allowed_misses,
        "whole": _fields(found.whole),
        "weeks": [_fields(row) for row in found.weeks],
        "days": [_fields(row) for row in found.days],
        "accounting": dict(found.account),
        "search": played.searched.to_json(),
    }


def _row(given: Mapping[str, Any], scenario: Scenario, truth: Any, cut: Any) -> Row:
    first = (given["from_s"] - scenario.first_published_s) // DAY_S
    end = -(-(given["to_s"] - scenario.first_published_s) // DAY_S)
    return Row(
        day=int(first),
        days=int(end - first),
        truth=float(truth[first:end].sum() * KWH),
        cut=float(cut[first:end].sum() * KWH),
        released=given["total"] * KWH,
        low=given["low"] * KWH,
        high=given["high"] * KWH,
    )


def _fields(row: Row) -> dict[str, Any]:
    return {
        "day": row.day,
        "days": row.days,
        "true_kwh": round(row.truth, 4),
        "true_cut_kwh": round(row.cut, 4),
        "released_kwh": round(row.released, 4),
        "low_kwh": round(row.low, 4),
        "high_kwh": round(row.high, 4),
        "held": row.held,
    }
