"""What `setup` makes of sums that a fleet counts, or that an owner gives: within his bounds."""

from argparse import Namespace
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from agent.commands.setup.asked_sums import given_sums
from agent.commands.setup.talk import SetupError, Talk
from edge_ldp.period_sums import PeriodLayout, scale_for
from edge_ldp.period_sums.habits import MEASURED, fair_scale, leak_of_reports, leak_of_sums
from edge_ldp.protocol.invitation import InvitedStream, InvitedSums

POWER = InvitedStream("power", "power", "W", 0, 43_470, 900)
GAS = InvitedStream("gas", "gas", "dm3", 0, 6000, 3600, sums=InvitedSums(7, "0.125"))
LEAST = [("gas", 150_000)]
NOTHING = dict.fromkeys(("give", "days", "share", "least_b", "fuse"))
FAIR = 527_074  # of a day's sums, beside reports of 43,470 W


def given(stream: InvitedStream, sums: InvitedSums | None = None, **options: Any) -> list[object]:
    """Return mode, share, days, least_b and own ceiling of what nobody was asked about."""
    args = Namespace(**(NOTHING | options))
    found = given_sums(args, Talk(is_silent=True), [replace(stream, sums=sums)])
    return [
        part
        for one in found.values()
        for part in (
            *(one.mode, str(one.table.share), one.table.days),
            *(one.table.least_b, one.table.ceiling),
        )
    ]


@pytest.mark.parametrize(
    ("sums", "options", "expected"),
    [
        (None, {}, []),
        (None, {"give": "sums"}, ["sums", "1", 1, FAIR, None]),
        (None, {"give": "both"}, ["both", "0.75", 1, 702_766, None]),
        (None, {"give": "both", "share": Decimal("0.5")}, ["both", "0.5", 1, 2 * FAIR, None]),
        (InvitedSums(1, "1"), {}, ["sums", "1", 1, FAIR, None]),
        (InvitedSums(1, "0.5"), {}, ["both", "0.5", 1, 2 * FAIR, None]),
        (InvitedSums(7, "1"), {}, ["sums", "1", 7, 843_318, None]),
        (InvitedSums(28, "1"), {}, ["sums", "1", 28, 2_108_295, None]),
        (InvitedSums(1, "0.5"), {"give": "sums"}, ["sums", "1", 1, FAIR, None]),
        (InvitedSums(1, "1"), {"give": "both"}, ["both", "0.75", 1, 702_766, None]),
        (InvitedSums(1, "0.5"), {"give": "reports"}, []),
        (InvitedSums(3, "1"), {"days": 1}, ["sums", "1", 1, FAIR, None]),
        (InvitedSums(3, "1"), {"least_b": [("", 7)]}, ["sums", "1", 3, 7, None]),
        (InvitedSums(1, "1"), {"fuse": 17_250}, ["sums", "1", 1, FAIR, 17_250]),
        (InvitedSums(1, "1"), {"fuse": 50_000}, ["sums", "1", 1, FAIR, None]),
    ],
)
def test_what_is_given_or_invited_has_the_least_noise_that_its_owner_allows_PLN_21(
    sums: InvitedSums | None, options: dict[str, Any], expected: list[object]
) -> None:
    """A smaller fuse is no free accuracy: the noise stays that of the fleet's connection."""
    assert given(POWER, sums, **options) == expected


@pytest.mark.parametrize(
    ("stream", "sums"),
    [
        (POWER, InvitedSums(3, "1")),
        (POWER, InvitedSums(1, "1", cells=48)),
        (POWER, InvitedSums(28, "1", cells=24, block_hours=2)),
        (replace(POWER, ceiling=50_000), InvitedSums(1, "1")),
    ],
)
def test_sums_of_which_was_not_measured_what_they_give_away_are_refused_PLN_21(
    stream: InvitedStream, sums: InvitedSums, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SetupError, match=r"nothing was written; --give reports, or .*--least-b 1"):
        given(stream, sums)
    assert "was not measured" in capsys.readouterr().out


def test_of_shorter_slots_the_noise_is_the_same_energy() -> None:
    short = replace(POWER, slot_seconds=300)
    assert given(short, InvitedSums(1, "1")) == ["sums", "1", 1, 3 * FAIR, None]


def test_an_energys_noise_is_a_powers_in_its_unit() -> None:
    energy = InvitedStream("e", "energy_import", "Wh", 0, 43_470 // 4, 900)
    (_, _, _, least, own) = given(energy, give="sums", fuse=17_250)
    assert (least, own) == (-(-fair_scale(1, 1, 1, 43_468) * 900 // 3600), 4312)  # type: ignore[operator]


@pytest.mark.parametrize(
    ("sums", "options", "expected"),
    [
        (None, {}, []),
        (InvitedSums(1, "0.75"), {}, ["both 0.75"]),
        (None, {"least_b": LEAST}, ["sums 0.125"]),
        (InvitedSums(1, "0.75"), {"least_b": LEAST}, ["sums 0.125", "both 0.75"]),
        (InvitedSums(1, "1"), {"least_b": LEAST}, ["sums 0.125", "sums 0.875"]),
        (InvitedSums(1, "0.75"), {"least_b": LEAST, "give": "sums"}, ["sums 0.125", "sums 0.875"]),
        (None, {"least_b": LEAST, "give": "sums"}, ["sums 0.125", "sums 0.875"]),
        (None, {"least_b": LEAST, "give": "both"}, ["sums 0.125"]),
        (InvitedSums(1, "0.75"), {"least_b": LEAST, "give": "reports"}, []),
    ],
)
def test_gas_is_given_by_its_owners_word_alone_and_never_as_reports_PLN_21(
    capsys: pytest.CaptureFixture[str],
    sums: InvitedSums | None,
    options: dict[str, Any],
    expected: list[str],
) -> None:
    """There are no reports of it to tell no more than; without that word the others go on."""
    args = Namespace(**(NOTHING | options))
    found = given_sums(args, Talk(is_silent=True), [replace(POWER, sums=sums), GAS])
    assert [f"{one.mode} {one.table.share}" for one in found.values()] == expected
    is_told = "leave by your word alone (--least-b gas=N):" in capsys.readouterr().out
    assert is_told == ("gas" not in found and options.get("give") != "reports")
    if "gas" in found:
        assert (found["gas"].table.days, found["gas"].table.least_b) == (7, 150_000)


def test_streams_share_what_nobody_shared_out() -> None:
    streams = [replace(POWER, name=name) for name in "abc"]
    args = Namespace(**(NOTHING | {"give": "sums"}))
    found = given_sums(args, Talk(is_silent=True), streams)
    assert sum(one.table.share for one in found.values()) <= 1
    assert [one.table.share for one in found.values()] == [Decimal("0.3333")] * 3


@pytest.mark.parametrize("ceiling", [43_470, 17_250])
def test_the_least_noise_is_of_sums_that_were_measured_to_tell_no_more(ceiling: int) -> None:
    reports = leak_of_reports(ceiling)
    assert reports is not None
    for days, cells, block in {one[:3] for one in MEASURED if one.days}:
        fair = fair_scale(days, cells, block, ceiling)
        assert fair is not None
        usual = scale_for(PeriodLayout(900, days, cells, 0, block), 97, ceiling, 8)
        leak = leak_of_sums(days, cells, block, max(fair, usual))
        assert leak is not None
        assert leak.is_no_more_than(reports)
