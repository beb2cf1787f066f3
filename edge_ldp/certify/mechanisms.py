"""The certificate of a mechanism of `edge_ldp.mechanisms`: ratio, channels, encoder, accuracy.

That of a plan is about both, the coin between them and the whole reporter: about the integers that
devices draw by (mechanisms and share), not about epoch, times or names, so a renewed plan keeps its
certificate.

Privacy: a value picks, by draws that do not depend on it, a row of a channel; rows of one total and
codes of one branch only, so no code's probability differs between two values by more than the
largest ratio of two weights in a column. Source: docs/design.md, The kernel, docs/methods.md,
Optimal tables; docs/design.md, Privacy model, Messages.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from edge_ldp.certify.accuracy import (
    DecodedBranch,
    branches_of,
    influence_of,
    worst_of_buckets,
    worst_on_lattice,
)
from edge_ldp.certify.certificate import Certificate, Figure, ProvedClaim
from edge_ldp.certify.channels import coin_claim, encoder_claim, prove_channel, share_claim
from edge_ldp.checks import FRACTION, MECHANISM, a, each, exact_integer, optional, taking
from edge_ldp.device.channel import MAX_SIZE
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.randomizer import BUCKETS, Reporter, reporter
from edge_ldp.device.table import Table
from edge_ldp.mechanisms import Mechanism, from_plan
from edge_ldp.protocol.plan import Plan
from edge_ldp.ratio import STEPS, below_exp, log_above, margin_below

MAX_TABLE_BIAS = Fraction(1, 1 << 30)  # of the range; waves have none at all
_CLOSE = Fraction(1, 10**9)  # relative; the library's own figures are floats


def certify_mechanism(mechanism: Mechanism, nominal: Fraction | None = None) -> Certificate:
    """Return the certificate of a mechanism, against a nominal ε if one is given.

    Cost: about 1 µs a weight that is read, and some 30 µs an input or code.
    """
    randomizer = mechanism.randomizer
    proofs = [prove_channel(channel) for channel in randomizer.channels]
    ratio = max(proof.ratio for proof in proofs)
    accuracy, claims = _accuracy(mechanism, branches_of(mechanism, proofs))
    return Certificate(
        subject=mechanism.to_plan(),
        nominal=nominal,
        figures={
            **ratio_figures(ratio, nominal),
            **accuracy,
            "codes": randomizer.code_count,
            "bits": (randomizer.code_count - 1).bit_length(),
        },
        claims=(
            ratio_claim(ratio, nominal),
            *merged([proof.claims for proof in proofs]),
            coin_claim(randomizer),
            encoder_claim(randomizer),
            _plan_claim(mechanism),
            *claims,
        ),
        channels=[proof.figures() for proof in proofs],
    )


def ratio_figures(ratio: Fraction, nominal: Fraction | None) -> dict[str, Figure]:
    """Return the largest ratio, its ε rounded up, and what it leaves of the nominal ε."""
    sound = ratio >= 1
    return {
        "ratio": ratio,
        "epsilon": log_above(ratio) if sound else None,
        "margin": margin_below(ratio, nominal) if sound and nominal is not None else None,
    }


def ratio_claim(ratio: Fraction, nominal: Fraction | None) -> ProvedClaim:
    """Check the largest ratio: there is one, and it is not above e^ε."""
    shown = f"{ratio.numerator}/{ratio.denominator}"
    if nominal is None:
        return ProvedClaim("ratio", ratio >= 1, f"no code is more than {shown} times likelier")
    holds = ratio >= 1 and below_exp(ratio, nominal)
    power = f"({nominal})" if nominal.denominator > 1 else f"{nominal}"
    return ProvedClaim("ratio", holds, f"{shown} ≤ e^{power}, compared with a lower bound of it")


def merged(found: Iterable[Sequence[ProvedClaim]]) -> list[ProvedClaim]:
    """Return one claim of each name, which holds if it does for all channels."""
    return [
        ProvedClaim(same[0].name, all(c.holds for c in same), "; ".join({c.proof: c for c in same}))
        for same in zip(*found, strict=True)
    ]


def _plan_claim(mechanism: Mechanism) -> ProvedClaim:
    """Check that the integers that a plan would carry make this very mechanism."""
    proof = "the integers of a plan make this mechanism and no other"
    try:
        again = from_plan(mechanism.to_plan())
    except ParameterError as exc:
        return ProvedClaim("plan", holds=False, proof=f"{proof}: {exc}")
    same = again == mechanism and again.to_plan() == mechanism.to_plan()
    return ProvedClaim("plan", same, proof)


def _accuracy(
    mechanism: Mechanism, branches: Sequence[DecodedBranch]
) -> tuple[dict[str, Figure], list[ProvedClaim]]:
    serving = [branch for branch in branches if branch.coin]
    moments = [part for branch in serving if (part := branch.moments()) is not None]
    unbiased = "codes decode to what is unbiased"
    if len(moments) < len(serving):
        nothing = dict.fromkeys(("bias", "worst_variance", "unit_variance", "influence"))
        return {**nothing}, [
            ProvedClaim("unbiased", holds=False, proof=f"{unbiased}: outputs uneven")
        ]
    bias = max(branch.bias(part) for branch, part in zip(serving, moments, strict=True))
    exact = all(b.is_as_defined(part) for b, part in zip(serving, moments, strict=True))
    if mechanism.encoder == BUCKETS:
        worst = worst_of_buckets(serving[0], moments[0])
    else:
        worst = worst_on_lattice(serving, moments, bias)
    half = Fraction(mechanism.high - mechanism.low, 2)
    figures: dict[str, Figure] = {
        "bias": bias,
        "worst_variance": worst * half * half,
        "unit_variance": worst,
        "influence": influence_of(serving),
    }
    tables = any(isinstance(channel, Table) for channel in mechanism.randomizer.channels)
    most = MAX_TABLE_BIAS if tables else Fraction(0)
    return figures, [_bias_claim(bias, most, exact=exact), _figures_claim(mechanism, figures)]


def _bias_claim(bias: Fraction, most: Fraction, *, exact: bool) -> ProvedClaim:
    how = "to within 2^-30 of the range" if most else "exactly"
    proof = f"every input's mean is that input {how}; by definition in every row read"
    return ProvedClaim("unbiased", exact and bias <= most, proof)


def _figures_claim(mechanism: Mechanism, figures: dict[str, Figure]) -> ProvedClaim:
    """Check the figures that the library plans with: floats, so to nine digits."""
    slack = 4 * (figures["bias"] or 0) + Fraction(1, STEPS)
    pairs = (
        (Fraction(mechanism.unit_variance), figures["unit_variance"] or 0, slack),
        (Fraction(mechanism.influence), figures["influence"] or 0, 0),
        (mechanism.bias, figures["bias"] or 0, 0),
    )
    holds = all(abs(stated - found) <= _CLOSE * found + more for stated, found, more in pairs)
    return ProvedClaim("figures", holds, "the library's own variance, influence and bias agree")


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
