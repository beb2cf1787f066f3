"""A stream's density from archived reports, by the estimator that is asked for."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aggregator.counting.classes import Weights, effective
from aggregator.counting.tally import CountRows, exact_sum, merge_epochs
from edge_ldp.errors import NoReportsError
from edge_ldp.estimate import Density, auto, em, ems
from edge_ldp.protocol.plan import Plan, is_survey

SEED = 0  # of what halves the reports to choose by: no privacy noise; same counts, same density


def _auto(mechanism: Any, counts: NDArray[np.int64]) -> Density:
    return auto(mechanism, counts, rng=np.random.default_rng(SEED)).density


ESTIMATORS: dict[str, Callable[[Any, NDArray[np.int64]], Density]] = {
    "ems": lambda mechanism, counts: ems(mechanism, counts, accelerate=True, early=True),
    "em": em,
    "auto": _auto,
}


def estimated_view(
    plans: Mapping[int, Plan], rows: CountRows, estimator: str, weights: Weights | None = None
) -> dict[str, Any]:
    """Return the density of the mechanism with the most surveys among the counts, by an estimator.

    estimator; edges (unit; cell k holds edges[k] ≤ v < edges[k+1]), probabilities, n (surveys),
    iterations, warnings. Raises NoReportsError without surveys, CountsError.
    """
    weighed = merge_epochs(plans, rows, weights).items()
    surveys = [
        (mechanism, effective(found)) for mechanism, found in weighed if is_survey(mechanism)
    ]
    if not surveys:
        raise NoReportsError
    mechanism, counts = max(surveys, key=_reports)
    found = ESTIMATORS[estimator](mechanism, counts)
    return {
        "estimator": estimator,
        "edges": found.edges.tolist(),
        "probabilities": found.probabilities.tolist(),
        "n": found.n,
        "iterations": found.iterations,
        "warnings": list(found.warnings),
    }


def _reports(pair: tuple[Any, NDArray[np.int64]]) -> int:
    return exact_sum(pair[1])
