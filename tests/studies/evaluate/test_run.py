"""Doing tasks: in order, in one process or several, and only those that are missing."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from rich.console import Console

from studies.evaluate.rows import RowStore
from studies.evaluate.run import run
from studies.evaluate.study import Options, Task, Values
from tests.studies.evaluate.small import STUDY, tasks, values

SETS = {"some": values()}
TASKS = tasks(list(SETS.values()), Options(seeds=5))
DIGESTS = {name: one.digest() for name, one in SETS.items()}
QUIET = Console(quiet=True)


def fail_at_last(task: Task, given: Values) -> Mapping[str, float]:
    if task == TASKS[-1]:
        raise KeyboardInterrupt
    return STUDY.measure(task, given)


def done(path: Path, jobs: int, count: int = len(TASKS)) -> list[str]:
    with RowStore(path, STUDY, DIGESTS) as store:
        run(TASKS[:count], measure=STUDY.measure, sets=SETS, store=store, jobs=jobs, console=QUIET)
    return [text.rpartition(",")[0] for text in path.read_text().splitlines()]


def test_several_processes_write_the_same_rows_in_the_same_order(tmp_path: Path) -> None:
    assert done(tmp_path / "one.csv", 1) == done(tmp_path / "two.csv", 2)


def test_only_missing_tasks_are_done(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    first = done(path, 1, count=7)
    assert done(path, 1)[: len(first)] == first
    with RowStore(path, STUDY, DIGESTS) as store:
        again = run(TASKS, measure=fail_at_last, sets=SETS, store=store, jobs=1, console=QUIET)
    assert again == 0


def test_what_was_finished_before_an_interruption_stays(tmp_path: Path) -> None:
    path = tmp_path / "small.csv"
    with RowStore(path, STUDY, DIGESTS) as store, pytest.raises(KeyboardInterrupt):
        run(TASKS, measure=fail_at_last, sets=SETS, store=store, jobs=1, console=QUIET)
    assert done(path, 1) == done(tmp_path / "whole.csv", 1)
