"""Doing a study's tasks, in this process or several, with progress on the screen."""

from __future__ import annotations

import os
import signal
from collections import deque
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice
from multiprocessing import get_context, parent_process
from threading import Thread
from time import process_time
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from studies.evaluate.study import StudyRow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from rich.console import Console

    from studies.evaluate.rows import RowStore
    from studies.evaluate.study import Task, Values

    Measure = Callable[[Task, Values], Mapping[str, float]]

_AHEAD = 4  # tasks waiting for each process
_held: dict[str, tuple[Measure, Mapping[str, Values]]] = {}


def run(  # noqa: PLR0913 (keywords)
    tasks: Sequence[Task],
    *,
    measure: Measure,
    sets: Mapping[str, Values],
    store: RowStore,
    jobs: int,
    console: Console,
) -> int:
    """Do the tasks that the store has no row of, in their order; return how many were done.

    Rows are stored in the tasks' order whatever `jobs` is, so two runs give the same file but for
    the times. Interrupted (KeyboardInterrupt), the store holds what was finished.
    """
    missing = [task for task in tasks if task not in store.rows]
    with _bar(console) as progress:
        bar = progress.add_task("measuring", total=len(tasks), completed=len(tasks) - len(missing))
        for row in _rows(missing, measure, sets, jobs):
            store.append(row)
            text = f"figure {row.task.figure}, {row.task.data}, {row.task.series}"
            progress.update(bar, advance=1, description=text)
        progress.update(bar, description="done")
    return len(missing)


def _bar(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def _rows(
    tasks: Sequence[Task], measure: Measure, sets: Mapping[str, Values], jobs: int
) -> Iterator[StudyRow]:
    if jobs == 1 or len(tasks) < 2:
        for task in tasks:
            yield _measured(task, measure, sets[task.data])
        return
    with _pool(measure, sets, jobs) as pool:
        waiting: deque[Future[StudyRow]] = deque()
        coming = iter(tasks)
        waiting.extend(pool.submit(_in_process, task) for task in islice(coming, _AHEAD * jobs))
        while waiting:
            yield waiting.popleft().result()
            waiting.extend(pool.submit(_in_process, task) for task in islice(coming, 1))


@contextmanager
def _pool(measure: Measure, sets: Mapping[str, Values], jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Start the processes; on the way out, whatever happened, drop what has not begun."""
    context = get_context("spawn")  # a fork would copy threads' locks
    pool = ProcessPoolExecutor(jobs, context, _prepare, (measure, dict(sets)))
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _prepare(measure: Measure, sets: Mapping[str, Values]) -> None:
    """Hold what all tasks share, once a process; Ctrl-C is the parent's to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_leave_with_parent, daemon=True, name="leave with parent").start()
    _held["study"] = (measure, sets)


def _leave_with_parent() -> None:
    """End when the parent is gone, however it went: a killed one cannot tell its processes."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_process(task: Task) -> StudyRow:
    measure, sets = _held["study"]
    return _measured(task, measure, sets[task.data])


def _measured(task: Task, measure: Measure, values: Values) -> StudyRow:
    start = process_time()
    measures = dict(measure(task, values))
    return StudyRow(task, measures, round(process_time() - start, 4))  # as its line says
