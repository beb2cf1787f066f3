"""Arguments of the right type that make no sense are refused by name: one row an argument."""

from collections.abc import Iterator
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from edge_ldp import ParameterError, StochasticRounding
from edge_ldp.continual import Renewal
from edge_ldp.continual.threshold import MAX_THETA
from edge_ldp.device.oracle import PRIME
from tests.edge_ldp.hostile import CALLS

ORACLES = ("Grr", "Olh", "Hrr", "HaarHrr", "Oue", "Hierarchy")
F = Fraction
HORIZONS = (0, -1, 0.99, nan, inf)
TOPS = "edge_ldp.continual.tops_design"
# a function, one of its arguments, and values of it; `hostile.CALLS` has good ones of the others
ROWS: list[tuple[str, str, tuple[Any, ...]]] = [
    *((f"edge_ldp.oracles.{one}", "epsilon", (0, -1, nan, 33)) for one in ORACLES),
    *((f"edge_ldp.oracles.{one}", "size", (1, -4, 1 << 32, True, 8.0, "8")) for one in ORACLES),
    ("edge_ldp.oracles.Grr", "size", (65_537,)),
    ("edge_ldp.oracles.Olh", "epsilon", (12,)),
    ("edge_ldp.oracles.Olh", "size", (1 << 31,)),
    ("edge_ldp.oracles.Hierarchy", "size", ((1 << 30) + 1,)),
    ("edge_ldp.oracles.Hierarchy", "fanout", (1, 65_537, 2.0)),
    ("edge_ldp.SquareWave", "high", (0, -1, 1 << 48, True)),
    ("edge_ldp.SquareWave", "low", (0.0,)),
    ("edge_ldp.SquareWave", "size", (902, 1, 2.5)),
    ("edge_ldp.Piecewise", "size", (65_536, 65_537)),
    ("edge_ldp.Hybrid", "epsilon", (0,)),
    ("edge_ldp.StochasticRounding", "epsilon", (33,)),
    ("edge_ldp.GeneralWave", "top", (-0.1, 1.5, nan, "wide")),
    ("edge_ldp.GeneralWave", "b", (-1, inf, 10**6)),
    ("edge_ldp.GeneralWave", "size", (1, 2000)),
    ("edge_ldp.GeneralWave", "epsilon", (0,)),
    ("edge_ldp.GeneralWave", "high", (0,)),
    ("edge_ldp.continual.Moving", "terms", (0, 5000)),
    ("edge_ldp.continual.Exponential", "alpha", (F(0),)),
    ("edge_ldp.continual.Fixed", "theta", (0, MAX_THETA + 1)),
    ("edge_ldp.continual.Quantile", "epsilon", (F(33), F(0))),
    ("edge_ldp.continual.Quantile", "share", (F(1),)),
    ("edge_ldp.continual.Quantile", "growth", (F(1),)),
    ("edge_ldp.continual.NoisyMax", "ceiling", (0, 1 << 30)),
    ("edge_ldp.continual.NoisyMax", "noise", ("uniform",)),
    ("edge_ldp.continual.NoisyMax", "epsilon", (F(1, 1 << 16),)),
    ("edge_ldp.continual.Renewal", "every", (0,)),
    ("edge_ldp.continual.Renewal", "mode", ("never",)),
    (TOPS, "theta", (0, 101)),
    (TOPS, "epsilon", (0, -1, "1e-5")),
    (TOPS, "ceiling", (0,)),
    (TOPS, "readings", (0, -5)),
    (TOPS, "chunk", (0,)),
    (TOPS, "pruned", (4,)),
    (TOPS, "fanout", (1,)),
    (TOPS, "smoother", ("spline",)),
    (TOPS, "missing", ("guess",)),
    (TOPS, "memory", ("disk",)),
    (TOPS, "kind", ("wavelet",)),
    (TOPS, "noise", ("normal",)),
    (TOPS, "tuning", (0, 1.5)),
    ("edge_ldp.estimate.hh_admm", "tolerance", (0.0, nan)),
    ("edge_ldp.estimate.hh_admm", "max_iterations", (0,)),
    ("edge_ldp.estimate.ahead", "size", (1, 0, 2.0)),
    ("edge_ldp.estimate.hh", "fanout", (1,)),
    *((f"edge_ldp.estimate.{one}", "size", (0, -1, 4.0, nan)) for one in ("hh", "hh_admm")),
    ("edge_ldp.estimate.supports", "n", (-1, 2**53 + 1, nan, 1.0, True)),
    ("edge_ldp.estimate.norm_sub", "estimates", ([], [nan], [inf, 0], [1e308, 1e308], [[1.0]])),
    ("edge_ldp.estimate.norm_sub", "total", (0.0, -1.0, nan, inf)),
    ("edge_ldp.estimate.Density.quantile", "p", (-0.1, 1.1, nan)),
    ("edge_ldp.estimate.Density.range", "lo", (10**9, nan)),
    *((f"edge_ldp.estimate.{one}", "tolerance", (-1.0, nan)) for one in ("em", "ems")),
    *((f"edge_ldp.estimate.{one}", "max_iterations", (0,)) for one in ("em", "ems")),
    ("edge_ldp.estimate.held_out", "strengths", ((), (-1.0,))),
    ("edge_ldp.estimate.joint", "smoothing", (1.1,)),
    ("edge_ldp.estimate.joint", "tolerance", (nan,)),
    ("edge_ldp.estimate.joint", "max_iterations", (0,)),
    ("edge_ldp.estimate.cells", "finest", (0,)),
    ("edge_ldp.estimate.olh_counts", "size", (0, PRIME + 1)),
    ("edge_ldp.estimate.olh_counts", "g", (1,)),
    ("edge_ldp.poisoning.alarm", "false_alarm", (0.0, 1.0, nan)),
    ("edge_ldp.poisoning.largest_shift", "share", (-0.1, 1.1, nan)),
    ("edge_ldp.threshold.Cost", "horizon", HORIZONS),
    ("edge_ldp.threshold.choose_threshold", "horizon", HORIZONS),
    ("edge_ldp.threshold.choose_threshold", "low", (nan, inf, 999, 5000)),
    ("edge_ldp.threshold.choose_threshold", "unit_variance", (0.0, -1.0, nan, inf)),
    ("edge_ldp.threshold.choose_threshold", "inclusion", (0.0, 1.1, nan)),
    ("edge_ldp.threshold.prune", "run", (0,)),
    ("edge_ldp.sums.Fleet", "homes", (0, 10**9)),
    ("edge_ldp.sums.Fleet", "days", (0,)),
    ("edge_ldp.sums.Fleet", "slots_a_day", (0,)),
    ("edge_ldp.sums.Fleet", "epsilon", ("0.01", 11)),
    ("edge_ldp.sums.Fleet", "group", (401, 0)),
    ("edge_ldp.sums.homes_law", "mean", (10**9,)),
    ("edge_ldp.sums.half_width", "share", (0.0, 1.0)),
    ("edge_ldp.sums.cdf_band", "level", (0, 1, nan)),
    ("edge_ldp.sums.quantile_band", "shares", ([-0.1], [1.1], [nan])),
    ("edge_ldp.sums.SurveyDesign.weights", "h", (np.zeros(3),)),
    ("edge_ldp.sums.design_of", "survey", (StochasticRounding(epsilon=1, low=0, high=9),)),
    ("edge_ldp.sums.estimate", "counts", ([0] * 7, [-1] * 24, [nan] * 24, [[1] * 24])),
    ("edge_ldp.gateway.ems", "tolerance", (-1.0, nan)),
    ("edge_ldp.gateway.ems", "max_iterations", (0,)),
    ("edge_ldp.period_sums.scale_for", "span", (0, 1 << 47, 1.5)),
    ("edge_ldp.period_sums.scale_for", "epsilon", (0, nan)),
    ("studies.baselines.haar_hrr", "own", (0.5, 1.01, nan)),
    ("studies.evaluate.range_error", "alpha", (0, 1.1, nan)),
    ("studies.evaluate.range_error", "starts", (0,)),
    ("studies.evaluate.query_pairs", "length", (0,)),
    ("studies.evaluate.query_pairs", "count", (0,)),
]
# several at once, and by which name they are refused
TOGETHER: list[tuple[str, dict[str, Any], str]] = [
    ("edge_ldp.SquareWave", {"low": 6, "high": 5}, "high"),
    ("edge_ldp.SquareWave", {"low": 5, "high": 5}, "high"),
    ("edge_ldp.oracles.Hierarchy", {"epsilon": 12, "size": 100_000}, "epsilon"),
    ("edge_ldp.continual.NoisyMax", {"stream_epsilon": F(33)}, "epsilon"),
    ("edge_ldp.period_sums.scale_for", {"window_slots": 0}, "window"),
    (TOPS, {"ceiling": 1 << 35, "epsilon": "1/1000", "theta": 5}, "epsilon"),
    (TOPS, {"chunk": 62, "pruned": 1}, "chunk"),
    (TOPS, {"kind": "tree", "pruned": 1}, "pruned"),
    (TOPS, {"readings": 65, "renewal": Renewal(1, "sequential")}, "readings"),
    (TOPS, {"theta": 5, "renewal": Renewal(1)}, "renewal"),
    ("edge_ldp.estimate.cells", {"low": 5, "high": 5}, "high"),
    *(
        ("edge_ldp.estimate.density", {"probabilities": masses, "edges": edges}, "")
        for masses, edges in (
            ([], [0]),
            ([0.5, 0.4], [0, 1, 2]),
            ([1.5, -0.5], [0, 1, 2]),
            ([nan, 1.0], [0, 1, 2]),
            ([1.0], [0, 0]),
            ([1.0], [0, inf]),
            ([0.5, 0.5], [0, 1]),
            ([[0.5], [0.5]], [0, 1]),
        )
    ),
    *(
        ("edge_ldp.sums.homes_law", {"low": low, "ceiling": ceiling}, "ceiling")
        for low, ceiling in ((5, 5), (6, 5), (0, 1 << 54))
    ),
    *(
        ("edge_ldp.sums.range_band", {"first": first, "beyond": beyond}, "")
        for first, beyond in ((3, 2), (nan, 2), (3, nan))
    ),
]


def cases() -> Iterator[Any]:
    for function, name, values in ROWS:
        for value in values:
            yield pytest.param(
                function, {name: value}, name, id=f"{function} {name} {value!r}"[:80]
            )
    for at, (function, changes, name) in enumerate(TOGETHER):
        yield pytest.param(function, changes, name, id=f"{function} {at}")


@pytest.mark.parametrize(("function", "changes", "name"), list(cases()))
def test_what_makes_no_sense_is_refused_by_its_name(
    function: str, changes: dict[str, Any], name: str
) -> None:
    call, good = CALLS[function]
    with pytest.raises(ParameterError) as refused:
        call(**(good | changes))
    assert not name or name in refused.value.name.split(", ")
