"""What the command answers: a certificate proved just now, and how a file compares with it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from edge_ldp.certify.build import subject_of
from edge_ldp.certify.certificate import VERSION, Certificate, ProvedClaim
from edge_ldp.certify.mechanisms import (
    STREAM,
    SURVEY,
    certify_mechanism,
    certify_pair,
    certify_plan,
    ratio_claim,
)
from edge_ldp.certify.oracles import certify_oracle
from edge_ldp.certify.sums import SUBJECT as SUMS
from edge_ldp.certify.sums import certify_sums_of
from edge_ldp.checks import BYTES, FRACTION, a, optional, taking
from edge_ldp.device.errors import ParameterError
from edge_ldp.mechanisms import Mechanism, from_plan
from edge_ldp.oracles import Oracle
from edge_ldp.protocol.plan import Plan, parse_plan
from edge_ldp.protocol.signing import plan_bytes
from edge_ldp.protocol.strict_json import MessageError, loads
from edge_ldp.ratio import exact_epsilon

_NOMINAL_DIGITS = 1000


@dataclass(frozen=True, slots=True)
class Verdict:
    """A certificate (None: nothing could be built from the file), and claims about the file.

    bound: the ε that the largest ratio was compared with; None: nothing was. is_signed: the file is
    a signed plan, whose signature was not looked at: its reader's keys decide about it.
    """

    certificate: Certificate | None
    checks: tuple[ProvedClaim, ...] = ()
    bound: Fraction | None = None
    is_signed: bool = False

    @property
    def holds(self) -> bool:
        """Whether everything that is claimed holds."""
        proved = self.certificate is not None and self.certificate.holds
        return proved and all(check.holds for check in self.checks)


@taking(
    subject=a("edge_ldp.mechanisms.base.Mechanism", "edge_ldp.oracles.base.Oracle"),
    nominal=optional(FRACTION),
)
def certify(subject: Mechanism | Oracle, nominal: Fraction | None = None) -> Certificate:
    """Return the certificate of a mechanism or an oracle; raises ParameterError."""
    if isinstance(subject, Oracle):
        return certify_oracle(subject, nominal)
    return certify_mechanism(subject, nominal)


@taking(payload=BYTES, nominal=optional(FRACTION))
def judge_plan(payload: bytes, nominal: Fraction | None = None) -> Verdict:
    """Return the verdict on a plan message as published; raises MessageError for none.

    A plan whose integers make no channel is refuted, not unreadable. A signed one is proved like
    any other: its signature says who asks, not how much. Without `nominal` no bound is proved.
    """
    content = plan_bytes(payload)
    try:
        plan = parse_plan(content)
    except MessageError as exc:
        return _refuted(exc)
    proved = certify_plan(plan)
    checks = [] if nominal is None else [ratio_claim(proved.ratio, nominal)]
    checks.append(_range_claim(plan))
    checks += _digest_claims(plan.certificate, proved.digest)
    return Verdict(proved, tuple(checks), nominal, is_signed=content != payload)


@taking(payload=BYTES)
def judge_file(payload: bytes) -> Verdict:
    """Return the verdict on a saved certificate or on a plan with a digest; raises MessageError.

    Everything is proved again from the integers in the file, then compared with what it claims.
    """
    found = loads(plan_bytes(payload))
    if "certificate" not in found.raw() or "subject" not in found.raw():
        verdict = judge_plan(payload)
        if verdict.certificate is None or "certificate" in found.raw():
            return verdict
        nothing = ProvedClaim(
            "certificate", holds=False, proof="the plan carries no digest to compare"
        )
        return replace(verdict, checks=(*verdict.checks, nothing))
    found.integer("certificate", VERSION, VERSION)
    try:
        proved = _proved_again(found.table("subject").raw(), found.raw().get("nominal"))
    except ParameterError as exc:
        return _refuted(exc)
    differences = tuple(_differences("file", found.raw(), proved.fields()))
    same = ProvedClaim("file", not differences, "what the file claims is what was proved")
    return Verdict(proved, (same, *differences), proved.nominal)


def _proved_again(subject: Mapping[str, Any], nominal: object) -> Certificate:
    epsilon = None if nominal is None else _nominal(nominal)
    if subject.get("mechanism") == SUMS:
        return certify_sums_of(subject, epsilon)
    if STREAM not in subject:
        return certify(subject_of(subject), epsilon)
    stream, survey, share = (subject.get(name) for name in (STREAM, SURVEY, "share"))
    if not (isinstance(stream, dict) and isinstance(survey, dict) and isinstance(share, list)):
        raise ParameterError("subject", f"{STREAM}, {SURVEY} and share")
    if len(share) != 2:  # noqa: PLR2004 (num, den)
        raise ParameterError("share", "two integers")
    return certify_pair(from_plan(stream), from_plan(survey), (share[0], share[1]), epsilon)


def _nominal(written: object) -> Fraction:
    if not isinstance(written, str) or len(written) > _NOMINAL_DIGITS:
        raise ParameterError("nominal", "a fraction num/den")
    return exact_epsilon(written)


def _refuted(exc: MessageError | ParameterError) -> Verdict:
    """Return the verdict on integers that make no mechanism; raises what is no message at all."""
    if isinstance(exc, MessageError) and exc.reason != "channel":
        raise exc
    return Verdict(None, (ProvedClaim("subject", holds=False, proof=str(exc)),))


def _range_claim(plan: Plan) -> ProvedClaim:
    """Compare a plan with itself: a device refuses one that contradicts its own range."""
    stream, survey = plan.stream_mechanism, plan.survey_mechanism
    proof = (
        f"sums of {stream.low}..{stream.high} and surveys of {survey.low}..{survey.high}, "
        f"in a stream of {plan.low}..{plan.ceiling}"
    )
    return ProvedClaim("range", plan.agrees, proof)


def _digest_claims(carried: str | None, proved: str) -> list[ProvedClaim]:
    if carried is None:
        return []
    same = carried == proved
    proof = f"the plan carries {carried}" + (", as proved" if same else f", proved was {proved}")
    return [ProvedClaim("certificate", same, proof)]


def _differences(at: str, stated: object, found: object) -> Iterator[ProvedClaim]:
    """Yield a failed claim for every place where a file and the proof differ."""
    if isinstance(stated, dict) and isinstance(found, dict):
        for name in sorted(stated.keys() | found.keys()):
            yield from _differences(f"{at}.{name}", stated.get(name), found.get(name))
    elif isinstance(stated, list) and isinstance(found, list) and len(stated) == len(found):
        for place, (one, other) in enumerate(zip(stated, found, strict=True)):
            yield from _differences(f"{at}[{place}]", one, other)
    elif type(stated) is not type(found) or stated != found:
        proof = f"the file says {_short(stated)}, proved was {_short(found)}"
        yield ProvedClaim(at, holds=False, proof=proof)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."  # noqa: PLR2004 (a line)
