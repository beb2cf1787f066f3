"""The tables of the study of θ: each cell by its worst run."""

from studies.theta.jumps import by_cell


def row(law: str, seed: int, cost: float, epsilon: str = "1.0") -> dict[str, str]:
    return {
        "law": law,
        "times": "10",
        "streams": "1",
        "epsilon": epsilon,
        "seed": str(seed),
        "epoch": "3",
        "theta": "7",
        "share": "0.5",
        "cost": f"{cost}",
        "papers": f"{2 * cost}",
    }


ROWS = [row("pos", 0, 1.0), row("pos", 1, 1.5), row("pos", 1, 1.25), row("pos", 0, 2.0, "0.2")]


def test_a_cell_is_told_by_its_worst_and_its_median_over_seeds_and_surveys() -> None:
    one, faint = by_cell(ROWS)
    assert one == {
        "data": "pos",
        "ceiling": "×10",
        "surveyed": "with stream reports",
        "epsilon": "1",
        "runs": 2,
        "cost_worst": "1.50",
        "cost_median": "1.25",
        "papers_cost_median": "2.5",
        "papers_cost_worst": "3",
    }
    assert (faint["epsilon"], faint["runs"]) == ("0.2", 1)
