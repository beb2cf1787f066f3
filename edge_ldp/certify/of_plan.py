"""The certificate of a plan: both mechanisms, the coin between them, and the whole reporter.

It is about the integers that devices draw by (mechanisms and share), not about epoch, times or
names, so a renewed plan keeps its certificate. Source: docs/design.md, Privacy model, Messages.
"""

from fractions import Fraction

from edge_ldp.certify.certificate import Certificate, ProvedClaim
from edge_ldp.certify.encoding import share_claim
from edge_ldp.certify.mechanisms import certify_mechanism, ratio_claim, ratio_figures
from edge_ldp.checks import FRACTION, MECHANISM, a, each, exact_integer, optional, taking
from edge_ldp.device.channel import MAX_SIZE
from edge_ldp.device.randomizer import Reporter, reporter
from edge_ldp.mechanisms import Mechanism
from edge_ldp.protocol.plan import Plan

STREAM = "stream_mechanism"
SURVEY = "survey_mechanism"


_pair = each(exact_integer, 2)


@taking(plan=a("edge_ldp.protocol.plan.Plan"), nominal=optional(FRACTION))
def certify_plan(plan: Plan, nominal: Fraction | None = None) -> Certificate:
    """Return the certificate of what a plan makes devices run; a plan itself carries no ε.

    Cost: 0.2 s for the default mechanisms (square wave 1024, hybrid 256).
    """
    return certify_pair(plan.stream_mechanism, plan.survey_mechanism, plan.share, nominal)


@taking(stream=MECHANISM, survey=MECHANISM, share=_pair, nominal=optional(FRACTION))
def certify_pair(
    stream: Mechanism, survey: Mechanism, share: tuple[int, int], nominal: Fraction | None = None
) -> Certificate:
    """Return the certificate of a reporter; raises ParameterError when its codes do not fit."""
    whole = reporter(stream.randomizer, survey.randomizer, share)
    parts = {STREAM: certify_mechanism(stream, nominal), SURVEY: certify_mechanism(survey, nominal)}
    ratio = max(part.ratio for part in parts.values())
    return Certificate(
        subject={STREAM: stream.to_plan(), SURVEY: survey.to_plan(), "share": list(share)},
        nominal=nominal,
        figures={
            **ratio_figures(ratio, nominal),
            "codes": whole.code_count,
            "bits": (whole.code_count - 1).bit_length(),
        },
        claims=(
            ratio_claim(ratio, nominal),
            share_claim(whole),
            _codes_claim(whole),
            _device_claim(whole, ratio),
        ),
        parts=parts,
    )


def _codes_claim(whole: Reporter) -> ProvedClaim:
    stream, survey = whole.stream.code_count, whole.survey.code_count
    holds = whole.code_count == stream + survey <= MAX_SIZE
    proof = f"stream codes 0..{stream - 1}, survey codes {stream}..{stream + survey - 1}"
    return ProvedClaim("codes", holds, f"{proof}: no code is of both, and all fit a frame")


def _device_claim(whole: Reporter, ratio: Fraction) -> ProvedClaim:
    """Check the device's own comparison of the plan with its policy."""
    below = ratio - Fraction(1, 1 << 128)
    exact = whole.within(ratio.numerator, ratio.denominator)
    holds = exact and not whole.within(below.numerator, below.denominator)
    return ProvedClaim(
        "device", holds, "a device accepts this ratio, and refuses the plan for any less"
    )
