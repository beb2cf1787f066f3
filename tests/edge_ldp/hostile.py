"""Calls of every public function of the library that succeed, and what may be put in their place.

`CALLS`: by room and name, (what is called, arguments that are fine). `VALUES`: what people, NumPy
and pandas hand over by mistake.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

import edge_ldp
from edge_ldp import (
    continual,
    oracles,
    poisoning,
    sums,
    threshold,
)
from edge_ldp import estimate as density_of
from edge_ldp.period_sums import PeriodLayout
from edge_ldp.ratio import floor_ratio

Call = tuple[Callable[..., Any], dict[str, Any]]

SURVEY = edge_ldp.SquareWave(epsilon=1, low=0, high=999, size=16)
STREAM = edge_ldp.Hybrid(epsilon=1, low=0, high=200, size=8)
CODES = np.arange(SURVEY.code_count) + 50
EPOCH = sums.Epoch(
    sums.CodeCounts(STREAM, [9] * STREAM.code_count), sums.CodeCounts(SURVEY, CODES), 0.5
)
DENSITY = density_of.ems(SURVEY, CODES)
GRR = oracles.Grr(epsilon=1, size=4)
SUPPORTS = density_of.supports([30, 40, 30, 40], 100, own=0.5, other=0.2)
PLAN = {"epsilon": 1, "low": 0, "high": 900}
DESIGN = continual.tops_design(epsilon=1, ceiling=100, readings=4, chunk=64, fanout=4)
SMALL = continual.Shape("consistent", 4, 64)
FLEET = sums.Fleet(400, 28)
AIM = threshold.Aim(0, 999, STREAM.unit_variance, SURVEY, sums.Question(1e5, 24))
RATIO = floor_ratio(1)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def pushed(**named: Any) -> continual.Release:
    """Return what a stream's curator, at its beginning, gives for one slot."""
    made = continual.Tops(epsilon=1, ceiling=100, readings=4, chunk=64, fanout=4, theta=50)
    return made.push(**named)


def checked_counts(**named: Any) -> Any:
    return sums.CodeCounts(**named).checked()


def weighed_counts(**named: Any) -> Any:
    return sums.CodeCounts(**named).weighed()


_TOPS = {"epsilon": 1, "ceiling": 100, "readings": 4, "chunk": 64, "fanout": 4, "pruned": 0}
_SUMMED = sums.surveys_of([sums.CodeCounts(SURVEY, CODES)])
_COUNTED = {"mechanism": SURVEY, "counts": CODES}
_EDGES = np.arange(0, 1001, 100)
_EMPTY = {"share": Fraction(1, 2)}

# by room: the arguments of each of its public functions
ARGUMENTS: dict[str, dict[str, dict[str, Any]]] = {
    "edge_ldp.period_sums": {
        "booked": {"span": 9, "scale": 5, "slots": 2},
        "most_in_window": {"layout": PeriodLayout(3600, 1), "window_slots": 5, "parts": 4},
        "scale_for": {
            "layout": PeriodLayout(3600, 1),
            "window_slots": 5,
            "span": 9,
            "epsilon": 1,
            "parts": 4,
        },
    },
    "edge_ldp": {
        "GeneralWave": {**PLAN, "size": 16, "top": 0, "b": 0.25},
        "Hybrid": {**PLAN, "size": 8},
        "Piecewise": {**PLAN, "size": 8},
        "SquareWave": {**PLAN, "size": 16},
        "StochasticRounding": PLAN,
        "Tuned": {**PLAN, "bits": 4},
        "from_plan": {"table": STREAM.to_plan()},
    },
    "edge_ldp.certify": {
        "certify": {"subject": STREAM, "nominal": Fraction(1)},
        "certify_pair": {
            "stream": STREAM,
            "survey": SURVEY,
            "share": (1, 2),
            "nominal": Fraction(1),
        },
        "certify_sums": {
            "layout": PeriodLayout(3600, 1),
            "span": 9,
            "scale": 90,
            "window_slots": 5,
            "parts": 4,
        },
        "judge_file": {"payload": b"{}"},
        "judge_plan": {"payload": b"{}", "nominal": None},
    },
    "edge_ldp.continual": {
        "Curator": {"design": DESIGN, "state": None},
        "Fixed": {"theta": 5},
        "Moving": {"terms": 4},
        "Exponential": {"alpha": Fraction(3, 5)},
        "NoisyMax": {
            "ceiling": 100,
            "shape": SMALL,
            "stream_epsilon": Fraction(1),
            "epsilon": Fraction(1),
            "noise": "laplace",
            "tuning": 60,
        },
        "Quantile": {"epsilon": Fraction(1), "share": Fraction(1, 2), "growth": Fraction(21, 20)},
        "Renewal": {"every": 4, "mode": "parallel"},
        "Shape": {"kind": "consistent", "fanout": 4, "chunk": 64, "pruned": 1},
        "Tops": _TOPS,
        "best_pruning": {"fanout": 4, "chunk": 64, "epsilon": Fraction(1)},
        "cold_design": {
            "epsilon": 1,
            "readings": 4,
            "ceiling": 100,
            "chunk": 64,
            "share": Fraction(1, 2),
        },
        "parse_state": {"payload": b"{}"},
        "tops_design": {**_TOPS, "tuning": 60},
    },
    "edge_ldp.estimate": {
        "ahead": {"size": 16},
        "auto": {**_COUNTED, "rng": rng()},
        "cells": {"low": 0, "high": 999, "per_octave": 8, "finest": 1},
        "density": {"probabilities": [0.5, 0.5], "edges": [0, 1, 2]},
        "edges_of": {"mechanism": SURVEY},
        "em": {**_COUNTED, "tolerance": 1e-3, "max_iterations": 9},
        "ems": {**_COUNTED, "tolerance": 1e-3, "max_iterations": 9, "strength": 0.5},
        "held_out": {**_COUNTED, "rng": rng(), "strengths": (0.1, 0.5), "max_iterations": 9},
        "hh": {"levels": [SUPPORTS], "size": 4, "fanout": 4, "weighted": True},
        "hh_admm": {
            "levels": [SUPPORTS],
            "size": 4,
            "fanout": 4,
            "tolerance": 1e-3,
            "max_iterations": 9,
        },
        "joint": {
            "evidence": [density_of.Evidence(SURVEY, CODES)],
            "edges": _EDGES,
            "smoothing": 0.5,
        },
        "norm_sub": {"estimates": [0.5, 0.6], "total": 1.0},
        "olh_counts": {"reports": [[1, 2, 0], [3, 4, 1]], "size": 4, "g": 2},
        "supports": {"counts": [3, 4], "n": 9, "own": 0.5, "other": 0.2},
    },
    "studies.baselines": {
        "cfo": {"given": SUPPORTS, "edges": [0, 1, 2, 3, 4]},
        "continuous_wave": {"epsilon": 1.0},
        "grr": {"channel": GRR.client.channel, "counts": [3, 4, 5, 6], "edges": None},
        "haar_hrr": {"levels": [np.ones((2, 2), int), np.ones((1, 2), int)], "size": 4, "own": 0.7},
    },
    "studies.evaluate": {
        "ks": {"truth": DENSITY, "found": DENSITY},
        "mean_error": {"truth": DENSITY, "found": DENSITY},
        "quantile_error": {"truth": DENSITY, "found": DENSITY},
        "query_pairs": {"length": 99, "count": 5, "rng": rng()},
        "range_error": {"truth": DENSITY, "found": DENSITY, "alpha": 0.1, "starts": 9},
        "variance_error": {"truth": DENSITY, "found": DENSITY},
        "w1": {"truth": DENSITY, "found": DENSITY},
    },
    "edge_ldp.gateway": {
        "ems": {
            "mechanism": SURVEY,
            "counts": CODES.tolist(),
            "tolerance": 1e-3,
            "max_iterations": 9,
        },
    },
    "edge_ldp.mechanisms": {
        "from_plan": {"table": SURVEY.to_plan()},
    },
    "edge_ldp.oracles": {
        "Grr": {"epsilon": 1, "size": 4},
        "HaarHrr": {"epsilon": 1, "size": 4},
        "Hierarchy": {"epsilon": 1, "size": 16, "fanout": 4},
        "Hrr": {"epsilon": 1, "size": 4},
        "Olh": {"epsilon": 1, "size": 4},
        "Oue": {"epsilon": 1, "size": 4},
        "oracle_from_plan": {"table": GRR.to_plan()},
    },
    "edge_ldp.poisoning": {
        "alarm": {**_COUNTED, "rng": rng(), "false_alarm": 0.3},
        "clean": {**_COUNTED, "alarm": poisoning.alarm(SURVEY, CODES, rng=rng(), false_alarm=0.3)},
        "largest_shift": {"mechanism": SURVEY, "share": 0.1},
    },
    "edge_ldp.sums": {
        "Epoch": {"stream": EPOCH.stream, "survey": EPOCH.survey, "share": (1, 2)},
        "Fleet": {
            "homes": 9,
            "days": 9,
            "epsilon": 1,
            "window": FLEET.window,
            "slots_a_day": 96,
            "group": 3,
        },
        "below": {"edges": _EDGES, "point": 5},
        "cdf_band": {"surveys": _SUMMED, "at": [5, 7], "level": 0.9},
        "design_of": {"survey": SURVEY},
        "estimate": {
            "weights": sums.design_of(SURVEY).weights([0.5] * SURVEY.size),
            "law": sums.design_of(SURVEY).law,
            "counts": CODES,
        },
        "estimate_mean": {"epochs": [EPOCH], "ceiling": 999, "level": 0.9},
        "estimate_means": {
            "strata": [[EPOCH], [EPOCH]],
            "ceiling": 999,
            "level": 0.9,
            "within": [EPOCH],
            "whole": [EPOCH, EPOCH],
        },
        "excess": {"edges": _EDGES, "theta": 5},
        "forecast": {"fleet": FLEET, "law": sums.homes_law(0, 999), "horizon": "whole"},
        "half_width": {
            "question": sums.Question(1e5, 24),
            "unit_variance": 4.0,
            "span": 200.0,
            "share": 0.5,
            "tail_sd": 99.0,
            "tail": 1.0,
            "variance": 9.0,
            "slope": 0.1,
            "differ": 0.2,
            "level": 0.9,
        },
        "homes_law": {"low": 0, "ceiling": 999, "mean": 50},
        "law_in_time": {
            "readings": [[5, 7, 9, 1]],
            "low": 0,
            "ceiling": 99,
            "slots_a_day": 2,
            "clamp": False,
        },
        "law_of": {"readings": [5, 7, 9], "low": 0, "ceiling": 99, "clamp": False},
        "quantile_band": {"surveys": _SUMMED, "shares": [0.5], "level": 0.9},
        "range_band": {"surveys": _SUMMED, "first": [5], "beyond": [7], "level": 0.9},
        "splits": {"fleet": FLEET},
        "surveys_of": {"parts": [EPOCH.survey]},
        "tail_sds": {"survey": SURVEY, "thetas": [5, 9], "masses": None},
    },
    "edge_ldp.threshold": {
        "Cost": {"unit_variance": 4.0, "horizon": 99, "low": 0, "inclusion": 0.5},
        "bias": {"density": DENSITY, "thetas": [5, 9]},
        "choose_threshold": {
            "density": DENSITY,
            "unit_variance": 4.0,
            "horizon": 99,
            "low": 0,
            "inclusion": 0.5,
        },
        "mean_square": {"density": DENSITY, "thetas": [5, 9]},
        "outlook": {"aim": AIM, "counts": {SURVEY: CODES}, "rng": rng()},
        "prune": {"density": DENSITY, "below": 1e-4, "run": 5},
    },
    "studies.tuning": {
        "solve": {"ratio": RATIO, "bits": 3, "knots": 2},
    },
    "edge_ldp.vectorized": {
        "decode_frames": {"payloads": [b"abc"]},
        "decode_many": {"mechanism": STREAM, "codes": [1, 2]},
        "decode_table": {"mechanism": STREAM},
        "draw_many": {"n": 9, "count": 3},
        "encode_frame": {
            "stream": 1,
            "batch": 2,
            "epoch": 3,
            "slots": np.array([4]),
            "codes": np.array([5]),
        },
        "perturb_many": {"mechanism": STREAM, "values": [1, 2]},
        "perturb_oracle_many": {"oracle": GRR, "values": [1, 2]},
    },
}
# what is called is made first, or has another name
MADE: dict[str, Call] = {
    "edge_ldp.Mechanism.perturb": (STREAM.perturb, {"value": 5}),
    "edge_ldp.Mechanism.decode": (STREAM.decode, {"code": 5}),
    "edge_ldp.Mechanism.probabilities": (SURVEY.probabilities, {"value": 5}),
    "edge_ldp.Mechanism.variance": (SURVEY.variance, {"value": 5}),
    "edge_ldp.continual.Curator.push": (pushed, {"reading": 5, "slot": 3}),
    "edge_ldp.continual.RangeSum.interval": (
        continual.RangeSum(5, 3, 0, 2.0).interval,
        {"confidence": 0.9},
    ),
    "edge_ldp.continual.Released.range": (continual.Released(DESIGN).range, {"first": 0, "end": 9}),
    "edge_ldp.estimate.Density.quantile": (DENSITY.quantile, {"p": 0.5}),
    "edge_ldp.estimate.Density.cdf": (DENSITY.cdf, {"at": [5, 7]}),
    "edge_ldp.estimate.Density.range": (DENSITY.range, {"lo": 5, "hi": 9}),
    "edge_ldp.oracles.Oracle.perturb": (GRR.perturb, {"value": 1}),
    "edge_ldp.oracles.Oracle.decode": (GRR.decode, {"report": (1,)}),
    "edge_ldp.oracles.Oracle.estimate": (GRR.estimate, {"reports": [(1,), (2,)]}),
    "edge_ldp.oracles.Oracle.probabilities": (GRR.probabilities, {"value": 1}),
    "edge_ldp.oracles.Oracle.variance": (GRR.variance, {"value": 1, "item": 2}),
    "edge_ldp.sums.CodeCounts.checked": (checked_counts, _COUNTED),
    "edge_ldp.sums.CodeCounts.weighed": (
        weighed_counts,
        {**_COUNTED, "weights": CODES, "squares": CODES},
    ),
    "edge_ldp.sums.Law.cut": (sums.homes_law(0, 999).cut, {"theta": 50}),
    "edge_ldp.sums.Law.masses": (sums.homes_law(0, 999).masses, {"edges": _EDGES}),
    "edge_ldp.sums.SurveyDesign.weights": (
        sums.design_of(SURVEY).weights,
        {"h": [0.5] * SURVEY.size},
    ),
}
CALLS: dict[str, Call] = MADE | {
    f"{room}.{name}": (getattr(import_module(room), name), arguments)
    for room, calls in ARGUMENTS.items()
    for name, arguments in calls.items()
}

VALUES: tuple[Any, ...] = (
    *(float("nan"), float("inf"), -float("inf"), 0.5, -0.5, 1e-4, 1e308),
    *(-1, 0, 1, 2, 2**53, 2**64, -(2**63), 10**400),
    *(True, None, "a", "", b"a", 1j, Decimal("NaN"), Decimal(1), Fraction(1, 3)),
    *(np.int64(3), np.uint64(2**63), np.float64("nan"), np.float32(0.5), np.bool_(True)),
    *(np.array(3), np.array([1, 2]), np.array([]), np.array([[1.5]]), np.array(["a"])),
    *(np.array([None, 1], dtype=object), np.datetime64("2026-01-01"), np.ma.masked),
    *(np.ma.array([1, 2], mask=[False, True]), np.ma.array(5, mask=True)),
    *([], [0.5], [None], [[1], [1, 2]], (), {}, {"mechanism": 1}, {1: None}),
    *(object(), GRR, SURVEY, STREAM, DENSITY, re, int, rng()),
)


def replaced(call: Call, name: str, value: object) -> Mapping[str, object]:
    """Return the arguments of a call with another value in one place."""
    return {**call[1], name: value}
