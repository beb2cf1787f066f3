"""The plan, what an aggregator asks devices to run, and the policy, what an owner lets it ask.

A plan carries integers only: never an ε. The device derives the largest ratio from the integers it
would really use and compares it with its policy's, so a hostile plan can cost accuracy, never
privacy. Source: docs/design.md, Privacy model, Messages; docs/faults.md, PLN.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from hashlib import sha256

from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS, Reporter, reporter
from edge_ldp.lean_class import lean_class
from edge_ldp.mechanisms import (
    Hybrid,
    Mechanism,
    Piecewise,
    SquareWave,
    StochasticRounding,
    Tuned,
    from_plan,
)
from edge_ldp.protocol.messages import read_identity, read_name
from edge_ldp.protocol.plan_bounds import PlanBounds, PlanRequest, Refusal, misshape
from edge_ldp.protocol.strict_json import Fields, MessageError, dumps, fields_of, loads
from edge_ldp.ratio import Ratio

VERSION = 1
FIRST_EPOCHS = 1024  # believed at any time, so that a clock may begin at 0
EPOCH_S = 3600
EARLY_EPOCHS = 24  # of the next day: such a plan waits for its time
AHEAD_S = 3600  # clocks may differ by so much; a plan that is dated further ahead is not taken
MAX_PLAN_BYTES = 1 << 14  # the largest ready table makes 6.3 kB
MAX_WEIGHTS = 1024  # of a table: the largest ready one has 33 knots of 16 codes
STREAM_MECHANISMS = frozenset({Hybrid.name, Piecewise.name, StochasticRounding.name, Tuned.name})
SURVEY_MECHANISMS = frozenset({SquareWave.name})
CERTIFICATE_DIGITS = 32
_DIGEST = re.compile(f"[0-9a-f]{{{CERTIFICATE_DIGITS}}}")
_U32 = (1 << 32) - 1
_TIME = 1 << 40
_VALUE = 1 << 47


@lean_class(frozen=True, slots=True)
class Plan:
    """Public parameters of one stream from one epoch on; numbers in the stream's unit, seconds UTC.

    `share` = (num, den): probability that an included slot gives a survey report. `certificate`:
    digest of what was proved of mechanisms and share (`edge-ldp certify --plan`), for auditors: a
    device neither needs it nor goes by it. `store`: identity of the aggregator's store that made
    the plan, 16 hexadecimal digits; None in one that an operator made, or an older version.
    """

    fleet: str
    stream: str
    stream_id: int
    unit: str
    epoch: int
    issued_s: int
    expires_s: int
    slot_seconds: int
    low: int
    ceiling: int
    share: tuple[int, int]
    stream_mechanism: Mechanism
    survey_mechanism: Mechanism
    certificate: str | None = None
    store: str | None = None

    @property
    def theta(self) -> int:
        """The truncation threshold: stream reports are of values clamped to [low, θ]."""
        return self.stream_mechanism.high

    @property
    def agrees(self) -> bool:
        """Whether both mechanisms lie in [low, ceiling]: sums from low on, surveys anywhere."""
        stream, survey = self.stream_mechanism, self.survey_mechanism
        sums = stream.low == self.low < stream.high <= self.ceiling
        return sums and self.low <= survey.low < survey.high <= self.ceiling

    def reporter(self) -> Reporter:
        """Return what the device runs; raises ParameterError when the codes do not fit."""
        return reporter(
            self.stream_mechanism.randomizer, self.survey_mechanism.randomizer, self.share
        )

    def to_json(self) -> bytes:
        """Return the plan's one encoding."""
        told = fields_of(self) | {
            "stream_mechanism": self.stream_mechanism.to_plan(),
            "survey_mechanism": self.survey_mechanism.to_plan(),
        }
        known = {name: value for name, value in told.items() if value is not None}
        return dumps({"v": VERSION, **known})


def parse_plan(payload: bytes) -> Plan:
    """Return the plan in `payload`; raises MessageError(reason, field) for anything else."""
    if len(payload) > MAX_PLAN_BYTES:
        raise MessageError("size", "message", f"at most {MAX_PLAN_BYTES} bytes")
    fields = loads(payload)
    fields.integer("v", VERSION, VERSION)
    plan = Plan(
        fleet=read_name(fields, "fleet"),
        stream=read_name(fields, "stream"),
        stream_id=fields.integer("stream_id", 0, 255),
        unit=fields.text("unit", 16),
        epoch=fields.integer("epoch", 1, _U32),
        issued_s=fields.integer("issued_s", 0, _TIME),
        expires_s=fields.integer("expires_s", 0, _TIME),
        slot_seconds=fields.integer("slot_seconds", 1, 86_400),
        low=fields.integer("low", -_VALUE, _VALUE),
        ceiling=fields.integer("ceiling", -_VALUE, _VALUE),
        share=_share(fields),
        stream_mechanism=_mechanism(fields, "stream_mechanism", STREAM_MECHANISMS),
        survey_mechanism=_mechanism(fields, "survey_mechanism", SURVEY_MECHANISMS),
        certificate=_certificate(fields),
        store=read_identity(fields) if "store" in fields.raw() else None,
    )
    try:
        plan.reporter()
    except ParameterError as exc:
        raise MessageError("channel", exc.name, exc.expected) from exc
    return plan


def is_survey(mechanism: Mechanism) -> bool:
    """Say whether reports of the mechanism are survey reports."""
    return mechanism.encoder == BUCKETS


def digest(payload: bytes) -> str:
    """Return the first 16 hex digits of the SHA-256 of a plan's exact bytes."""
    return sha256(payload).hexdigest()[:16]


def plan_tag(payload: bytes) -> int:
    """Return what frames name a plan by, beside its epoch: the start of the digest of its bytes.

    Plans of one epoch by two aggregators are told apart by it (docs/adr/0027-series.md).
    """
    return int.from_bytes(sha256(payload).digest()[:4], "little")


@lean_class(frozen=True, slots=True)
class Policy:
    """What the owner of a device allows for one stream; the device is the authority."""

    fleet: str
    stream: str
    unit: str
    slot_seconds: int
    low: int
    ceiling: int
    ratio: Ratio
    mechanisms: frozenset[str] = STREAM_MECHANISMS | SURVEY_MECHANISMS
    max_codes: int = 8192
    shape: PlanBounds = field(default_factory=PlanBounds)


def last_epoch(now_s: float) -> int:
    """Return the highest epoch that is believed at a time: as many as hours since 1970, and a few.

    So no plan, however hostile, uses up the epochs that come after it (docs/faults.md, PLN-15).
    """
    return min(_U32, FIRST_EPOCHS + int(now_s) // EPOCH_S)


def judge(plan: Plan, policy: Policy, *, epoch: int | None, now_s: int | None) -> Refusal | None:
    """Return why the device refuses this plan, or None if it may run it.

    `epoch` is the highest epoch the device has accepted (None: it has no state), `now_s` None for a
    plan whose time was judged before. All comparisons are in integers, over the whole channel,
    branches included.
    """
    stream, survey = plan.stream_mechanism, plan.survey_mechanism
    same = (plan.fleet, plan.stream, plan.unit) == (policy.fleet, policy.stream, policy.unit)
    in_range = policy.low <= plan.low < plan.ceiling <= policy.ceiling
    last, made = _U32 if now_s is None else last_epoch(now_s), plan.reporter()
    owned = f"{policy.low} to {policy.ceiling}"
    checks = (
        ("audience", same, f"for {plan.fleet}, {plan.stream} in {plan.unit}"),
        ("slot", plan.slot_seconds == policy.slot_seconds, f"{plan.slot_seconds} s"),
        (
            "epoch",
            (epoch is None or epoch < plan.epoch) and plan.epoch <= last + EARLY_EPOCHS,
            f"{plan.epoch}: above {epoch or 0}, at most {last} now",
        ),
        ("early", plan.epoch <= last, f"epoch {plan.epoch}: at most {last} now"),
        (
            "ahead",
            now_s is None or plan.issued_s <= now_s + AHEAD_S,
            f"dated {plan.issued_s}, and it is {now_s}: the operator's clock was ahead",
        ),
        ("expired", now_s is None or now_s <= plan.expires_s, f"at {plan.expires_s}"),
        (
            "range",
            in_range and policy.low <= survey.low < survey.high <= policy.ceiling,
            f"{plan.low} to {plan.ceiling}, surveys {survey.low} to {survey.high}: within {owned}",
        ),
        (
            "theta",
            stream.low == plan.low and plan.low < plan.theta <= plan.ceiling,
            f"{stream.low} to {plan.theta}: from {plan.low}, at most {plan.ceiling}",
        ),
        (
            "mechanism",
            {stream.name, survey.name} <= policy.mechanisms,
            f"{stream.name} and {survey.name}: of {', '.join(sorted(policy.mechanisms))}",
        ),
        (
            "size",
            made.code_count <= policy.max_codes,
            f"{made.code_count} codes: at most {policy.max_codes}",
        ),
        (
            "ratio",
            made.within(policy.ratio.num, policy.ratio.den),
            f"e^{max(stream.epsilon, survey.epsilon):.9g}: at most e^{policy.ratio.epsilon:.9g}",
        ),
    )
    found = next((Refusal(code, words) for code, holds, words in checks if not holds), None)
    asked = PlanRequest(policy.low, policy.ceiling, policy.ratio, stream, survey, plan.share)
    return found or misshape(asked, policy.shape)


def _share(fields: Fields) -> tuple[int, int]:
    pair = fields.items("share", 2)
    if len(pair) != 2 or any(type(number) is not int for number in pair):  # noqa: PLR2004 (num, den)
        raise MessageError("value", "share", "two integers")
    return pair[0], pair[1]


def _certificate(fields: Fields) -> str | None:
    if "certificate" not in fields.raw():
        return None
    text = fields.text("certificate", CERTIFICATE_DIGITS)
    if not _DIGEST.fullmatch(text):
        raise MessageError("value", "certificate", f"{CERTIFICATE_DIGITS} hexadecimal digits")
    return text


def _mechanism(fields: Fields, name: str, allowed: frozenset[str]) -> Mechanism:
    table: Mapping[str, object] = fields.table(name).raw()
    if _weights(table) > MAX_WEIGHTS:  # before any arithmetic with them
        raise MessageError("size", f"{name}.table", f"at most {MAX_WEIGHTS} weights")
    try:
        made = from_plan(table)
    except ParameterError as exc:
        raise MessageError("channel", f"{name}.{exc.name}", exc.expected) from exc
    if made.name not in allowed:
        raise MessageError("value", name, "one of " + ", ".join(sorted(allowed)))
    return made


def _weights(table: Mapping[str, object]) -> int:
    """Return how many weights the table of a mechanism has, whatever stands there."""
    inner = table.get("table")
    rows = inner.get("weights") if isinstance(inner, dict) else None
    if not isinstance(rows, list):
        return 0
    return sum(len(row) for row in rows if isinstance(row, list))
