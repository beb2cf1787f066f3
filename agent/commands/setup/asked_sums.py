"""What leaves of a stream: reports of single values, sums of a period, or both; asked, or invited.

How sums are laid out and which share of the window's ε they have an invitation may say. How little
their noise may be is the owner's: unless told, as much as it takes that no habit shows more in
them, and in what reports are left, than in reports alone. Source: docs/faults.md, PLN-21.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from decimal import ROUND_DOWN, ROUND_UP, Decimal

from agent.commands.ledger_view import counted
from agent.commands.setup.talk import SetupError, Talk
from agent.commands.setup.written import GivenSums
from agent.config.doubts import fair_least
from agent.config.sections import SumsTable
from agent.meters.reading import GAS
from edge_ldp.arguments import whole_number
from edge_ldp.protocol.invitation import InvitedStream, InvitedSums

WAYS = {"reports": "local", "sums": "sums", "both": "both"}
USUAL = InvitedSums(1, "0.75")
"""Where nobody says otherwise: a sum of each day; beside reports with so much of the window's ε."""

HOUR_S = 3600
_STEP = Decimal("0.0001")
_WAYS = """
What may leave this home:
  reports  now and then a random code, drawn from the value of one slot: how values are spread
  sums     what each day (or week, or 28 days) adds up to, once, with noise: how much in all
  both     each with its share of the same ε"""


def has_sums_alone(stream: InvitedStream, streams: Sequence[InvitedStream]) -> bool:
    """Say whether single values of a stream are never reported: of gas, or of longer slots."""
    return stream.quantity == GAS or stream.slot_seconds != streams[0].slot_seconds


def given_sums(
    args: argparse.Namespace, talk: Talk, streams: Sequence[InvitedStream]
) -> dict[str, GivenSums]:
    """Return the sums of streams by name, within the owner's bounds: of those that a fleet counts.

    What is beyond them, and nobody takes anyway, is not among them where a stream has sums alone;
    of another one SetupError is raised.
    """
    alone = [one for one in streams if has_sums_alone(one, streams)]
    others = [one for one in streams if one not in alone]
    shares = [Decimal(one.sums.share) for one in others if one.sums]
    usual = "both" if shares or alone else "reports"
    if not others or min(shares, default=0) == 1:
        usual = "sums"
    if talk.asks and args.give is None:
        talk.say(_WAYS)
    way = talk.taken("reports, sums or both", "--give", _way, usual, given=args.give)
    if way == "reports":
        return {}
    found: dict[str, GivenSums] = {}
    for one in alone:
        if one.sums and (made := _given(args, talk, one, "sums", Decimal(one.sums.share))):
            found[one.name] = made
    summed = [one for one in others if one.sums] or others * (way == "sums" or not alone)
    left = 1 - sum((one.table.share for one in found.values()), Decimal(0))
    each = left / max(1, len(summed)) * (1 if way == "sums" else Decimal(USUAL.share))
    for one in summed:
        told = Decimal(one.sums.share if one.sums else 1)
        share = each if way == "sums" or told == 1 else told
        share = Decimal(args.share or share.quantize(_STEP, ROUND_DOWN).normalize())
        if (made := _given(args, talk, one, WAYS[way], share)) is None:
            remedy = "--give reports, or say how much noise there is at least: --least-b 1"
            raise SetupError(f"setup: that is not given; nothing was written; {remedy}")
        found[one.name] = made
    return found


def _given(
    args: argparse.Namespace, talk: Talk, stream: InvitedStream, mode: str, share: Decimal
) -> GivenSums | None:
    """Return a stream's sums; None: what they tell was not measured, and nobody takes them."""
    wanted = stream.sums or USUAL
    if args.days is not None:
        wanted = replace(wanted, days=args.days)
    elif stream.sums is None:
        days = talk.taken("a sum of how many days", "--days", whole_number, str(wanted.days))
        wanted = replace(wanted, days=days)
    said = dict(args.least_b or ())
    least = said.get(stream.name, said.get("")) or _fair(stream, wanted, share)
    if least is None:
        what = (
            f"{stream.name} over {counted(wanted.days, 'day')} in {counted(wanted.cells, 'part')}"
        )
        talk.say(
            f"sums of {what} leave by your word alone (--least-b {stream.name}=N):"
            " no report is of gas to compare with"
            if stream.quantity == GAS
            else f"what sums of {what} give away was not measured for such a layout or connection"
        )
        if not (talk.asks and talk.agrees("take them anyway", "--least-b", default="n")):
            return None
    table = SumsTable(
        share=share,
        days=wanted.days,
        cells=wanted.cells,
        offset_s=wanted.offset_s,
        block_hours=wanted.block_hours,
        ceiling=_own_ceiling(args.fuse, stream),
        least_b=least or 1,
    )
    return GivenSums(mode, table)


def _fair(stream: InvitedStream, wanted: InvitedSums, share: Decimal) -> int | None:
    """Return the scale at which sums, and the reports beside them, tell no more than reports.

    What sums tell falls with the square of their noise, what reports tell with their number: so
    beside them sums have as much more noise as their share is smaller. None: not measured.
    """
    hours = wanted.block_hours
    block = wanted.cells * hours // 24 if hours > 1 else 1
    if (least := fair_least(stream, wanted.days, wanted.cells, block)) is None:
        return None
    return int((least / share).to_integral_value(ROUND_UP))


def _own_ceiling(fuse_w: int | None, stream: InvitedStream) -> int | None:
    """Return the connection's largest value where it is below the stream's: of its fuse alone."""
    if fuse_w is None or stream.quantity == GAS:
        return None
    own = fuse_w * stream.slot_seconds // HOUR_S if stream.unit == "Wh" else fuse_w
    return own if stream.low < own < stream.ceiling else None


def _way(text: str) -> str:
    if text not in WAYS:
        raise argparse.ArgumentTypeError(f"expected reports, sums or both, not {text!r}")
    return text
