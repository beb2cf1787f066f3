"""The file of a study's rows as text: one line per finished task, written as soon as it is done.

Columns: the study's version, the task, the digest of its values, every measure (empty: the task has
none), and the CPU seconds that drawing, counting and estimating took. Only the last line may be
damaged (the run was killed while it wrote); it is dropped and its task done again.
"""

from __future__ import annotations

import csv
import fcntl
import io
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Self

from edge_ldp.device.errors import EdgeLdpError
from studies.evaluate.study import StudyRow, Task

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from studies.evaluate.study import Study


_TASK = ("figure", "data", "values", "series", "x", "seed")
_REMEDY = "give another --out, or delete the file to start again"


class RowsError(EdgeLdpError):
    """A file of rows that this run may not go on with; `file`, the reason and the remedy."""

    def __init__(self, file: str, reason: str, remedy: str) -> None:
        super().__init__(f"{file}: {reason}; {remedy}")
        self.file = file
        self.reason = reason
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class FoundRow:
    """What a file held: finished rows, the length in characters of what is whole, lines dropped."""

    rows: Mapping[Task, StudyRow]
    whole: int
    dropped: int


def header(study: Study) -> str:
    """Return the first line."""
    return _line(["version", *_TASK, *study.metrics, "cpu_s"])


def line(study: Study, row: StudyRow, digest: str) -> str:
    """Return a row's line; raises ValueError for a measure the study does not declare, or NaN."""
    unknown = set(row.measures) - set(study.metrics)
    broken = [name for name, value in row.measures.items() if not isfinite(value)]
    if unknown or broken:
        names = ", ".join([*sorted(unknown), *broken])
        raise ValueError(f"study {study.name}: {names}: not declared, or not finite")
    task = row.task
    values = [row.measures.get(name) for name in study.metrics]
    cells = ["" if value is None else repr(float(value)) for value in values]
    fields = [task.figure, task.data, digest, task.series, repr(task.x), str(task.seed)]
    return _line([str(study.version), *fields, *cells, repr(row.cpu_s)])


def parse(text: str, study: Study, digests: Mapping[str, str], file: str) -> FoundRow:
    """Return the rows of a file; `digests` are those of the data sets at hand.

    Raises RowsError for another study's or version's file, for rows made from other values, and
    for a damaged line that is not the last.
    """
    head = header(study)
    lines = _lines(text)
    if not lines or (len(lines) == 1 and head.startswith(lines[0]) and lines[0] != head):
        return FoundRow({}, 0, len(lines))
    if lines[0] != head:
        raise RowsError(file, "its header is not that of this study and version", _REMEDY)
    rows: dict[Task, StudyRow] = {}
    whole, last = len(head), len(lines)
    for number, text_line in enumerate(lines[1:], start=2):
        row = _parse(text_line, study, digests, f"{file} line {number}")
        if row is None:
            if number < last:
                raise RowsError(file, f"line {number} is damaged", "remove that line")
            return FoundRow(rows, whole, 1)
        rows[row.task] = row
        whole += len(text_line)
    return FoundRow(rows, whole, 0)


def _parse(text: str, study: Study, digests: Mapping[str, str], place: str) -> StudyRow | None:
    """Return the row, None if it is damaged; raises RowsError if it does not belong here."""
    fields = _fields(text)
    if len(fields) != 1 + len(_TASK) + len(study.metrics) + 1:
        return None
    version, figure, data, digest, series, *rest = fields
    try:
        task = Task(figure, data, series, float(rest[0]), int(rest[1]))
        cells = zip(study.metrics, rest[2:-1], strict=True)
        measures = {name: float(value) for name, value in cells if value}
        row = StudyRow(task, measures, float(rest[-1]))
    except ValueError:
        return None
    if version != str(study.version):
        reason = f"made by version {version} of the study, this is {study.version}"
        raise RowsError(place, reason, _REMEDY)
    if digests.get(data, digest) != digest:
        reason = f"made from other values of {data} (or with --quick)"
        raise RowsError(place, reason, _REMEDY)
    return row


def _lines(text: str) -> list[str]:
    """Return the lines with their ends; the last may have none."""
    *ended, rest = text.split("\n")
    return [*(f"{one}\n" for one in ended), *([rest] if rest else [])]


def _fields(text: str) -> list[str]:
    if not text.endswith("\n"):
        return []
    try:
        return next(csv.reader([text], strict=True), [])
    except csv.Error:
        return []


def _line(fields: Sequence[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(fields)
    return text.getvalue()


class RowStore:
    """A study's rows, open for one process at a time; use it as a context.

    `rows`: what is finished, of all data sets in the file; `dropped`: 1 if its last line was
    damaged and taken away. Raises RowsError for a file that this run may not go on with, or that
    another process writes, and OSError.
    """

    def __init__(self, path: Path, study: Study, digests: Mapping[str, str]) -> None:
        self._study, self._digests = study, digests
        self._file = path.open("a+b", buffering=0)
        try:
            self._lock(path)
            self._file.seek(0)
            text = self._file.read().decode(errors="surrogateescape")
            found = parse(text, study, digests, str(path))
        except RowsError:
            self._file.close()
            raise
        self.rows: dict[Task, StudyRow] = dict(found.rows)
        self.dropped = found.dropped
        self._file.truncate(len(text[: found.whole].encode(errors="surrogateescape")))
        if not found.whole:
            self._file.write(header(study).encode())

    def append(self, row: StudyRow) -> None:
        """Write a finished row in one piece; once this returns, the run may be killed."""
        self._file.write(line(self._study, row, self._digests[row.task.data]).encode())
        self.rows[row.task] = row

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def _lock(self, path: Path) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            remedy = "wait for it, or give another --out"
            raise RowsError(str(path), "another evaluate is writing it", remedy) from exc
