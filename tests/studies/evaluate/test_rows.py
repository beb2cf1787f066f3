"""The file of rows as text: whole rows survive anything, and foreign ones are refused."""

import pytest

from studies.evaluate.rows import RowsError, header, line, parse
from studies.evaluate.study import StudyRow, Task
from tests.studies.evaluate.small import STUDY

DIGESTS = {"some": "0123456789ab", 'odd, "name"': "ba9876543210"}
ROWS = [
    StudyRow(Task("1", "some", "a", 0.1, 0), {"error": 1 / 3, "other": -1e-300}, 0.25),
    StudyRow(Task("1", 'odd, "name"', "b", 2.0, 1), {"error": 0.0}, 1.5),
]
TEXT = header(STUDY) + "".join(line(STUDY, row, DIGESTS[row.task.data]) for row in ROWS)


def test_rows_come_back_exactly() -> None:
    found = parse(TEXT, STUDY, DIGESTS, "small.csv")
    assert list(found.rows.values()) == ROWS
    assert (found.whole, found.dropped) == (len(TEXT), 0)


def test_a_file_cut_anywhere_loses_its_last_row_only() -> None:
    starts = [0, len(header(STUDY))]
    starts += [starts[1] + len(TEXT[starts[1] :].splitlines(keepends=True)[0]), len(TEXT)]
    for size in range(len(TEXT)):
        found = parse(TEXT[:size], STUDY, DIGESTS, "small.csv")
        whole = max(at for at in starts if at <= size)
        assert (found.whole, len(found.rows)) == (whole, max(starts.index(whole) - 1, 0))
        assert found.dropped == (size > whole)


def test_rows_of_another_version_are_refused() -> None:
    with pytest.raises(RowsError, match=r"small\.csv line 2: made by version 2 of the study"):
        parse(TEXT.replace("\n3,1,some", "\n2,1,some"), STUDY, DIGESTS, "small.csv")


def test_rows_of_other_values_are_refused_and_of_sets_not_at_hand_kept() -> None:
    with pytest.raises(RowsError, match="other values of some"):
        parse(TEXT, STUDY, {"some": "ffffffffffff"}, "small.csv")
    assert len(parse(TEXT, STUDY, {}, "small.csv").rows) == 2


@pytest.mark.parametrize("first", ["a,b,c\n", "\n", header(STUDY).replace("other", "more")])
def test_another_studys_file_is_refused(first: str) -> None:
    with pytest.raises(RowsError, match="its header is not that of this study"):
        parse(first + TEXT.split("\n", 1)[1], STUDY, DIGESTS, "small.csv")


@pytest.mark.parametrize("broken", ["", "3,1,some\n", '3,1,"some\n', "x" * 40 + "\n", "\x00\n"])
def test_a_damaged_line_in_the_middle_is_named(broken: str) -> None:
    lines = TEXT.splitlines(keepends=True)
    text = "".join([lines[0], broken or "\n", *lines[1:]])
    with pytest.raises(RowsError, match="line 2 is damaged; remove that line"):
        parse(text, STUDY, DIGESTS, "small.csv")


def test_measures_that_are_not_declared_or_not_finite_never_reach_the_file() -> None:
    for measures in ({"error": float("nan")}, {"error": float("inf")}, {"unknown": 1.0}):
        with pytest.raises(ValueError, match="not declared, or not finite"):
            line(STUDY, StudyRow(ROWS[0].task, measures, 0.0), "0123456789ab")
