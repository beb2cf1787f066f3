"""The same homes under the window that ships, in both modes: their daily sums, and reports.

Sums come from the run, through broker and aggregator; of reports the run sends every slot, so what
8 in any 97 would tell is what `edge-ldp forecast` expects of so many homes of their mean.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from statistics import mean
from typing import Any

import numpy as np

from edge_ldp.arrays import Ints
from firmware_stubs.demo.ask import ask_json
from firmware_stubs.demo.scenario import (
    CEILING_W,
    DAY_S,
    DAY_SLOTS,
    DEFAULT_WINDOW,
    EPSILON,
    LOW_W,
    SLOT_S,
    Scenario,
)
from firmware_stubs.demo.truth import Interval

MWH = SLOT_S / 3600 / 1e6  # of a watt over a slot
ALLOWED_DAYS = 14  # of 49; more miss with probability 1e-8 when every interval covers 95 %


@dataclass(frozen=True, slots=True)
class Expected:
    """What reports are expected to tell of these homes, ± %, and the homes' true days, MWh."""

    days: tuple[float, ...]
    whole_percent: float
    day_percent: float


@dataclass(frozen=True, slots=True)
class SummedTotal:
    """A time's total of all simulated homes, MWh: true, and by their sums."""

    truth: float
    total: Interval

    @property
    def held(self) -> bool:
        """Whether the interval holds the truth."""
        return self.total.holds(self.truth)

    @property
    def percent(self) -> float:
        """Half the interval, of the truth."""
        return 100 * self.total.half_width / self.truth


@dataclass(frozen=True, slots=True)
class AsShipped:
    """What daily sums told of the run and of each of its days, beside what reports would."""

    homes: int
    whole: SummedTotal
    days: tuple[SummedTotal, ...]
    expected: Expected

    @property
    def held(self) -> int:
        """How many days' intervals hold the truth."""
        return sum(row.held for row in self.days)

    @property
    def reasons(self) -> list[str]:
        """Why sums did not do what they promise."""
        missed = len(self.days) - self.held
        if missed <= ALLOWED_DAYS:
            return []
        return [f"{missed} of {len(self.days)} days' sums miss the truth; {ALLOWED_DAYS} may"]

    @property
    def lines(self) -> tuple[tuple[str, ...], ...]:
        """The whole run and its days, as TITLES say."""
        whole, width = self.whole, mean(row.percent for row in self.days)
        days = f"{self.held} of {len(self.days)}"
        return (
            (
                "whole run",
                f"{whole.truth:,.1f}",
                f"{whole.total.mean:,.1f}",
                "yes" if whole.held else "no",
                f"{whole.percent:.1f}",
                f"{self.expected.whole_percent:.1f}",
            ),
            ("single days", "", "", days, f"{width:.0f}", f"{self.expected.day_percent:.0f}"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it for machines."""
        return {
            "homes": self.homes,
            "whole": asdict(self.whole) | {"held": self.whole.held, "percent": self.whole.percent},
            "days": len(self.days),
            "days_held": self.held,
            "reports_whole_percent": self.expected.whole_percent,
            "reports_day_percent": self.expected.day_percent,
        }


TITLES = ("", "true MWh", "sums MWh", "held", "sums ± %", "reports ± %")


def expect(values: Ints, scenario: Scenario) -> Expected:
    """Return what is known of the simulated homes' readings, shape (homes, slots).

    Raises AskError.
    """
    inside = np.clip(values, LOW_W, CEILING_W)
    homes = ("--homes", str(len(values)), "--days", str(scenario.days))
    window = ("--epsilon", str(EPSILON), "--window", "/".join(map(str, DEFAULT_WINDOW)))
    spread = ("--ceiling", str(CEILING_W), "--mean", f"{inside.mean():.0f}", "--mode", "local")
    (found,) = ask_json("forecast", "forecast", *homes, *window, *spread)["forecasts"]
    percents = {row["horizon"]: row["percent"] for row in found["rows"]}
    days = inside.sum(axis=0).reshape(-1, DAY_SLOTS).sum(axis=1) * MWH
    return Expected(tuple(days.tolist()), percents["whole"], percents["day"])


def as_shipped(
    scenario: Scenario, sums: Mapping[str, Any] | None, expected: Expected
) -> AsShipped | None:
    """Put the aggregator's sums beside the truth of the same days; None without any."""
    if sums is None or not sums["periods"]:
        return None
    days = []
    for period in sums["periods"]:
        at = (period["from_s"] - scenario.origin_s) // DAY_S
        days.append(SummedTotal(expected.days[at], _mwh(period)))
    truth = sum(row.truth for row in days)
    return AsShipped(
        sums["whole"]["homes"], SummedTotal(truth, _mwh(sums["whole"])), tuple(days), expected
    )


def _mwh(told: Mapping[str, Any]) -> Interval:
    ends = (told[f"energy_kwh{end}"] / 1000 for end in ("", "_low", "_high"))
    return Interval(*ends)
