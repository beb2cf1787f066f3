"""What docs/results holds is what a run of today gives: a few cells, measured again."""

import csv
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from studies.evaluate.files import built_in
from studies.evaluate.study import Task

RESULTS = Path(__file__).parents[3] / "docs" / "results"


# study, figure, data, series, x, measure: of each study one that is drawn by chance
@pytest.mark.parametrize(
    ("study", "cell"),
    [
        ("sw", ("2", "beta", "SW+EMS", 2.5, "w1")),
        ("sw", ("2", "beta", "SW+auto", 2.5, "w1")),
        ("topl", ("8", "pos", "least possible", 1.0, "theta")),
        ("topl", ("8", "pos", "SW-W", 2.0, "mse")),
        ("topl", ("epochs", "pos", "ε = 0.6", 2.0, "theta")),
        ("tops", ("1", "pos", "equation 6", 67.0, "root error")),
        ("tops", ("1", "pos", "measured", 67.0, "root error")),
        ("tops", ("5", "retail", "H16c", 0.05, "mse")),
    ],
)
def test_a_committed_cell_is_what_a_fresh_run_gives(
    study: str, cell: tuple[str, str, str, float, str]
) -> None:
    figure, data, series, x, metric = cell
    key = [figure, data, series, f"{x:g}", metric]
    with (RESULTS / f"{study}-summary.csv").open() as file:
        rows = [row for row in csv.reader(file) if row[:5] == key]
    ((*_, n, mean, _, _),) = rows
    measure, values = import_module(f"studies.evaluate.{study}").STUDY.measure, built_in(data)
    found = [measure(Task(figure, data, series, x, seed), values)[metric] for seed in range(int(n))]
    assert np.mean(found) == pytest.approx(float(mean), rel=1e-3)
