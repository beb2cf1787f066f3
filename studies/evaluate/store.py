"""The file of rows on disk: appended line by line, so that a killed run goes on where it was."""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING, Self

from studies.evaluate.rows import RowsError, header, line, parse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from types import TracebackType

    from studies.evaluate.study import Study, StudyRow, Task


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
