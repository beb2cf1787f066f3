"""The certificate of a frequency oracle: ratio given any public part, and exact unbiasedness.

The public part is drawn without looking at the value, so the ratio is that of the code's law given
it: of one wave, of two bits (OUE), or of the worst level (HH). Source: [SW] §2.1, §4.2.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from edge_ldp.certify.bounds import STEPS, ceil_to
from edge_ldp.certify.certificate import Certificate, Figure
from edge_ldp.certify.channels import prove_channel
from edge_ldp.certify.claims import ProvedClaim
from edge_ldp.certify.contracts import Contract, contract_of
from edge_ldp.certify.mechanisms import ratio_claim, ratio_figures
from edge_ldp.certify.oracle_checks import (
    bits_hold,
    bits_unbiased,
    client_claim,
    decode_claim,
    law_claim,
    levels_hold,
    levels_unbiased,
)
from edge_ldp.device.errors import ParameterError
from edge_ldp.oracles import Hierarchy, Oracle, Oue, oracle_from_plan

MOST_ITEMS = 1 << 20
_CLOSE = Fraction(1, 10**9)  # relative; the library's own figures are floats
_UNBIASED = "own item's entry has mean 1, every other item's 0, exactly"


def certify_oracle(oracle: Oracle, nominal: Fraction | None = None) -> Certificate:
    """Return the certificate of an oracle, against a nominal ε if one is given.

    Raises ParameterError for more than 2^20 categories (reports are decoded item by item), or an
    oracle of an unknown kind.
    """
    if oracle.size > MOST_ITEMS:
        raise ParameterError("size", f"at most {MOST_ITEMS} items to be certified")
    if isinstance(oracle, Oue):
        return _of_bits(oracle, nominal)
    if isinstance(oracle, Hierarchy):
        return _of_levels(oracle, nominal)
    return _of_wave(oracle, contract_of(oracle), nominal)


def _of_wave(oracle: Oracle, contract: Contract, nominal: Fraction | None) -> Certificate:
    proof = prove_channel(contract.wave)
    codes = contract.wave.code_count
    accuracy = _Accuracy(max(contract.variances), contract.influence, codes)
    return Certificate(
        subject=oracle.to_plan(),
        nominal=nominal,
        figures=_figures(oracle, proof.ratio, nominal, accuracy),
        claims=(
            ratio_claim(proof.ratio, nominal),
            *proof.claims,
            client_claim(oracle, contract),
            law_claim(oracle, contract),
            decode_claim(oracle, contract),
            ProvedClaim("unbiased", contract.is_unbiased, _UNBIASED),
            *_library_claims(oracle, proof.ratio, accuracy),
        ),
        channels=[proof.figures()],
    )


def _of_bits(oracle: Oue, nominal: Fraction | None) -> Certificate:
    """OUE: the bits of two values have different laws, those of all others the same."""
    r_num, r_den = oracle.client.r_num, oracle.client.r_den
    own, other = Fraction(1, 2), Fraction(r_den, r_num + r_den)
    ratio = (own / other) * ((1 - other) / (1 - own))
    square = (own - other) ** 2
    worst = max(share * (1 - share) / square for share in (own, other))
    accuracy = _Accuracy(worst, max(other, 1 - other) / (own - other), None)
    bits = "of the own item's bit and of any other's, at the borders of all their draws"
    return Certificate(
        subject=oracle.to_plan(),
        nominal=nominal,
        figures=_figures(oracle, ratio, nominal, accuracy),
        claims=(
            ratio_claim(ratio, nominal),
            ProvedClaim("positive", 0 < other < own < 1, "no report is impossible"),
            ProvedClaim("client", bits_hold(oracle), bits),
            ProvedClaim("unbiased", bits_unbiased(oracle, own, other), _UNBIASED),
            *_library_claims(oracle, ratio, accuracy),
        ),
    )


def _of_levels(oracle: Hierarchy, nominal: Fraction | None) -> Certificate:
    """HH: a level by a fair draw, so an entry counts as many times as there are levels."""
    levels = oracle.levels
    parts = {f"level{at}": certify_oracle(level, nominal) for at, level in enumerate(levels)}
    ratio = max(part.ratio for part in parts.values())
    contract = contract_of(levels[-1])
    own, other = contract.variances
    worst = max(len(levels) * (own + 1) - 1, len(levels) * other)
    accuracy = _Accuracy(worst, len(levels) * contract.influence, None)
    nodes = "a fair draw of the level, then the report of the value's node there"
    unbiased = "a level's entries, times the levels, are unbiased for its nodes"
    return Certificate(
        subject=oracle.to_plan(),
        nominal=nominal,
        figures=_figures(oracle, ratio, nominal, accuracy),
        claims=(
            ratio_claim(ratio, nominal),
            ProvedClaim("client", levels_hold(oracle), nodes),
            ProvedClaim("unbiased", levels_unbiased(oracle), unbiased),
            *_library_claims(oracle, ratio, accuracy),
        ),
        parts=parts,
    )


class _Accuracy(NamedTuple):
    """Of one item's count, from one report; `codes` given the public part, None where it varies."""

    variance: Fraction
    influence: Fraction
    codes: int | None


def _figures(
    oracle: Oracle, ratio: Fraction, nominal: Fraction | None, accuracy: _Accuracy
) -> dict[str, Figure]:
    return {
        **ratio_figures(ratio, nominal),
        "bias": Fraction(0),
        "worst_variance": ceil_to(accuracy.variance, STEPS),
        "influence": accuracy.influence,
        "codes": accuracy.codes,
        "bits": oracle.report_bits,
    }


def _library_claims(oracle: Oracle, ratio: Fraction, accuracy: _Accuracy) -> Iterator[ProvedClaim]:
    """Yield what the library says of itself, and whether a plan's integers make this oracle."""
    pairs = (
        (oracle.max_ratio, ratio),
        (Fraction(oracle.worst_variance), accuracy.variance),
        (Fraction(oracle.influence), accuracy.influence),
    )
    holds = all(abs(stated - found) <= _CLOSE * found for stated, found in pairs)
    yield ProvedClaim("figures", holds, "the library's own ratio, variance and influence agree")
    proof = "the integers of a plan make this oracle and no other"
    try:
        holds = oracle_from_plan(oracle.to_plan()) == oracle
    except ParameterError as exc:
        holds, proof = False, f"{proof}: {exc}"
    yield ProvedClaim("plan", holds, proof)
