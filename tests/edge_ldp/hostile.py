"""Calls of every public function of the library that succeed, and what may be put in their place.

`CALLS`: by room and name, (what is called, arguments that are fine). `VALUES`: what people, NumPy
and pandas hand over by mistake.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

import edge_ldp
from edge_ldp import (
    certify,
    continual,
    gateway,
    mechanisms,
    oracles,
    poisoning,
    sums,
    threshold,
    vectorized,
)
from edge_ldp import estimate as density_of
from edge_ldp.period_sums import PeriodLayout, booked, most_in_window, scale_for
from edge_ldp.ratio import floor_ratio
from studies import baselines, evaluate, tuning

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
    """Return a generator of sampling noise."""
    return np.random.default_rng(1)


def pushed(**named: Any) -> continual.Release:
    """Return what a stream's curator, at its beginning, gives for one slot."""
    made = continual.Tops(epsilon=1, ceiling=100, readings=4, chunk=64, fanout=4, theta=50)
    return made.push(**named)


def checked_counts(**named: Any) -> Any:
    """Return the counts of a mechanism's codes."""
    return sums.CodeCounts(**named).checked()


def weighed_counts(**named: Any) -> Any:
    return sums.CodeCounts(**named).weighed()


_TOPS = {"epsilon": 1, "ceiling": 100, "readings": 4, "chunk": 64, "fanout": 4, "pruned": 0}
_SUMMED = sums.surveys_of([sums.CodeCounts(SURVEY, CODES)])
_COUNTED = {"mechanism": SURVEY, "counts": CODES}
_EDGES = np.arange(0, 1001, 100)
_EMPTY = {"share": Fraction(1, 2)}

CALLS: dict[str, Call] = {
    "edge_ldp.period_sums.booked": (booked, {"span": 9, "scale": 5, "slots": 2}),
    "edge_ldp.period_sums.most_in_window": (
        most_in_window,
        {"layout": PeriodLayout(3600, 1), "window_slots": 5, "parts": 4},
    ),
    "edge_ldp.period_sums.scale_for": (
        scale_for,
        {"layout": PeriodLayout(3600, 1), "window_slots": 5, "span": 9, "epsilon": 1, "parts": 4},
    ),
    "edge_ldp.GeneralWave": (edge_ldp.GeneralWave, {**PLAN, "size": 16, "top": 0, "b": 0.25}),
    "edge_ldp.Hybrid": (edge_ldp.Hybrid, {**PLAN, "size": 8}),
    "edge_ldp.Piecewise": (edge_ldp.Piecewise, {**PLAN, "size": 8}),
    "edge_ldp.SquareWave": (edge_ldp.SquareWave, {**PLAN, "size": 16}),
    "edge_ldp.StochasticRounding": (edge_ldp.StochasticRounding, PLAN),
    "edge_ldp.Tuned": (edge_ldp.Tuned, {**PLAN, "bits": 4}),
    "edge_ldp.from_plan": (edge_ldp.from_plan, {"table": STREAM.to_plan()}),
    "edge_ldp.Mechanism.perturb": (STREAM.perturb, {"value": 5}),
    "edge_ldp.Mechanism.decode": (STREAM.decode, {"code": 5}),
    "edge_ldp.Mechanism.probabilities": (SURVEY.probabilities, {"value": 5}),
    "edge_ldp.Mechanism.variance": (SURVEY.variance, {"value": 5}),
    "edge_ldp.certify.certify": (certify.certify, {"subject": STREAM, "nominal": Fraction(1)}),
    "edge_ldp.certify.certify_pair": (
        certify.certify_pair,
        {"stream": STREAM, "survey": SURVEY, "share": (1, 2), "nominal": Fraction(1)},
    ),
    "edge_ldp.certify.certify_sums": (
        certify.certify_sums,
        {"layout": PeriodLayout(3600, 1), "span": 9, "scale": 90, "window_slots": 5, "parts": 4},
    ),
    "edge_ldp.certify.judge_file": (certify.judge_file, {"payload": b"{}"}),
    "edge_ldp.certify.judge_plan": (certify.judge_plan, {"payload": b"{}", "nominal": None}),
    "edge_ldp.continual.Curator": (continual.Curator, {"design": DESIGN, "state": None}),
    "edge_ldp.continual.Curator.push": (pushed, {"reading": 5, "slot": 3}),
    "edge_ldp.continual.Fixed": (continual.Fixed, {"theta": 5}),
    "edge_ldp.continual.Moving": (continual.Moving, {"terms": 4}),
    "edge_ldp.continual.Exponential": (continual.Exponential, {"alpha": Fraction(3, 5)}),
    "edge_ldp.continual.NoisyMax": (
        continual.NoisyMax,
        {
            "ceiling": 100,
            "shape": SMALL,
            "stream_epsilon": Fraction(1),
            "epsilon": Fraction(1),
            "noise": "laplace",
            "tuning": 60,
        },
    ),
    "edge_ldp.continual.Quantile": (
        continual.Quantile,
        {"epsilon": Fraction(1), "share": Fraction(1, 2), "growth": Fraction(21, 20)},
    ),
    "edge_ldp.continual.RangeSum.interval": (
        continual.RangeSum(5, 3, 0, 2.0).interval,
        {"confidence": 0.9},
    ),
    "edge_ldp.continual.Released.range": (continual.Released(DESIGN).range, {"first": 0, "end": 9}),
    "edge_ldp.continual.Renewal": (continual.Renewal, {"every": 4, "mode": "parallel"}),
    "edge_ldp.continual.Shape": (
        continual.Shape,
        {"kind": "consistent", "fanout": 4, "chunk": 64, "pruned": 1},
    ),
    "edge_ldp.continual.Tops": (continual.Tops, _TOPS),
    "edge_ldp.continual.best_pruning": (
        continual.best_pruning,
        {"fanout": 4, "chunk": 64, "epsilon": Fraction(1)},
    ),
    "edge_ldp.continual.cold_design": (
        continual.cold_design,
        {"epsilon": 1, "readings": 4, "ceiling": 100, "chunk": 64, "share": Fraction(1, 2)},
    ),
    "edge_ldp.continual.parse_state": (continual.parse_state, {"payload": b"{}"}),
    "edge_ldp.continual.tops_design": (continual.tops_design, {**_TOPS, "tuning": 60}),
    "edge_ldp.estimate.Density.quantile": (DENSITY.quantile, {"p": 0.5}),
    "edge_ldp.estimate.Density.cdf": (DENSITY.cdf, {"at": [5, 7]}),
    "edge_ldp.estimate.Density.range": (DENSITY.range, {"lo": 5, "hi": 9}),
    "edge_ldp.estimate.ahead": (density_of.ahead, {"size": 16}),
    "edge_ldp.estimate.auto": (density_of.auto, {**_COUNTED, "rng": rng()}),
    "edge_ldp.estimate.cells": (
        density_of.cells,
        {"low": 0, "high": 999, "per_octave": 8, "finest": 1},
    ),
    "studies.baselines.cfo": (baselines.cfo, {"given": SUPPORTS, "edges": [0, 1, 2, 3, 4]}),
    "studies.baselines.continuous_wave": (baselines.continuous_wave, {"epsilon": 1.0}),
    "edge_ldp.estimate.density": (
        density_of.density,
        {"probabilities": [0.5, 0.5], "edges": [0, 1, 2]},
    ),
    "edge_ldp.estimate.edges_of": (density_of.edges_of, {"mechanism": SURVEY}),
    "edge_ldp.estimate.em": (density_of.em, {**_COUNTED, "tolerance": 1e-3, "max_iterations": 9}),
    "edge_ldp.estimate.ems": (
        density_of.ems,
        {**_COUNTED, "tolerance": 1e-3, "max_iterations": 9, "strength": 0.5},
    ),
    "studies.baselines.grr": (
        baselines.grr,
        {"channel": GRR.client.channel, "counts": [3, 4, 5, 6], "edges": None},
    ),
    "studies.baselines.haar_hrr": (
        baselines.haar_hrr,
        {"levels": [np.ones((2, 2), int), np.ones((1, 2), int)], "size": 4, "own": 0.7},
    ),
    "edge_ldp.estimate.held_out": (
        density_of.held_out,
        {**_COUNTED, "rng": rng(), "strengths": (0.1, 0.5), "max_iterations": 9},
    ),
    "edge_ldp.estimate.hh": (
        density_of.hh,
        {"levels": [SUPPORTS], "size": 4, "fanout": 4, "weighted": True},
    ),
    "edge_ldp.estimate.hh_admm": (
        density_of.hh_admm,
        {"levels": [SUPPORTS], "size": 4, "fanout": 4, "tolerance": 1e-3, "max_iterations": 9},
    ),
    "edge_ldp.estimate.joint": (
        density_of.joint,
        {"evidence": [density_of.Evidence(SURVEY, CODES)], "edges": _EDGES, "smoothing": 0.5},
    ),
    "edge_ldp.estimate.norm_sub": (density_of.norm_sub, {"estimates": [0.5, 0.6], "total": 1.0}),
    "edge_ldp.estimate.olh_counts": (
        density_of.olh_counts,
        {"reports": [[1, 2, 0], [3, 4, 1]], "size": 4, "g": 2},
    ),
    "edge_ldp.estimate.supports": (
        density_of.supports,
        {"counts": [3, 4], "n": 9, "own": 0.5, "other": 0.2},
    ),
    "studies.evaluate.ks": (evaluate.ks, {"truth": DENSITY, "found": DENSITY}),
    "studies.evaluate.mean_error": (evaluate.mean_error, {"truth": DENSITY, "found": DENSITY}),
    "studies.evaluate.quantile_error": (
        evaluate.quantile_error,
        {"truth": DENSITY, "found": DENSITY},
    ),
    "studies.evaluate.query_pairs": (
        evaluate.query_pairs,
        {"length": 99, "count": 5, "rng": rng()},
    ),
    "studies.evaluate.range_error": (
        evaluate.range_error,
        {"truth": DENSITY, "found": DENSITY, "alpha": 0.1, "starts": 9},
    ),
    "studies.evaluate.variance_error": (
        evaluate.variance_error,
        {"truth": DENSITY, "found": DENSITY},
    ),
    "studies.evaluate.w1": (evaluate.w1, {"truth": DENSITY, "found": DENSITY}),
    "edge_ldp.gateway.ems": (
        gateway.ems,
        {"mechanism": SURVEY, "counts": CODES.tolist(), "tolerance": 1e-3, "max_iterations": 9},
    ),
    "edge_ldp.mechanisms.from_plan": (mechanisms.from_plan, {"table": SURVEY.to_plan()}),
    "edge_ldp.oracles.Grr": (oracles.Grr, {"epsilon": 1, "size": 4}),
    "edge_ldp.oracles.HaarHrr": (oracles.HaarHrr, {"epsilon": 1, "size": 4}),
    "edge_ldp.oracles.Hierarchy": (oracles.Hierarchy, {"epsilon": 1, "size": 16, "fanout": 4}),
    "edge_ldp.oracles.Hrr": (oracles.Hrr, {"epsilon": 1, "size": 4}),
    "edge_ldp.oracles.Olh": (oracles.Olh, {"epsilon": 1, "size": 4}),
    "edge_ldp.oracles.Oue": (oracles.Oue, {"epsilon": 1, "size": 4}),
    "edge_ldp.oracles.oracle_from_plan": (oracles.oracle_from_plan, {"table": GRR.to_plan()}),
    "edge_ldp.oracles.Oracle.perturb": (GRR.perturb, {"value": 1}),
    "edge_ldp.oracles.Oracle.decode": (GRR.decode, {"report": (1,)}),
    "edge_ldp.oracles.Oracle.estimate": (GRR.estimate, {"reports": [(1,), (2,)]}),
    "edge_ldp.oracles.Oracle.probabilities": (GRR.probabilities, {"value": 1}),
    "edge_ldp.oracles.Oracle.variance": (GRR.variance, {"value": 1, "item": 2}),
    "edge_ldp.poisoning.alarm": (poisoning.alarm, {**_COUNTED, "rng": rng(), "false_alarm": 0.3}),
    "edge_ldp.poisoning.clean": (
        poisoning.clean,
        {**_COUNTED, "alarm": poisoning.alarm(SURVEY, CODES, rng=rng(), false_alarm=0.3)},
    ),
    "edge_ldp.poisoning.largest_shift": (
        poisoning.largest_shift,
        {"mechanism": SURVEY, "share": 0.1},
    ),
    "edge_ldp.sums.CodeCounts.checked": (checked_counts, _COUNTED),
    "edge_ldp.sums.CodeCounts.weighed": (
        weighed_counts,
        {**_COUNTED, "weights": CODES, "squares": CODES},
    ),
    "edge_ldp.sums.Epoch": (
        sums.Epoch,
        {"stream": EPOCH.stream, "survey": EPOCH.survey, "share": (1, 2)},
    ),
    "edge_ldp.sums.Fleet": (
        sums.Fleet,
        {
            "homes": 9,
            "days": 9,
            "epsilon": 1,
            "window": FLEET.window,
            "slots_a_day": 96,
            "group": 3,
        },
    ),
    "edge_ldp.sums.Law.cut": (sums.homes_law(0, 999).cut, {"theta": 50}),
    "edge_ldp.sums.Law.masses": (sums.homes_law(0, 999).masses, {"edges": _EDGES}),
    "edge_ldp.sums.SurveyDesign.weights": (
        sums.design_of(SURVEY).weights,
        {"h": [0.5] * SURVEY.size},
    ),
    "edge_ldp.sums.below": (sums.below, {"edges": _EDGES, "point": 5}),
    "edge_ldp.sums.cdf_band": (sums.cdf_band, {"surveys": _SUMMED, "at": [5, 7], "level": 0.9}),
    "edge_ldp.sums.design_of": (sums.design_of, {"survey": SURVEY}),
    "edge_ldp.sums.estimate": (
        sums.estimate,
        {
            "weights": sums.design_of(SURVEY).weights([0.5] * SURVEY.size),
            "law": sums.design_of(SURVEY).law,
            "counts": CODES,
        },
    ),
    "edge_ldp.sums.estimate_mean": (
        sums.estimate_mean,
        {"epochs": [EPOCH], "ceiling": 999, "level": 0.9},
    ),
    "edge_ldp.sums.estimate_means": (
        sums.estimate_means,
        {
            "strata": [[EPOCH], [EPOCH]],
            "ceiling": 999,
            "level": 0.9,
            "within": [EPOCH],
            "whole": [EPOCH, EPOCH],
        },
    ),
    "edge_ldp.sums.excess": (sums.excess, {"edges": _EDGES, "theta": 5}),
    "edge_ldp.sums.forecast": (
        sums.forecast,
        {"fleet": FLEET, "law": sums.homes_law(0, 999), "horizon": "whole"},
    ),
    "edge_ldp.sums.half_width": (
        sums.half_width,
        {
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
    ),
    "edge_ldp.sums.homes_law": (sums.homes_law, {"low": 0, "ceiling": 999, "mean": 50}),
    "edge_ldp.sums.law_in_time": (
        sums.law_in_time,
        {"readings": [[5, 7, 9, 1]], "low": 0, "ceiling": 99, "slots_a_day": 2, "clamp": False},
    ),
    "edge_ldp.sums.law_of": (
        sums.law_of,
        {"readings": [5, 7, 9], "low": 0, "ceiling": 99, "clamp": False},
    ),
    "edge_ldp.sums.quantile_band": (
        sums.quantile_band,
        {"surveys": _SUMMED, "shares": [0.5], "level": 0.9},
    ),
    "edge_ldp.sums.range_band": (
        sums.range_band,
        {"surveys": _SUMMED, "first": [5], "beyond": [7], "level": 0.9},
    ),
    "edge_ldp.sums.splits": (sums.splits, {"fleet": FLEET}),
    "edge_ldp.sums.surveys_of": (sums.surveys_of, {"parts": [EPOCH.survey]}),
    "edge_ldp.sums.tail_sds": (sums.tail_sds, {"survey": SURVEY, "thetas": [5, 9], "masses": None}),
    "edge_ldp.threshold.Cost": (
        threshold.Cost,
        {"unit_variance": 4.0, "horizon": 99, "low": 0, "inclusion": 0.5},
    ),
    "edge_ldp.threshold.bias": (threshold.bias, {"density": DENSITY, "thetas": [5, 9]}),
    "edge_ldp.threshold.choose_threshold": (
        threshold.choose_threshold,
        {"density": DENSITY, "unit_variance": 4.0, "horizon": 99, "low": 0, "inclusion": 0.5},
    ),
    "edge_ldp.threshold.mean_square": (
        threshold.mean_square,
        {"density": DENSITY, "thetas": [5, 9]},
    ),
    "edge_ldp.threshold.outlook": (
        threshold.outlook,
        {"aim": AIM, "counts": {SURVEY: CODES}, "rng": rng()},
    ),
    "edge_ldp.threshold.prune": (threshold.prune, {"density": DENSITY, "below": 1e-4, "run": 5}),
    "studies.tuning.solve": (tuning.solve, {"ratio": RATIO, "bits": 3, "knots": 2}),
    "edge_ldp.vectorized.decode_frames": (vectorized.decode_frames, {"payloads": [b"abc"]}),
    "edge_ldp.vectorized.decode_many": (
        vectorized.decode_many,
        {"mechanism": STREAM, "codes": [1, 2]},
    ),
    "edge_ldp.vectorized.decode_table": (vectorized.decode_table, {"mechanism": STREAM}),
    "edge_ldp.vectorized.draw_many": (vectorized.draw_many, {"n": 9, "count": 3}),
    "edge_ldp.vectorized.encode_frame": (
        vectorized.encode_frame,
        {"stream": 1, "batch": 2, "epoch": 3, "slots": np.array([4]), "codes": np.array([5])},
    ),
    "edge_ldp.vectorized.perturb_many": (
        vectorized.perturb_many,
        {"mechanism": STREAM, "values": [1, 2]},
    ),
    "edge_ldp.vectorized.perturb_oracle_many": (
        vectorized.perturb_oracle_many,
        {"oracle": GRR, "values": [1, 2]},
    ),
}

VALUES: tuple[Any, ...] = (
    float("nan"),
    float("inf"),
    -float("inf"),
    -1,
    0,
    1,
    2,
    0.5,
    -0.5,
    1e-4,
    1e308,
    2**53,
    2**64,
    -(2**63),
    10**400,
    True,
    None,
    "a",
    "",
    b"a",
    1j,
    Decimal("NaN"),
    Decimal(1),
    Fraction(1, 3),
    np.int64(3),
    np.uint64(2**63),
    np.float64("nan"),
    np.float32(0.5),
    np.bool_(True),
    np.array(3),
    np.array([1, 2]),
    np.array([]),
    np.array([[1.5]]),
    np.array(["a"]),
    np.array([None, 1], dtype=object),
    np.ma.masked,
    np.ma.array([1, 2], mask=[False, True]),
    np.ma.array(5, mask=True),
    np.datetime64("2026-01-01"),
    [],
    [0.5],
    [None],
    [[1], [1, 2]],
    (),
    {},
    {"mechanism": 1},
    {1: None},
    object(),
    GRR,
    SURVEY,
    STREAM,
    DENSITY,
    re,
    int,
    rng(),
)


def replaced(call: Call, name: str, value: object) -> Mapping[str, object]:
    """Return the arguments of a call with another value in one place."""
    return {**call[1], name: value}
