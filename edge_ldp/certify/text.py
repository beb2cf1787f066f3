"""A verdict for people to read, and for machines."""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from textwrap import fill
from typing import Any

from edge_ldp.certify.certificate import Certificate, ProvedClaim
from edge_ldp.certify.sums import OPTIONS, SUBJECT
from edge_ldp.certify.verdict import Verdict

WIDTH = 100
_NAME = 24  # of a claim, where columns align
_COLUMNS = {
    "kind": "channel",
    "inputs": "inputs",
    "codes": "codes",
    "total": "row total",
    "ratio": "largest ratio",
    "method": "proved by",
    "rows": "rows",
    "columns": "columns",
    "weights": "weights",
}


def verdict_view(verdict: Verdict) -> dict[str, Any]:
    """Keys of the JSON of `certify`.

    holds: whether every claim does; bound: the ε compared with, null if none was; digest: of the
    certificate; certificate: what `--save` writes (subject: the integers; nominal: ε asked for;
    figures; claims; channels; parts of a plan), null if the integers make no mechanism; checks:
    claims about the file; failed: claim and reason of each that fails. Fractions are "num/den".
    """
    proved = verdict.certificate
    claims = [*([] if proved is None else _all_claims(proved)), *verdict.checks]
    return {
        "holds": verdict.holds,
        "bound": None if verdict.bound is None else str(verdict.bound),
        "digest": None if proved is None else proved.digest,
        "certificate": None if proved is None else proved.fields(),
        "checks": {check.name: check.holds for check in verdict.checks},
        "failed": [{"claim": c.name, "reason": c.proof} for c in claims if not c.holds],
    }


def verdict_text(verdict: Verdict) -> str:
    """Return the verdict for people: integers, figures, channels and claims, part by part."""
    proved = verdict.certificate
    lines = [] if proved is None else list(_certificate_lines(proved, proved.subject, ""))
    if verdict.checks:
        lines += ["", "the file", *_claim_lines(verdict.checks)]
    claims = [*([] if proved is None else _all_claims(proved)), *verdict.checks]
    failed = sum(not claim.holds for claim in claims)
    summary = (
        f"{failed} of {len(claims)} claims FAIL" if failed else f"all {len(claims)} claims hold"
    )
    digest = "" if proved is None else f"; certificate {proved.digest}"
    return "\n".join([*lines, "", summary + digest, *_notes(verdict), ""])


def _notes(verdict: Verdict) -> Iterator[str]:
    """Yield what was not looked at, for who takes the last line for the whole answer."""
    if verdict.is_signed:
        yield "the signature was not checked: a device's own keys do that"
    if verdict.bound is None and verdict.certificate is not None:
        is_sums = verdict.certificate.subject.get("mechanism") == SUBJECT
        told = "is what a window may cost" if is_sums else "is what a report may tell"
        told = _decimal(verdict.certificate.figures.get("epsilon"), 6, told)
        yield f"NO BOUND was proved: no ε was given to compare with (--epsilon); {told}"


def _all_claims(proved: Certificate) -> list[ProvedClaim]:
    inner = (claim for part in proved.parts.values() for claim in _all_claims(part))
    return [*proved.claims, *inner]


def _certificate_lines(
    proved: Certificate, subject: Mapping[str, object], name: str
) -> Iterator[str]:
    """Yield the lines of a certificate, then those of its parts."""
    yield name + _title(subject)
    yield from _integer_lines(subject)
    rows = [(label, text) for label, text in _figure_rows(proved) if text]
    wide = max(len(label) for label, _ in rows)
    yield from (f"  {label:<{wide}}  {text}" for label, text in rows)
    if proved.channels:
        yield from _channel_lines(proved.channels)
    yield from _claim_lines(proved.claims)
    for part, inner in proved.parts.items():
        yield ""
        yield from _certificate_lines(inner, inner.subject, f"{part}: ")


def _title(subject: Mapping[str, Any]) -> str:
    if "mechanism" not in subject:
        return "plan: stream and survey reports"
    if subject["mechanism"] == SUBJECT:
        days, sums = subject["days"], subject["cells"]
        how_many = f"{sums} sum{'' if sums == 1 else 's'} of a home"
        return f"{SUBJECT}: {how_many} every {'day' if days == 1 else f'{days} days'}"
    values = f"{subject['low']}..{subject['high']}" if "low" in subject else ""
    return f"{subject['mechanism']}, " + (
        f"values {values}" if values else f"{subject['size']:,} categories"
    )


def _integer_lines(subject: Mapping[str, Any]) -> Iterator[str]:
    """Yield the integers that define the subject; long lists only by their length."""
    parts = []
    if "coin" in subject:
        parts.append("coin {}/{}".format(*subject["coin"]))
    if "share" in subject:
        parts.append("survey share {}/{}".format(*subject["share"]))
    parts += ["wave d {}, c {}, r {}/{}".format(*wave) for wave in subject.get("waves", [])]
    if subject.get("mechanism") == SUBJECT:
        parts += [f"{name} {subject[name]}" for name in OPTIONS if name in subject]
    if "ratio" in subject:
        parts.append("r {}/{}".format(*subject["ratio"]))
    if "profile" in subject:
        shape = subject["profile"]
        parts.append(f"profile of {len(shape['weights']):,} weights over {shape['r_den']}")
    if "table" in subject:
        shape = subject["table"]
        parts.append(f"table of {len(shape['weights'])} × {len(shape['outputs'])} weights")
    if "levels" in subject:
        parts.append(f"fanout {subject['fanout']}, {len(subject['levels'])} levels")
    yield fill("integers: " + "; ".join(parts), WIDTH, initial_indent="  ", subsequent_indent="  ")


def _figure_rows(proved: Certificate) -> Iterator[tuple[str, str]]:
    """Yield (label, text) of every figure; text is empty for what there is none of."""
    figures = proved.figures
    ratio, worst, unit = (figures.get(k) for k in ("ratio", "worst_variance", "unit_variance"))
    yield "nominal ε", "" if proved.nominal is None else str(proved.nominal)
    yield "largest ratio", "" if ratio is None else f"{ratio}"
    yield "as ε", _decimal(figures.get("epsilon"), 15, "rounded up")
    yield "below nominal ε", _decimal(figures.get("margin"), 15, "rounded down")
    yield "bias", _bias(figures)
    if unit is None:
        yield "worst variance", _decimal(worst, 12, "of an item's count, rounded up")
    else:
        text = f"{_decimal(worst, 6, 'unit²')}; {_decimal(unit, 12, 'on [-1, 1]')}, rounded up"
        yield "worst variance", text
    yield "influence", _decimal(figures.get("influence"), 9, f"= {figures.get('influence')}")
    yield "codes", "" if figures.get("codes") is None else f"{figures['codes']:,}"
    yield "one slot", _decimal(figures.get("slot"), 6, f"= {figures.get('slot')}, rounded up")
    yield "bits per report", "" if figures.get("bits") is None else f"{figures['bits']}"


def _bias(figures: Mapping[str, object]) -> str:
    bias = figures.get("bias")
    if not isinstance(bias, Fraction):
        return ""
    return "0 exactly" if not bias else f"{bias} of the range, {float(bias):.3g}"


def _decimal(number: object, digits: int, note: str) -> str:
    """Return a fraction as a decimal, never below it, and a note; nothing for nothing."""
    if not isinstance(number, Fraction):
        return ""
    scaled = -(-number.numerator * 10**digits // number.denominator)
    whole, rest = divmod(scaled, 10**digits)
    return f"{whole:,}.{rest:0{digits}} {note}"


def _channel_lines(channels: Iterable[Mapping[str, int | str]]) -> Iterator[str]:
    rows = [list(_COLUMNS.values())]
    rows += [[_cell(channel[key]) for key in _COLUMNS] for channel in channels]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{cell:>{w}}" for cell, w in zip(row, wide, strict=True))
        yield "  " + "  ".join(cells).rstrip()


def _cell(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else value


def _claim_lines(claims: Iterable[ProvedClaim]) -> Iterator[str]:
    listed = list(claims)
    wide = min(max(len(claim.name) for claim in listed), _NAME)
    for claim in listed:
        start = f"  {'holds' if claim.holds else 'FAILS'}  {claim.name:<{wide}}  "
        indent = " " * (wide + 11)
        yield fill(claim.proof, WIDTH, initial_indent=start, subsequent_indent=indent)
