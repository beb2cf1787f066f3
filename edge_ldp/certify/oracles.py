"""The certificate of a frequency oracle: ratio given any public part, and exact unbiasedness.

The public part is drawn without looking at the value, so the ratio is that of the code's law given
it: of one wave, of two bits (OUE), or of the worst level (HH). Spot checks compare reports by
scripted draws, stated laws and decoded entries with their definitions: values and items are the
first, the last and some between them; every draw stands at a border. Sources: [SW] §2.1, §4.2;
Wang et al., USENIX Security 2017 (OUE).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from edge_ldp.certify.certificate import Certificate, ProvedClaim
from edge_ldp.certify.channels import Scripted, evenly_chosen, prove_channel
from edge_ldp.certify.contracts import SPOTS, Contract, contract_of
from edge_ldp.certify.mechanisms import ratio_claim, ratio_figures
from edge_ldp.device.errors import ParameterError
from edge_ldp.oracles import Hierarchy, Oracle, Oue, oracle_from_plan
from edge_ldp.ratio import STEPS, ceil_to

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
    told = _Told(proof.ratio, max(contract.variances), contract.influence, codes)
    claims = (
        *proof.claims,
        client_claim(oracle, contract),
        law_claim(oracle, contract),
        decode_claim(oracle, contract),
        ProvedClaim("unbiased", contract.is_unbiased, _UNBIASED),
    )
    return replace(_certificate(oracle, nominal, told, claims), channels=[proof.figures()])


def _of_bits(oracle: Oue, nominal: Fraction | None) -> Certificate:
    """OUE: the bits of two values have different laws, those of all others the same."""
    r_num, r_den = oracle.client.r_num, oracle.client.r_den
    own, other = Fraction(1, 2), Fraction(r_den, r_num + r_den)
    ratio = (own / other) * ((1 - other) / (1 - own))
    square = (own - other) ** 2
    worst = max(share * (1 - share) / square for share in (own, other))
    told = _Told(ratio, worst, max(other, 1 - other) / (own - other), None)
    bits = "of the own item's bit and of any other's, at the borders of all their draws"
    claims = (
        ProvedClaim("positive", 0 < other < own < 1, "no report is impossible"),
        ProvedClaim("client", bits_hold(oracle), bits),
        ProvedClaim("unbiased", bits_unbiased(oracle, own, other), _UNBIASED),
    )
    return _certificate(oracle, nominal, told, claims)


def _of_levels(oracle: Hierarchy, nominal: Fraction | None) -> Certificate:
    """HH: a level by a fair draw, so an entry counts as many times as there are levels."""
    levels = oracle.levels
    parts = {f"level{at}": certify_oracle(level, nominal) for at, level in enumerate(levels)}
    ratio = max(part.ratio for part in parts.values())
    contract = contract_of(levels[-1])
    own, other = contract.variances
    worst = max(len(levels) * (own + 1) - 1, len(levels) * other)
    told = _Told(ratio, worst, len(levels) * contract.influence, None)
    nodes = "a fair draw of the level, then the report of the value's node there"
    unbiased = "a level's entries, times the levels, are unbiased for its nodes"
    claims = (
        ProvedClaim("client", levels_hold(oracle), nodes),
        ProvedClaim("unbiased", levels_unbiased(oracle), unbiased),
    )
    return replace(_certificate(oracle, nominal, told, claims), parts=parts)


class _Told(NamedTuple):
    """The ratio, and of one item's count from one report what it varies and a liar adds at most.

    `codes` given the public part, None where it varies.
    """

    ratio: Fraction
    variance: Fraction
    influence: Fraction
    codes: int | None


def _certificate(
    oracle: Oracle, nominal: Fraction | None, told: _Told, claims: Iterable[ProvedClaim]
) -> Certificate:
    """Return the certificate of an oracle, of its own claims between those that all have."""
    return Certificate(
        subject=oracle.to_plan(),
        nominal=nominal,
        figures={
            **ratio_figures(told.ratio, nominal),
            "bias": Fraction(0),
            "worst_variance": ceil_to(told.variance, STEPS),
            "influence": told.influence,
            "codes": told.codes,
            "bits": oracle.report_bits,
        },
        claims=(ratio_claim(told.ratio, nominal), *claims, *_library_claims(oracle, told)),
    )


def _library_claims(oracle: Oracle, told: _Told) -> Iterator[ProvedClaim]:
    """Yield what the library says of itself, and whether a plan's integers make this oracle."""
    pairs = (
        (oracle.max_ratio, told.ratio),
        (Fraction(oracle.worst_variance), told.variance),
        (Fraction(oracle.influence), told.influence),
    )
    holds = all(abs(stated - found) <= _CLOSE * found for stated, found in pairs)
    yield ProvedClaim("figures", holds, "the library's own ratio, variance and influence agree")
    proof = "the integers of a plan make this oracle and no other"
    try:
        holds = oracle_from_plan(oracle.to_plan()) == oracle
    except ParameterError as exc:
        holds, proof = False, f"{proof}: {exc}"
    yield ProvedClaim("plan", holds, proof)


def client_claim(oracle: Oracle, contract: Contract) -> ProvedClaim:
    """Check reports of values at and between the ends, by scripted draws."""
    wave, count, holds = contract.wave, 0, True
    for answers, value in product(contract.publics, evenly_chosen(oracle.size)):
        public = contract.public(answers)
        index = contract.input_of(value, public)
        for u in (0, wave.total - 1):
            draw = Scripted(*answers, u)
            report = oracle.perturb(value, draw=draw)
            code = wave.sample(index, lambda _, u=u: u)  # type: ignore[misc]
            asked = [*contract.asked(answers), wave.total]
            holds = holds and tuple(report) == (*public, code) and draw.asked == asked
            count += 1
    return ProvedClaim(
        "client", holds, f"{count:,} reports by scripted draws: the same draws for all"
    )


def law_claim(oracle: Oracle, contract: Contract) -> ProvedClaim:
    """Check that the law that the library states is the row of the wave."""
    wave, holds = contract.wave, True
    cases = list(product(map(contract.public, contract.publics), evenly_chosen(oracle.size, SPOTS)))
    codes = range(wave.code_count)
    for public, value in cases:
        index = contract.input_of(value, public)
        row = [Fraction(wave.weight(index, j), wave.total) for j in codes]
        holds = holds and oracle.probabilities(value, public) == row
    return ProvedClaim(
        "law", holds, f"the stated law of {len(cases):,} (value, public part) is the row's"
    )


def decode_claim(oracle: Oracle, contract: Contract) -> ProvedClaim:
    """Check that reports decode to the entries that the means were worked out with."""
    holds, items = True, evenly_chosen(oracle.size, 2 * SPOTS)
    publics = contract.publics[:: max(1, len(contract.publics) // 2)]
    reports = list(product(publics, (0, contract.wave.code_count - 1)))
    for answers, code in reports:
        public = contract.public(answers)
        entries = oracle.decode((*public, code))
        holds = holds and len(entries) == oracle.size
        holds = holds and all(entries[k] == contract.entry(k, public, code) for k in items)
    return ProvedClaim(
        "decode", holds, f"{len(reports) * len(items):,} decoded entries by definition"
    )


def bits_hold(oracle: Oue) -> bool:
    """Run all bits at their last draw that sets them, and at the first that does not."""
    own, other = oracle.client.r_num + oracle.client.r_den, 2 * oracle.client.r_den
    size, total = oracle.size, 2 * (oracle.client.r_num + oracle.client.r_den)
    for value in evenly_chosen(size, SPOTS):
        borders = [own if item == value else other for item in range(size)]
        for draws, wanted in (([u - 1 for u in borders], (1 << size) - 1), (borders, 0)):
            draw = Scripted(*draws)
            report = bytes(oracle.perturb(value, draw=draw))
            if int.from_bytes(report, "little") != wanted or draw.asked != [total] * size:
                return False
    return True


def bits_unbiased(oracle: Oue, own: Fraction, other: Fraction) -> bool:
    """Work out the means of decoded entries from a report of all bits and one of none."""
    length = (oracle.size + 7) // 8
    full = oracle.decode(((1 << oracle.size) - 1).to_bytes(length, "little"))
    none = oracle.decode(bytes(length))
    pairs = set(zip(full, none, strict=True))
    return len(full) == oracle.size and all(
        own * one + (1 - own) * zero == 1 and other * one + (1 - other) * zero == 0
        for one, zero in pairs
    )


def levels_hold(oracle: Hierarchy) -> bool:
    """Run the level's draw through all levels; the rest is the level's own report."""
    levels, fanout = oracle.levels, oracle.client.fanout
    if [level.size for level in levels] != [fanout ** (at + 1) for at in range(len(levels))]:
        return False
    for (at, level), value in product(enumerate(levels), evenly_chosen(oracle.size)):
        node = value // fanout ** (len(levels) - 1 - at)
        inner = Scripted(*(0, 0, 0))
        wanted = (at, *level.perturb(node, draw=inner))
        draw = Scripted(at, 0)
        report = tuple(oracle.perturb(value, draw=draw))
        if report != wanted or draw.asked != [len(levels), *inner.asked]:
            return False
    return True


def levels_unbiased(oracle: Hierarchy) -> bool:
    """Compare decoded levels with the level's own entries, which its certificate is about."""
    levels = oracle.levels
    for at, level in enumerate(levels):
        inner: Sequence[int] = tuple(level.perturb(0, draw=Scripted(0)))
        entries = oracle.decode_levels((at, *inner))
        own = [len(levels) * entry for entry in level.decode(inner)]
        if entries[at] != own or any(any(row) for k, row in enumerate(entries) if k != at):
            return False
        items = own[: oracle.size] if at == len(levels) - 1 else [Fraction(0)] * oracle.size
        if oracle.decode((at, *inner)) != items:
            return False
    return True
