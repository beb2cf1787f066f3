"""Every meter that parsers are tried with gives its right values, or the refusal that is due."""

from pathlib import Path

import pytest

from tests.agent.meters.case_table import CASES, TRIED, Case, cases, given, table

EVERY = [case for case in cases() if case.file != "-"]
PAGE = Path(__file__).parents[3] / "docs" / "meters.md"


@pytest.mark.parametrize("case", EVERY, ids=lambda case: f"{case.protocol}-{case.id}")
def test_SER_28_SER_29_SER_30_SER_34_a_case_gives_what_is_right(case: Case) -> None:
    if case.file.startswith("collection/") and not case.path.exists():
        pytest.skip("the large collection is not beside us")
    assert given(case) == case.due(), case.note


def test_every_file_of_a_case_is_named_by_one_and_every_row_says_where_it_is_from() -> None:
    rows = list(cases())
    for case in rows:
        assert case.source, case.id
        assert case.tried in (TRIED if case.model else (*TRIED, "made")), case.id
    assert len({case.id for case in rows}) == len(rows)
    named = {case.path for case in EVERY if not case.file.startswith("collection/")}
    there = {path for path in CASES.glob("*/*") if path.suffix in (".raw", ".bin")}
    assert there == named


def test_the_page_has_the_table_of_the_meters_that_were_tried() -> None:
    assert table() in PAGE.read_text(), "python -m tests.agent.meters.case_table prints it"
