"""The tables of the square wave: others' runs are all there, and ours stand beside them."""

import numpy as np

from studies.evaluate.report import tables as tabulated
from studies.evaluate.study import Options, StudyRow, Task, Values
from studies.evaluate.summary import summarise
from studies.evaluate.sw import STUDY
from studies.evaluate.sw.methods import METHODS
from studies.papers.sw import tables
from studies.papers.sw_runs import AUTHORS, reference


def test_the_figures_to_compare_with_are_complete() -> None:
    given = reference()
    assert len(given) == 2 * 5 * 8
    assert given["beta", 1.0, "SW+EMS"]["w1"] == (0.005203, 0.000311)
    assert set(given["spiky", 2.5, "HaarHRR"]) == {"range_0.1", "range_0.4"}
    assert {series for _, _, series in given} <= set(METHODS)


def test_the_tables_put_our_figures_beside_theirs() -> None:
    theirs = reference()["beta", 1.0, "SW+EM"]
    near = {name: mean + error for name, (mean, error) in theirs.items()}
    rows = [
        StudyRow(Task("2", "beta", series, 1.0, seed), near, 0.5)
        for series in AUTHORS
        for seed in range(2)
    ]
    text = tables(rows)
    assert "| beta | 1 | SW+EM | 7.13 / 6.85 (+1.0) |" in text
    assert "14 of 14 lie within 3" not in text  # EMS's own figures are another story
    assert "### Every method at ε = 1" in text
    assert "Figure 5" not in text


def test_the_tables_hold_every_figure_of_a_small_run() -> None:
    wanted = Options(epsilons=(1.0,), seeds=1)
    small = Values("tiny", np.arange(300) * 7 % 200, 0, 255, "W", "")
    rows = [
        StudyRow(task, STUDY.measure(task, small), 0.1) for task in STUDY.tasks([small], wanted)
    ]
    ours, beside = tabulated(STUDY.panels, summarise(rows)), tables(rows)
    for text, figures in ((ours, STUDY.figures), (beside, (5, 6, 7))):
        assert all(f"### Figure {figure}" in text for figure in figures)
        assert "AHEAD" in text
    assert tables([]) == tabulated(STUDY.panels, []) == ""
