"""[[streams]]: what is measured, and how it is asked for."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Literal

from edge_ldp.mechanisms import Hybrid, Mechanism, SquareWave, Tuned
from edge_ldp.ratio import floor_ratio
from edge_ldp.typed_table import Form, Range

DAY_S = 86_400
SHARE_DEN = 1 << 16

Positive = Annotated[int, Range(ge=1)]


@dataclass(frozen=True, slots=True)
class StreamTable:
    """[[streams]]: one quantity of the fleet, in integers of its unit, and how it is asked for.

    `horizon`: values in the longest query (devices × slots), which θ is chosen for. `mechanism` is
    that of stream reports: `size` is the hybrid's, `bits` the tuned table's; "chosen": whichever
    costs less, with its θ. `theta`: how θ and the survey's range are chosen, "published" being the
    papers' rule; `corrected_sums`: for sums that `query` corrects for truncation.
    """

    name: str
    id: Annotated[int, Range(ge=0, le=255)]
    unit: Annotated[str, Form(r"(?s:.{1,16})", "1 to 16 characters")]
    ceiling: int
    epsilon: Decimal | int
    horizon: Positive
    theta: Literal["adaptive", "published"] = "adaptive"
    low: int = 0
    slot_seconds: Annotated[int, Range(ge=1, le=DAY_S)] = 900
    mechanism: Literal["hybrid", "tuned", "chosen"] = "hybrid"
    corrected_sums: bool = False
    size: Annotated[int, Range(ge=2, le=16_384)] = 256
    bits: Literal[3, 4] = 4
    survey_size: Annotated[int, Range(ge=2, le=16_384)] = 1024
    survey_share: Decimal = Decimal("0.0625")
    min_survey_reports: Positive = 4096
    revise_slots: Positive = 96 * 7
    hysteresis: Decimal = Decimal("0.02")
    bucket_slots: Annotated[int, Range(ge=1, le=65_536)] = 4
    utc_offset_s: Annotated[int, Range(ge=-DAY_S, le=DAY_S)] = 0

    @property
    def share(self) -> tuple[int, int]:
        """`survey_share` as the integers of a coin."""
        return round(self.survey_share * SHARE_DEN), SHARE_DEN

    def sums(self, theta: int) -> Mechanism:
        """Return the mechanism of stream reports truncated at θ; raises ParameterError.

        Where it is chosen: the one to begin with.
        """
        if self.mechanism == "tuned":
            return Tuned(epsilon=self.epsilon, low=self.low, high=theta, bits=self.bits)
        return Hybrid(epsilon=self.epsilon, low=self.low, high=theta, size=self.size)

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
