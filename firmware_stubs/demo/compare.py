"""The aggregator's answers beside the truth: rows, accounting, verdict, and their JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from edge_ldp.protocol.ledger import scheduled
from edge_ldp.ratio import floor_ratio
from firmware_stubs.demo.ask import AskError
from firmware_stubs.demo.run import Played
from firmware_stubs.demo.scenario import DAY_S, DAY_SLOTS, DEFAULT_WINDOW, EPSILON, SLOT_S, Scenario
from firmware_stubs.demo.search import Searched
from firmware_stubs.demo.shipped import MWH, AsShipped, Expected, as_shipped
from firmware_stubs.demo.truth import HOURS, Interval, Plain, TrueSums, Truth

ALLOWED_MISSES = 9  # of 24; more happens with probability 1e-7 when every interval covers 95 %


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the comparison: an hour of the day, or the whole run (`hour` None).

    Means of one home in W, totals of all homes in MWh.
    """

    hour: int | None
    truth: float
    estimate: Interval
    untruncated: Interval
    true_total: float
    total: Interval

    @property
    def held(self) -> bool:
        """Whether the interval holds the truth."""
        return self.estimate.holds(self.truth)

    def percent(self, watts: float) -> float:
        """Return a power as a percentage of the truth."""
        return 100 * watts / self.truth if self.truth else float("nan")


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What became of every report, added up over the devices.

    `created` by the devices' own account; `missing` and `surplus`: reports of single devices that
    the aggregator accounts for fewer, or counted more, than were created.
    """

    created: int
    counted: int
    rejected: int
    expired: int
    pending: int
    duplicates: int
    missing: int
    surplus: int

    @property
    def exact(self) -> bool:
        """Whether each report created was counted exactly once."""
        return self.created == self.counted and not (self.missing or self.surplus)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything the demo shows; sums are about the slots from `first_slot` of the run on."""

    scenario: Scenario
    broker: str
    readings: int
    clamped: int
    first_slot: int
    whole: Row
    hours: tuple[Row, ...]
    thetas: tuple[Mapping[str, Any], ...]
    density: Mapping[str, Any]
    shares: tuple[Mapping[str, float], ...]
    account: Reconciliation
    searched: Searched
    shipped: AsShipped | None

    @property
    def thetas_played(self) -> list[Mapping[str, Any]]:
        """The plans issued before the last reading; the clock goes on while all is settled."""
        end_s = self.scenario.origin_s + self.scenario.days * DAY_S
        return [row for row in self.thetas if row["issued_s"] < end_s]

    @property
    def held(self) -> int:
        """How many of the 24 hour-of-day intervals hold the truth."""
        return sum(row.held for row in self.hours)

    @property
    def reasons(self) -> list[str]:
        """Why the demo failed; empty when it did what it promises."""
        missed = len(self.hours) - self.held
        account = self.account
        reasons = [] if self.shipped is None else self.shipped.reasons
        if missed > ALLOWED_MISSES:
            reasons.append(f"{missed} of 24 intervals miss the truth; {ALLOWED_MISSES} may")
        if not account.exact:
            reasons.append(
                f"accounting: {account.created:,} reports created, {account.counted:,} counted "
                f"({account.missing:,} lost, {account.surplus:,} more than created)"
            )
        return reasons + self.searched.reasons


def compare(
    scenario: Scenario, played: Played, truth: Truth, plain: Plain, expected: Expected
) -> Comparison:
    """Put the aggregator's answers beside the truth; raises AskError when an hour has no answer."""
    query = played.query
    first = max(0, (query["from_s"] - scenario.origin_s) // SLOT_S)
    slots = slice(first, scenario.slots)
    (known, hours_known), (theirs, hours_theirs) = truth.over(slots), plain.over(slots)
    answers = {group["group"]: group for group in query["groups"]}
    if short := [hour for hour in range(HOURS) if hour not in answers]:
        remedy = "play more --weeks, or give it more --seconds"
        raise AskError(f"θ came too late for an answer to {len(short)} of 24 hours: {remedy}")
    return Comparison(
        scenario=scenario,
        broker=played.broker,
        readings=truth.values,
        clamped=truth.clamped,
        first_slot=first,
        whole=row_of(None, query["whole"], known, theirs),
        hours=tuple(
            row_of(hour, answers[hour], hours_known[hour], hours_theirs[hour])
            for hour in range(HOURS)
        ),
        thetas=tuple(query["theta"]),
        density=query["density"],
        shares=tuple(query["ranges"]),
        account=reconcile(played.created, played.status["completeness"]),
        searched=played.searched,
        shipped=as_shipped(scenario, query["sums"], expected),
    )


def row_of(hour: int | None, answer: Mapping[str, Any], known: TrueSums, plain: Interval) -> Row:
    """Return the line for one answer of `aggregator query --json`, whose totals are W × slots."""
    totals = (answer[name] * MWH for name in ("total", "total_low", "total_high"))
    return Row(
        hour=hour,
        truth=known.mean,
        estimate=Interval(answer["mean"], answer["low"], answer["high"]),
        untruncated=plain,
        true_total=known.total * MWH,
        total=Interval(*totals),
    )


def reconcile(created: Mapping[str, int], rows: Sequence[Mapping[str, Any]]) -> Reconciliation:
    """Hold what each device created against the aggregator's completeness rows."""
    names = ("counted", "rejected", "expired", "pending", "duplicates")
    counted = dict.fromkeys(created, 0)
    settled = dict.fromkeys(created, 0)
    for row in rows:
        device = row["device"]
        counted[device] = counted.get(device, 0) + row["counted"]
        settled[device] = settled.get(device, 0) + sum(row[name] for name in names[:4])
    return Reconciliation(
        created=sum(created.values()),
        **{name: sum(row[name] for row in rows) for name in names},
        missing=sum(max(0, made - settled[device]) for device, made in created.items()),
        surplus=sum(max(0, n - created.get(device, 0)) for device, n in counted.items()),
    )


def to_json(found: Comparison) -> dict[str, Any]:
    """Return the documented object of `edge-ldp demo --json`, but for what only main knows."""
    return {
        "ok": not found.reasons,
        "reasons": found.reasons,
        "run": _run_json(found),
        "privacy": privacy(),
        "whole": _row_json(found.whole),
        "hours": [_row_json(row) for row in found.hours],
        "held": found.held,
        "missed_allowed": ALLOWED_MISSES,
        "shipped": None if found.shipped is None else found.shipped.to_json(),
        "theta": list(found.thetas),
        "density": dict(found.density),
        "shares": list(found.shares),
        "accounting": {**asdict(found.account), "exact": found.account.exact},
        "search": found.searched.to_json(),
    }


def privacy() -> dict[str, Any]:
    """Return ε per report and day, in the demo and under the window that ships."""
    per_report = floor_ratio(EPSILON).epsilon
    reports, slots = DEFAULT_WINDOW
    period = scheduled(reports, slots, 1, DAY_S // DAY_SLOTS).period
    return {
        "epsilon_per_report": round(per_report, 6),
        "epsilon_per_day": round(per_report * DAY_SLOTS, 2),
        "default_window": {"reports": reports, "slots": slots, "period": period},
        "default_epsilon_per_window": round(per_report * reports, 2),
        "default_epsilon_per_day": round(per_report * DAY_SLOTS * reports / period, 2),
    }


def _run_json(found: Comparison) -> dict[str, Any]:
    scenario = found.scenario
    return {
        "broker": found.broker,
        "homes": scenario.devices,
        "agents": scenario.devices - scenario.homes,
        "weeks": scenario.weeks,
        "readings": found.readings,
        "clamped_readings": found.clamped,
        "first_day_of_sums": round(found.first_slot / DAY_SLOTS, 3),
        "rate": scenario.rate,
    }


def _row_json(row: Row) -> dict[str, Any]:
    estimate, plain = row.estimate, row.untruncated
    return {
        **({} if row.hour is None else {"hour": row.hour}),
        "true_mean_w": round(row.truth, 2),
        "mean_w": round(estimate.mean, 2),
        "low_w": round(estimate.low, 2),
        "high_w": round(estimate.high, 2),
        "half_width_percent": round(row.percent(estimate.half_width), 2),
        "held": row.held,
        "true_total_mwh": round(row.true_total, 3),
        "total_mwh": round(row.total.mean, 3),
        "total_low_mwh": round(row.total.low, 3),
        "total_high_mwh": round(row.total.high, 3),
        "untruncated_mean_w": round(plain.mean, 2),
        "untruncated_low_w": round(plain.low, 2),
        "untruncated_high_w": round(plain.high, 2),
        "untruncated_held": plain.holds(row.truth),
    }
