"""The study of homes' own sums: what it adds up, folds and promises, without a draw to fail."""

from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from edge_ldp.period_sums.estimate import PeriodReport, estimate_total
from edge_ldp.period_sums.law import cell_variance
from studies.evaluate.main import main
from studies.evaluate.period_sums.study import (
    ASKED,
    BY_NAME,
    HOMES,
    SEEDS,
    Asked,
    check,
    drawn,
    folded_sums,
    measure,
    summed,
    tasks,
)
from studies.evaluate.study import Options, Task, Values
from studies.evaluate.sums.fleet import fleet_of

READINGS = np.arange(40 * 28 * 24, dtype=np.int64) % 3000
VALUES = Values("made", READINGS, 0, 43_470, "W", "made up", homes=40, slots_per_day=24)


def test_every_question_is_asked_of_every_number_of_homes_with_4_000_seeds() -> None:
    found = tasks([VALUES], Options())
    asked = {(task.figure, int(task.x)) for task in found}
    assert asked == {(one.name, n) for one in ASKED for n in HOMES}
    assert {task.seed for task in found} == {SEEDS} == {4000}


@pytest.mark.parametrize("asked", ASKED, ids=lambda one: one.name)
def test_scales_are_those_of_their_epsilon_in_any_97_slots(asked: Asked) -> None:
    known = {(8, 1): 527_074, (6, 1): 702_765, (4, 1): 1_054_148, (8, 4): 152_145}
    assert asked.scale(43_470) == known[asked.epsilon, asked.block]


def test_daily_sums_are_on_trial_together_and_each_alone() -> None:
    assert list(BY_NAME["shipped-days"].questions(28)) == [(slice(28), 0)]
    alone = list(BY_NAME["shipped-a-day"].questions(28))
    assert alone == [(slice(at, at + 1), 0) for at in range(28)]


def test_sums_are_of_the_homes_slots_that_are_there() -> None:
    fleet = fleet_of(VALUES, 1.0)
    sums, counts = summed(VALUES, BY_NAME["hours"], 40)
    assert sums.shape == counts.shape == (40, 1, 24)
    there = fleet.present.reshape(40, 28, 24)
    assert (counts[:, 0] == 4 * there.sum(axis=1)).all()  # an hour stands for four slots
    read = fleet.readings.reshape(40, 28, 24) * there
    assert (sums[:, 0] == 4 * read.sum(axis=1)).all()
    weeks, _ = summed(VALUES, BY_NAME["total-weeks"], 90)  # homes are taken again
    assert weeks.shape == (90, 4, 1)
    assert (weeks[:10] == weeks[40:50]).all()
    assert weeks[:40].sum() == sums.sum()


def test_every_seed_has_noise_of_its_own() -> None:
    noise = drawn(1 << 40, (8, 5, 2, 4))  # so wide that no two are alike
    assert noise.shape == (8, 5, 2, 4)
    assert len(set(map(tuple, noise.reshape(-1, 4).tolist()))) == 8 * 5 * 2
    assert drawn(1 << 40, (2, 5, 2, 1)).shape == (2, 5, 2, 1)


def test_folding_is_the_librarys() -> None:
    scale, rng = 1000, np.arange(3 * 40).reshape(3, 40, 1) * 977 % 5000 - 2000
    total, variance = folded_sums(rng, scale, 1)
    layout = BY_NAME["total-month"].layout
    for seed, y in enumerate(rng[:, :, 0].tolist()):
        homes = [[PeriodReport(layout, 1, 0, 43_470, scale, (1,), (one,))] for one in y]
        known = estimate_total(homes)
        assert known.total == pytest.approx(total[seed])
        assert known.total_half_width == pytest.approx(1.959963984540054 * sqrt(variance[seed]))
    half = 1.959963984540054 * sqrt(variance[0])
    check(scale, rng[0], total[0], half)
    with pytest.raises(AssertionError):
        check(scale, rng[0], total[0] + 1e6, half)
    together, wide = folded_sums(rng, scale, 4)
    assert (together == rng.sum(axis=(1, 2))).all()
    assert (wide == 40 * cell_variance(scale, 4)).all()


@pytest.mark.parametrize("name", ["total-weeks", "shipped-a-day", "parts", "hours-in-blocks"])
def test_an_interval_is_never_wider_than_the_law_nor_narrower_than_folding_makes_it(
    name: str,
) -> None:
    found = measure(Task(name, "made", "", 30.0, 3), VALUES)
    assert 0.5**0.5 <= found["of_law"] <= 1 + 1e-9
    assert 0 <= found["least"] <= found["coverage"] <= found["most"] <= 1


def test_the_command_takes_the_mode_of_the_study_sums_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "a.npz", power=READINGS)
    own = ["--values", f"{tmp_path}/a.npz:power", "--ceiling", "43470", "--homes", "40"]
    asked = [
        "--mode",
        "sums",
        "--seeds",
        "2",
        "--only",
        "total-month",
        "--out",
        str(tmp_path / "o"),
    ]
    assert main(["sums", *own, *asked]) == 0
    assert (tmp_path / "o" / "period-sums.csv").exists()
    assert main(["topl", "--mode", "sums", "--out", str(tmp_path)]) == 2
    assert "of the study sums alone" in capsys.readouterr().err
