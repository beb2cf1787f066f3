"""A file of the archive united with new reports, row group by row group: as if it were at once."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aggregator.archive.columns import TYPES, Reports, make_reports, unite
from aggregator.archive.parquet import merge_into
from aggregator.errors import StoreError

HOMES = ("a", "ab", "b", "home-1", "home-10", "home-2", "z")
GROUPS = 5  # rows in a row group


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a file's place; row groups are small, so that devices lie in several."""
    monkeypatch.setattr("aggregator.archive.parquet.ROW_GROUP", GROUPS)
    return tmp_path / "reports" / "day=2026-11-21" / "shard-000.parquet"


def reports_of(rows: list[tuple[int, int, int]]) -> Reports:
    home, slot, code = (np.array(column, np.int64) for column in np.array(rows).T)
    one = np.ones(len(rows), np.int64)
    columns = {"device": home, "stream": slot % 2, "epoch": one, "slot": slot, "code": code}
    return make_reports(HOMES, {**columns, "batch": slot, "digest": slot * 7})


def seen(reports: Reports) -> list[tuple[object, ...]]:
    columns = reports.columns()
    names = [reports.names[at] for at in columns["device"].tolist()]
    rest = [columns[name].tolist() for name in TYPES if name != "device"]
    return list(zip(names, *rest, strict=True))


def stored(path: Path) -> list[tuple[object, ...]]:
    """Return the rows of a file, as anybody's PyArrow reads them."""
    columns = pq.read_table(path).to_pydict()
    return list(zip(*(columns[name] for name in TYPES), strict=True))


ROWS = st.lists(
    st.tuples(st.integers(0, len(HOMES) - 1), st.integers(0, 9), st.integers(0, 2)),
    min_size=1,
    max_size=40,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(ROWS, min_size=1, max_size=4))
def test_whatever_comes_in_whatever_parts_the_file_is_as_if_it_had_come_at_once(
    path: Path, parts: list[list[tuple[int, int, int]]]
) -> None:
    path.unlink(missing_ok=True)
    kept: list[Reports] = []
    for rows in parts:
        part = unite([reports_of(rows)]).reports
        expected = unite([*kept, part])
        done = merge_into(path, part)
        assert (done.repeats, done.conflicts) == (expected.repeats, expected.conflicts)
        assert done.files == (not kept or expected.repeats < len(part))
        kept = [expected.reports]
        assert stored(path) == seen(expected.reports)
        assert pq.ParquetFile(path).num_row_groups >= len(expected.reports) / GROUPS
        assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_file_that_is_damaged_is_named_and_stays_as_it_is(path: Path) -> None:
    part = unite([reports_of([(home, slot, 1) for home in range(7) for slot in range(9)])]).reports
    merge_into(path, part)
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"shard-000\.parquet: is damaged"):
        merge_into(path, part)
    assert path.read_bytes() == content
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.slow
def test_the_memory_of_uniting_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Peak of what NumPy holds: a file of 20 row groups against one of 5."""
    import tracemalloc  # noqa: PLC0415 (slows what it watches)

    peaks = []
    for size in (5, 20):
        path = tmp_path / str(size) / "day=2026-11-21" / "shard-000.parquet"
        homes = np.repeat(np.arange(size * (1 << 18) // 96), 96)
        names = [f"home-{at:06}" for at in range(int(homes[-1]) + 1)]
        slot = np.tile(np.arange(96), len(names))
        one = np.ones(len(homes), np.int64)
        columns = {"device": homes, "stream": one, "epoch": one, "slot": slot, "code": slot}
        whole = make_reports(names, {**columns, "batch": slot, "digest": one})
        late = np.arange(len(homes)) % 96 == 95
        merge_into(path, whole.take(~late))
        fresh = whole.take(late & (homes % size == 0))
        del whole, columns, homes, slot, one, late
        tracemalloc.start()
        merge_into(path, fresh)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
    assert peaks[1] < 200 << 20
