"""What a fleet will know, before it is asked: expected 95 % intervals, and splits of a budget.

A window of k reports in any w slots lowers the number of reports: which slots they fall on does
not depend on values, and how evenly they lie on day and week is its schedule's design effect. θ and
the share of surveys are those that are best for one horizon, as the aggregator chooses them. Hours,
days and weeks are taken to be alike but for their tails, unless the law is of readings in time. A
group of homes stands by its own surveys. What a window's ε is split into is the owner's choice: the
promise for the window is the same, that for one report is not.
Source: `edge_ldp.sums.width`; docs/forecast.md.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import exp
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from edge_ldp.checks import a, exact_integer, optional, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms import Hybrid, Mechanism, SquareWave, Tuned
from edge_ldp.protocol.ledger import Window, scheduled
from edge_ldp.protocol.plan_bounds import PlanBounds, least_theta
from edge_ldp.protocol.schedule import DAYS, design_effect
from edge_ldp.ratio import Epsilon, exact_epsilon, floor_ratio
from edge_ldp.sums.functionals import design_of
from edge_ldp.sums.law import HOURS, WEEK, Cut, Law
from edge_ldp.sums.strata import FITTED
from edge_ldp.sums.width import DIFFER, Question, half_width, tail_sds

NAMES = ("whole", "week", "day", "hour-of-day")
EVERY_SLOT = Window(1, 1, 1)
SHIPPED = Window(8, 97, 1, period=107)  # of quarter hours, as `scheduled` has it
SHARES = tuple(k / 16 for k in range(1, 13))  # of surveys
FEW = 100  # reports of a kind in a stratum: below, an interval is seldom its forecast
LEAST_EPSILON, MOST_EPSILON = Fraction(1, 20), Fraction(10)
DAY_S = 86_400
_DAYS_DIFFER = 0.1  # days and weeks of homes differ less than hours about their line: 0.02 to 0.07
_PER_OCTAVE = 8  # thresholds each time the distance from low doubles
_LOWEST = 1 << 10  # the lowest threshold is this fraction of the range above low
_CELLS = 256  # of the survey in a forecast: within 1 % of 1,024 below _FINE_FROM, 17 % off at ε = 8
_FINE_FROM = 4  # ε of a report
_SIZE = 1024  # of the survey that runs
_SPAN = 1 << 14  # the range of a profile: a mechanism's shape does not depend on it
_Z = NormalDist().inv_cdf(0.975)
_LIMITS = {
    "homes": (1, 10**8),
    "days": (1, 36_500),
    "slots_a_day": (1, 86_400),
}


_FLEET = a("edge_ldp.sums.forecast.Fleet")


@taking(
    homes=exact_integer,
    days=exact_integer,
    window=a("edge_ldp.protocol.ledger.Window"),
    slots_a_day=exact_integer,
    group=optional(exact_integer),
)
@dataclass(frozen=True, slots=True)
class Fleet:
    """Homes that report over some days, each in its window with ε a report.

    `window.streams` share the window; the forecast is of one of them. `group`: homes of a group
    that is asked about too. Raises ParameterError.
    """

    homes: int
    days: int
    epsilon: Epsilon = 1
    window: Window = SHIPPED
    slots_a_day: int = 96
    group: int | None = None

    def __post_init__(self) -> None:
        for name, (least, most) in _LIMITS.items():
            if not least <= getattr(self, name) <= most:
                raise ParameterError(name, f"a whole number from {least:,} to {most:,}")
        if self.group is not None and not 1 <= self.group <= self.homes:
            raise ParameterError("group", f"1 to {self.homes:,}, the homes there are")
        if not LEAST_EPSILON <= exact_epsilon(self.epsilon) <= MOST_EPSILON:
            raise ParameterError("epsilon", f"{float(LEAST_EPSILON):g} to {MOST_EPSILON} a report")

    @property
    def reports(self) -> float:
        """Reports of one stream in all that are expected."""
        return self.homes * self.days * self.slots_a_day * float(self.window.chance)

    @property
    def slot_seconds(self) -> int:
        """Length of a slot, rounded down."""
        return DAY_S // self.slots_a_day

    @property
    def effect(self) -> float:
        """The design effect of the window's schedule: above 1 its slots tell less than others."""
        window = self.window
        return float(
            design_effect(
                window.period,
                self.slot_seconds,
                reports=window.reports,
                streams=window.streams,
                days=min(self.days, DAYS),
            )
        )

    @property
    def total(self) -> Fraction:
        """The ε of a window, all streams together."""
        return exact_epsilon(self.epsilon) * self.window.reports

    @property
    def a_day(self) -> float:
        """The ε of a day, all streams together, on average."""
        return float(self.total) * self.slots_a_day / self.window.period


class ForecastRow(NamedTuple):
    """An expected interval: of `strata` parts each has `reports`; ± `half` unit, ± `percent`.

    `percent` is of the law's mean, None where that is 0. `few`: reports of a kind are below FEW.
    """

    horizon: str
    homes: int
    strata: int
    reports: float
    half: float
    percent: float | None
    few: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """What `fleet` will know, with θ and the share of surveys that are best for `horizon`."""

    fleet: Fleet
    mechanism: str
    horizon: str
    theta: int
    share: float
    rows: tuple[ForecastRow, ...]

    @property
    def asked(self) -> ForecastRow:
        """The row of the horizon that θ was chosen for."""
        return next(row for row in self.rows if row.horizon == self.horizon)

    @property
    def guess(self) -> float:
        """How often who must tell from one report which of two values it was is right at most."""
        return 1 / (1 + exp(-float(exact_epsilon(self.fleet.epsilon))))


class Horizon(NamedTuple):
    """`share` of the values are in its strata, whose tails `differ` about their line."""

    strata: int
    share: float
    differ: float


class Candidate(NamedTuple):
    """A threshold, what lies above it, and the noise of the tail's estimate."""

    theta: int
    cut: Cut
    tail_sd: float


@taking(fleet=_FLEET, law=a("edge_ldp.sums.law.Law"), horizon=a("builtins.str"))
def forecast(fleet: Fleet, law: Law, *, horizon: str = "hour-of-day") -> Forecast:
    """Return the expected half-widths of every horizon that the days hold.

    `horizon`: one of NAMES, for which θ and the share of surveys are chosen. Cost: some 0.1 s, and
    as much for each new ε. Raises ParameterError.
    """
    horizons = horizons_of(fleet)
    if horizon not in horizons:
        what = f"one of {', '.join(horizons)} for {fleet.days} days of {fleet.slots_a_day} slots"
        raise ParameterError("horizon", what)
    stream = stream_mechanism(exact_epsilon(fleet.epsilon))
    unit_variance = stream.unit_variance
    asked = horizons[horizon]
    _, share, best = min(
        (half_of(fleet.reports, asked, law, unit_variance, share, candidate), share, candidate)
        for candidate in tried_thresholds(fleet, law)
        for share in SHARES
    )
    rows = [
        _row(fleet, law, each, fleet.homes, horizons[each], unit_variance, share, best)
        for each in horizons
    ]
    if fleet.group is not None:
        whole = horizons["whole"]
        rows.append(_row(fleet, law, "group", fleet.group, whole, unit_variance, share, best))
    return Forecast(fleet, stream.name, horizon, best.theta, share, tuple(rows))


@taking(fleet=_FLEET)
def splits(fleet: Fleet) -> tuple[Fleet, ...]:
    """Return the fleet with its window's ε split into 1, 2, 4, 8 … reports, and as it is.

    What has an ε a report outside LEAST_EPSILON to MOST_EPSILON is left out.
    """
    window = fleet.window
    most = window.slots * window.streams
    numbers = {1 << power for power in range(most.bit_length())} | {window.reports}
    return tuple(
        replace(
            fleet,
            epsilon=fleet.total / number,
            window=scheduled(number, window.slots, window.streams, fleet.slot_seconds),
        )
        for number in sorted(numbers)
        if number <= most and LEAST_EPSILON <= fleet.total / number <= MOST_EPSILON
    )


def horizons_of(fleet: Fleet) -> dict[str, Horizon]:
    """Return what may be asked of a fleet over its days, by name."""
    weeks = fleet.days // WEEK
    found = {"whole": Horizon(1, 1.0, 0.0)}
    if weeks > 1:
        found["week"] = Horizon(weeks, weeks * WEEK / fleet.days, _DAYS_DIFFER)
    if fleet.days > 1:
        found["day"] = Horizon(fleet.days, 1.0, _DAYS_DIFFER)
    if fleet.slots_a_day >= HOURS:
        found["hour-of-day"] = Horizon(HOURS, 1.0, DIFFER)
    return found


@lru_cache(maxsize=64)
def stream_mechanism(epsilon: Fraction) -> Mechanism:
    """Return the stream mechanism, a ready table where there is one."""
    with suppress(ParameterError):
        return Tuned(epsilon=epsilon, low=0, high=_SPAN)
    return Hybrid(epsilon=epsilon, low=0, high=_SPAN)


def tried_thresholds(fleet: Fleet, law: Law) -> list[Candidate]:
    """Return the thresholds: evenly by the logarithm of their distance from low.

    None that the devices' default policy refuses. The variance of values counts as often as the
    schedule's design effect says, once at the least.
    """
    span = law.ceiling - law.low
    steps = np.geomspace(max(1, span // _LOWEST), span, 10 * _PER_OCTAVE + 1)
    epsilon = exact_epsilon(fleet.epsilon)
    ratio, of = floor_ratio(epsilon), stream_mechanism(epsilon)
    least = least_theta(of, PlanBounds(), low=law.low, ceiling=law.ceiling, ratio=ratio)
    wanted = law.low + steps.round().astype(np.int64)
    thetas = np.unique(np.maximum(wanted, min(least, law.ceiling))).tolist()
    return _candidates(fleet, law, thetas)


def _candidates(fleet: Fleet, law: Law, thetas: Sequence[int]) -> list[Candidate]:
    epsilon = exact_epsilon(fleet.epsilon)
    size = min(_CELLS if epsilon < _FINE_FROM else _SIZE, law.ceiling - law.low + 1)
    survey = SquareWave(epsilon=epsilon, low=law.low, high=law.ceiling, size=size)
    sds = tail_sds(survey, thetas, law.masses(design_of(survey).edges))
    effect = max(1.0, fleet.effect)
    cuts = [law.cut(theta) for theta in thetas]
    return [
        Candidate(theta, cut._replace(variance=effect * cut.variance), tail_sd)
        for theta, cut, tail_sd in zip(thetas, cuts, sds.tolist(), strict=True)
    ]


def half_of(  # noqa: PLR0913, PLR0917 (the arguments of one formula)
    reports: float,
    horizon: Horizon,
    law: Law,
    unit_variance: float,
    share: float,
    candidate: Candidate,
) -> float:
    """Return half the width of the mean's interval under one θ and share of surveys, in W."""
    theta, cut, tail_sd = candidate
    span = theta - law.low
    width = half_width(
        Question(reports * horizon.share, horizon.strata),
        unit_variance=unit_variance,
        span=span,
        share=share,
        tail_sd=tail_sd,
        reach=law.ceiling - theta,
        tail=cut.tail,
        variance=cut.variance,
        slope=cut.slope,
        differ=horizon.differ,
    )
    # values may lie anywhere in a survey's cell: as `means` allows for, at the upper end
    above = min(1.0, (cut.mean + _Z * width.noise**0.5 - law.low) / span)
    slack: float = above * ((law.ceiling - law.low) // _SIZE) / 4
    return width.half + slack


def _row(  # noqa: PLR0913, PLR0917 (the arguments of one formula)
    fleet: Fleet,
    law: Law,
    name: str,
    homes: int,
    horizon: Horizon,
    unit_variance: float,
    share: float,
    candidate: Candidate,
) -> ForecastRow:
    reports = fleet.reports * homes / fleet.homes
    each = reports * horizon.share / horizon.strata
    cases = [(horizon, candidate)]
    if len(parts := law.parts.get(name, ())) > 1:
        cases = _apart(fleet, parts, horizon, candidate.theta, each * (1 - share))
    halves = [half_of(reports, of, law, unit_variance, share, part) for of, part in cases]
    half = sum(halves) / len(halves)
    percent = 100 * half / abs(law.mean) if law.mean else None
    few = each * min(share, 1 - share) < FEW
    return ForecastRow(name, homes, horizon.strata, each, half, percent, few)


def _apart(
    fleet: Fleet, parts: Sequence[Law], horizon: Horizon, theta: int, streams: float
) -> list[tuple[Horizon, Candidate]]:
    """Return each part by its own law, and how far tails lie off a line in the means.

    The line is found from means of `streams` reports: it is the flatter, the less these differ
    beside their noise.
    """
    found = [_candidates(fleet, part, [theta])[0] for part in parts]
    means, tails, variances = np.array(
        [(one.cut.mean, one.cut.tail, one.cut.variance) for one in found]
    ).T
    low, ceiling = parts[0].low, parts[0].ceiling
    unit_variance = stream_mechanism(exact_epsilon(fleet.epsilon)).unit_variance
    noise = (unit_variance * ((theta - low) / 2) ** 2 + variances.mean()) / streams
    means, tails = means - means.mean(), tails - tails.mean()
    slope = float(means @ tails / (means @ means + (len(parts) - 1) * noise))
    left = float(tails @ (tails - slope * means)) / max(1, len(parts) - FITTED)
    least = np.finfo(float).eps * (ceiling - low)  # of a tail, as they differ by shares of it
    apart = []
    for one in found:
        cut = one.cut._replace(tail=max(one.cut.tail, least), slope=slope)
        differ = max(0.0, left) ** 0.5 / cut.tail
        apart.append((horizon._replace(differ=differ), one._replace(cut=cut)))
    return apart
