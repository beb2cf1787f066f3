"""Spot checks of oracles: reports by scripted draws, stated laws and decoded entries by definition.

Values and items are the first, the last and some between them; every draw stands at a border.
Sources: `edge_ldp.certify.contracts`; Wang et al., USENIX Security 2017 (OUE); [SW] §4.2 (HH).
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

from edge_ldp.certify.channels import Scripted, evenly_chosen
from edge_ldp.certify.claims import ProvedClaim
from edge_ldp.certify.contracts import SPOTS, Contract
from edge_ldp.oracles import Hierarchy, Oracle, Oue


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
