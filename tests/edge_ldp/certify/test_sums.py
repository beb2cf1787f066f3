"""What is proved of a home's sums: what any window costs, from integers; and what is refuted."""

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from edge_ldp import ParameterError
from edge_ldp.certify import certify_sums, judge_file
from edge_ldp.certify import sums as certified
from edge_ldp.certify.certify_command import EXIT_FAILS, EXIT_USAGE, main
from edge_ldp.certify.sums import counted_at, places
from edge_ldp.certify.verdict import Verdict
from edge_ldp.period_sums import PeriodLayout, most_in_window, scale_for
from edge_ldp.period_sums.scale import counted
from tests.edge_ldp.certify.test_certify_command import changed, failed

SHIPPED = PeriodLayout(900, 7)
WORDS = ["period-sums", "--span", "43470", "--scale", "527074"]


@pytest.mark.parametrize("offset", [0, 5 * 3600])
@pytest.mark.parametrize(
    ("parts", "window"), [(1, 1), (1, 5), (1, 24), (1, 25), (1, 60), (4, 1), (4, 97), (4, 98)]
)
@pytest.mark.parametrize(("days", "cells", "block"), [(1, 1, 1), (1, 6, 3), (2, 12, 4), (7, 12, 1)])
def test_the_least_scale_is_certified_and_one_less_is_refuted_PRV_31(  # noqa: PLR0913, PLR0917
    days: int, cells: int, block: int, parts: int, window: int, offset: int
) -> None:
    layout = PeriodLayout(3600, days, cells, offset, block)
    scale, most = scale_for(layout, window, 4000, 6, parts), most_in_window(layout, window, parts)
    proved, less = (
        certify_sums(
            *(layout, 4000, b, window, Fraction(8)),
            parts=parts,
            reports=2,
            report_epsilon=Fraction(1),
        )
        for b in (scale, scale - 1)
    )
    assert proved.holds
    assert proved.figures["most"] == most
    assert proved.figures["epsilon"] == Fraction(most * 4000, scale) + 2
    assert failed(Verdict(less)) == {"epsilon"}


@pytest.mark.parametrize(
    "layout",
    [PeriodLayout(14_400, 1, 2), PeriodLayout(7200, 1, 4, block=2), PeriodLayout(7200, 3, 4)],
)
def test_a_windows_count_is_that_of_its_slots_one_by_one_wherever_it_begins(
    layout: PeriodLayout,
) -> None:
    for window in (1, 2, 7, 13, 40):
        for first in places(layout, window):
            assert counted_at(layout, first, window) == counted(
                layout, range(first, first + window)
            )


def test_the_worst_two_histories_in_a_window_cost_just_what_is_certified() -> None:
    """Every change of every slot over a period's border, in sums and in a report, exactly."""
    layout, span, scale, window, ratio = PeriodLayout(14_400, 1, 2), 2, 5, 3, Fraction(3, 2)
    proved = certify_sums(layout, span, scale, window, reports=1, report_epsilon=Fraction(1, 2))
    border, worst = layout.first_slot(10), Fraction(0)
    for first in range(border - 5, border + 3):
        for moved in product((-span, 0, span), repeat=window):
            cells: dict[tuple[int, int], int] = {}
            for slot, by in zip(range(first, first + window), moved, strict=True):
                key = layout.period(slot), layout.cell(slot)
                cells[key] = cells.get(key, 0) + by
            worst = max(worst, Fraction(sum(map(abs, cells.values())), scale))
    assert worst == proved.figures["window"]
    assert proved.figures["epsilon"] == worst + Fraction(1, 2)
    assert ratio < Fraction(1649, 1000)  # e^(1/2): the report's ratio is below what is added


def test_a_device_that_counts_less_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certified, "most_in_window", lambda *_: 24)
    hours = certify_sums(PeriodLayout(3600, 7), 6000, 18_750, 97, Fraction(8), parts=4)
    assert failed(Verdict(hours)) == {"count"}


def test_a_saved_certificate_is_proved_again_and_a_changed_one_refuted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "sums.json"
    assert main([*WORDS, "--epsilon", "8", "--save", str(file)]) == 0
    assert "as ε             7.999996205466406 rounded up" in capsys.readouterr().out
    assert main(["--check", str(file)]) == 0
    told = judge_file(changed(file.read_bytes(), "subject", "scale", to=527_073))
    assert "file" in failed(told)
    for name, to in (("span", "9"), ("days", 400), ("report_epsilon", 5), ("window", 10**9)):
        refuted = judge_file(changed(file.read_bytes(), "subject", name, to=to))
        assert refuted.certificate is None
    assert main(["--check", str(file), "--json"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out.splitlines()[-1])["certificate"]["subject"]["mechanism"] == "period-sums"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([*WORDS, "--epsilon", "7.9"], EXIT_FAILS),
        ([*WORDS, "--epsilon", "8", "--reports", "1", "--report-epsilon", "1"], EXIT_FAILS),
        ([*WORDS, "--epsilon", "8", "--days", "0"], EXIT_USAGE),
        ([*WORDS, "--epsilon", "8", "--slot-seconds", "1"], EXIT_USAGE),
        ([*WORDS, "--epsilon", "8", "--size", "4"], EXIT_USAGE),
        ([*WORDS, "--epsilon", "8", "--parts", "7"], EXIT_USAGE),
        ([*WORDS, "--epsilon", "8", "--reports", "-1"], EXIT_USAGE),
        (["period-sums", "--span", "9", "--epsilon", "8"], EXIT_USAGE),
    ],
)
def test_what_does_not_hold_or_cannot_be_is_told_by_its_exit_code(
    words: list[str], code: int
) -> None:
    assert main(words) == code


def test_options_of_sums_are_theirs_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["hybrid", "--epsilon", "1", "--report-epsilon", "1"])
    assert "--report-epsilon: only with period-sums" in capsys.readouterr().err


def test_a_span_of_nothing_is_refused() -> None:
    with pytest.raises(ParameterError):
        certify_sums(SHIPPED, 0, 5, 97)
