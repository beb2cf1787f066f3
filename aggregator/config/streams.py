"""[[streams]]: what is measured, and how it is asked for."""

import re
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms import Hybrid, Mechanism, SquareWave, Tuned
from edge_ldp.period_sums import PeriodLayout
from edge_ldp.protocol.plan_bounds import PlanBounds, least_theta
from edge_ldp.ratio import floor_ratio
from edge_ldp.service.typed_table import Form, Range
from edge_ldp.sums import Question

DAY_S = 86_400
SHARE_DEN = 1 << 16

HORIZON = "hour-of-day over 28 days"
NO_PLAN_YET = "no plan was issued yet: start the service"
HORIZON_DAYS = 28  # of a horizon that is a number of values
SURVEY_SHARE = {"adaptive": Decimal("0.5"), "published": Decimal("0.0625")}  # to begin with
_HORIZON = r"(whole|hour-of-day|day|week) over ([1-9][0-9]{0,3}) days"
QUANTITIES = {"W": "power", "Wh": "energy_import", "dm3": "gas"}  # by unit, where none is given
_HOURS = 24
_WEEK = 7

Asked = Annotated[
    str, Form(_HORIZON, '"whole", "week", "day" or "hour-of-day", then "over N days"')
]
Positive = Annotated[int, Range(ge=1)]


@dataclass(frozen=True, slots=True)
class HomeSums:
    """[streams.home_sums]: sums that invitations ask homes for, as [streams.sums] of the agents.

    `share` of the window's ε; each home's owner decides, and an aggregator counts any layout.
    """

    share: Annotated[Decimal, Range(gt=0, le=1)]
    days: Annotated[int, Range(ge=1, le=366)] = 1
    cells: Annotated[int, Range(ge=1, le=96)] = 1
    block_hours: Annotated[int, Range(ge=1, le=24)] = 1
    offset_s: Annotated[int, Range(ge=0, le=DAY_S - 1)] = 0

    def check(self, slot_seconds: int) -> None:
        """Raise ParameterError unless a home can make them of slots of this length."""
        PeriodLayout.of_hours(slot_seconds, self.days, self.cells, self.offset_s, self.block_hours)


@dataclass(frozen=True, slots=True)
class StreamTable:
    """[[streams]]: one quantity of the fleet, in integers of its unit, and how it is asked for.

    `horizon`: what its operator asks for, which θ and the share of surveys are chosen for: "whole",
    "week", "day" or "hour-of-day" "over N days"; or a number of values (devices × slots) that are
    asked for as a whole. `theta_halvings`: as the agents' [policy.plans]: θ is at least the range
    halved so often, and higher where `size` makes a report sharper than they admit. `mechanism` is
    that of stream reports: `size` is the hybrid's, `bits` the tuned table's; "chosen": whichever
    has the smaller variance. `theta`: how θ is chosen, "published" being the papers' rule.
    `survey_share`: chosen with θ unless given. `quantity`: of the meter, for
    invitations; told from the unit unless given. `home_sums`: what they ask for besides.
    """

    name: str
    id: Annotated[int, Range(ge=0, le=255)]
    unit: Annotated[str, Form(r"(?s:.{1,16})", "1 to 16 characters")]
    ceiling: int
    epsilon: Decimal | int
    horizon: Positive | Asked = HORIZON
    theta: Literal["adaptive", "published"] = "adaptive"
    low: int = 0
    slot_seconds: Annotated[int, Range(ge=1, le=DAY_S)] = 900
    mechanism: Literal["hybrid", "tuned", "chosen"] = "hybrid"
    size: Annotated[int, Range(ge=2, le=16_384)] = 16
    theta_halvings: Annotated[int, Range(ge=0, le=40)] = PlanBounds().theta_halvings
    bits: Literal[3, 4] = 4
    survey_size: Annotated[int, Range(ge=2, le=16_384)] = 1024
    survey_share: Decimal | None = None
    min_survey_reports: Positive = 4096
    revise_slots: Positive = 96 * 7
    hysteresis: Decimal = Decimal("0.1")
    bucket_slots: Annotated[int, Range(ge=1, le=65_536)] = 4
    utc_offset_s: Annotated[int, Range(ge=-DAY_S, le=DAY_S)] = 0
    quantity: str | None = None
    home_sums: HomeSums | None = None

    @property
    def use_quantity(self) -> str:
        """The quantity as given, else the one that the unit is of, else the stream's name."""
        return self.quantity or QUANTITIES.get(self.unit, self.name)

    @property
    def is_summed_alone(self) -> bool:
        """Whether homes give sums of it and report no single value, so that it needs no plan."""
        return self.home_sums is not None and self.use_quantity == "gas"

    @property
    def no_plan(self) -> str:
        """Why it has no plan, in words."""
        return "no plan: homes give its sums alone" if self.is_summed_alone else NO_PLAN_YET

    @property
    def share(self) -> tuple[int, int]:
        """`survey_share` as the integers of a coin; where it is chosen, the one to begin with."""
        wanted = SURVEY_SHARE[self.theta] if self.survey_share is None else self.survey_share
        return round(wanted * SHARE_DEN), SHARE_DEN

    @property
    def horizon_text(self) -> str:
        """`horizon` as people read it."""
        if isinstance(self.horizon, int):
            return f"{self.horizon:,} values as a whole"
        return self.horizon

    @property
    def horizon_days(self) -> int:
        """How far back reports are gone by."""
        return HORIZON_DAYS if isinstance(self.horizon, int) else self._asked()[1]

    def question(self, reports_per_s: float) -> Question:
        """Return the horizon as the reports it is about and its strata."""
        if isinstance(self.horizon, int):
            return Question(float(self.horizon))
        kind, days = self._asked()
        strata = {"whole": 1, "hour-of-day": _HOURS, "day": days, "week": max(1, days // _WEEK)}
        return Question(max(1.0, reports_per_s * days * DAY_S), strata[kind])

    def _asked(self) -> tuple[str, int]:
        found = re.fullmatch(_HORIZON, str(self.horizon))
        assert found  # noqa: S101 (its form)
        return found[1], int(found[2])

    def sums(self, theta: int) -> Mechanism:
        """Return the mechanism of stream reports truncated at θ; raises ParameterError.

        Where it is chosen: of the hybrid and the ready table the one of less variance.
        """
        if self.mechanism == "tuned":
            return Tuned(epsilon=self.epsilon, low=self.low, high=theta, bits=self.bits)
        hybrid = Hybrid(epsilon=self.epsilon, low=self.low, high=theta, size=self.size)
        if self.mechanism == "chosen":
            with suppress(ParameterError):  # no ready table for this ε
                table = Tuned(epsilon=self.epsilon, low=self.low, high=theta, bits=self.bits)
                return min(table, hybrid, key=lambda made: made.unit_variance)
        return hybrid

    @property
    def least_theta(self) -> int:
        """The lowest θ that devices admit; the ceiling where even that is too sharp for them."""
        sums, most = self.sums(self.ceiling), floor_ratio(self.epsilon)
        bounds = PlanBounds(theta_halvings=self.theta_halvings)  # of devices, unless owners differ
        found = least_theta(sums, bounds, low=self.low, ceiling=self.ceiling, ratio=most)
        return min(found, self.ceiling)

    def allows(self, sums: Mechanism) -> bool:
        """Say whether stream reports may be by this mechanism: as configured, at any θ."""
        if self.mechanism == "chosen" and isinstance(sums, Tuned):
            most = floor_ratio(self.epsilon)
            return sums.low == self.low and sums.randomizer.within(most.num, most.den)
        return sums == self.sums(sums.high)

    def survey(self, low: int | None = None, high: int | None = None) -> SquareWave:
        """Return the mechanism of survey reports, over the whole range unless a part is given.

        A part that is narrower than `survey_size` gets a bucket for each value. Raises
        ParameterError.
        """
        first = self.low if low is None else low
        last = self.ceiling if high is None else high
        size = min(self.survey_size, last - first + 1)
        return SquareWave(epsilon=self.epsilon, low=first, high=last, size=size)

    @property
    def bucket_s(self) -> int:
        """Length of a time bucket, seconds."""
        return self.bucket_slots * self.slot_seconds
