"""The file of rows on disk: appended, cut back to what is whole, one writer at a time."""

from pathlib import Path

import pytest

from studies.evaluate.rows import RowsError, RowStore, header
from studies.evaluate.study import StudyRow, Task
from tests.studies.evaluate.small import STUDY

DIGESTS = {"sömé": "0123456789ab"}


def row(seed: int) -> StudyRow:
    return StudyRow(Task("1", "sömé", "a", 1.0, seed), {"error": 0.5}, 0.0)


def test_rows_are_on_disk_as_soon_as_they_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    with RowStore(path, STUDY, DIGESTS) as store:
        assert path.read_text() == header(STUDY)
        store.append(row(0))
        assert len(path.read_text().splitlines()) == 2
    with RowStore(path, STUDY, DIGESTS) as store:
        assert store.rows == {row(0).task: row(0)}


@pytest.mark.parametrize("tail", [b"3,1,s", b"\xff\xfe", b'"', b"3,1,s\n"])
def test_a_damaged_last_line_is_cut_off_and_said(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "small.csv"
    with RowStore(path, STUDY, DIGESTS) as store:
        store.append(row(0))
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    with RowStore(path, STUDY, DIGESTS) as store:
        assert (store.dropped, len(store.rows)) == (1, 1)
        assert path.read_bytes() == whole
        store.append(row(1))
    with RowStore(path, STUDY, DIGESTS) as store:
        assert (store.dropped, len(store.rows)) == (0, 2)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    with (
        RowStore(path, STUDY, DIGESTS),
        pytest.raises(RowsError, match="another evaluate is writing it"),
    ):
        RowStore(path, STUDY, DIGESTS)
    with RowStore(path, STUDY, DIGESTS) as store:
        assert not store.rows


def test_a_refused_file_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    path.write_text("somebody's,other,table\n1,2,3\n")
    with pytest.raises(RowsError, match="give another --out"):
        RowStore(path, STUDY, DIGESTS)
    assert path.read_text() == "somebody's,other,table\n1,2,3\n"
