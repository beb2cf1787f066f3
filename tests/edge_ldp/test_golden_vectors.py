"""Reports are bit-identical for ever: the same bytes give the same codes on every platform."""

from typing import Any

import numpy as np
import pytest

from edge_ldp.device.randomizer import reporter
from edge_ldp.mechanisms import from_plan
from edge_ldp.mechanisms.parse import KINDS
from edge_ldp.oracles import oracle_from_plan
from edge_ldp.oracles.hierarchy import PADDING
from edge_ldp.oracles.parse import KINDS as ORACLES
from edge_ldp.vectorized import perturb_many, perturb_oracle_many
from tests.edge_ldp.golden import tables
from tests.edge_ldp.laws import Bytes, draw_from

REPORTS = tables("report")
CASES = [
    pytest.param(table, case, id=f"{name}: {case['name']}")
    for name, table in REPORTS.items()
    for case in table["cases"]
]
ORACLE_FILES = tables("oracle")
ORACLE_CASES = [
    pytest.param(table, case, id=f"{name}: {case['name']}")
    for name, table in ORACLE_FILES.items()
    for case in table["cases"]
]
SINGLE = [param for param in CASES if "mechanism" in param.values[0]]  # type: ignore[operator]


def test_every_mechanism_and_the_survey_coin_have_vectors() -> None:
    kinds = {table["mechanism"]["mechanism"] for table in REPORTS.values() if "mechanism" in table}
    assert kinds == set(KINDS)
    assert "share" in REPORTS["reporter"]


@pytest.mark.parametrize(("table", "case"), CASES)
def test_the_scalar_kernel_gives_the_recorded_codes(
    table: dict[str, Any], case: dict[str, Any]
) -> None:
    if "share" in table:
        stream, survey = (from_plan(table[kind]) for kind in ("stream", "survey"))
        perturb = reporter(stream.randomizer, survey.randomizer, tuple(table["share"])).report
    else:
        perturb = from_plan(table["mechanism"]).randomizer.perturb
    draw, source = draw_from(bytes.fromhex(case["entropy"]))
    assert [perturb(value, draw) for value in case["values"]] == case["codes"]
    assert source.left == b""


@pytest.mark.parametrize(("table", "case"), SINGLE)
def test_the_vectorized_kernel_gives_the_recorded_codes(
    table: dict[str, Any], case: dict[str, Any]
) -> None:
    source = Bytes(bytes.fromhex(case["entropy"]))
    m = from_plan(table["mechanism"])
    codes = perturb_many(m, np.array(case["values"]), entropy=source)
    assert codes.tolist() == case["codes"]
    assert source.left == b""


def test_every_oracle_has_vectors_and_a_tree_both_kinds_of_level() -> None:
    plans = [table["oracle"] for table in ORACLE_FILES.values()]
    assert {plan["mechanism"] for plan in plans} == set(ORACLES)
    levels = [[level["mechanism"] for level in plan.get("levels", [])] for plan in plans]
    assert ["grr", "grr", "olh"] in levels
    assert ["olh", "olh"] in levels


@pytest.mark.parametrize(("table", "case"), ORACLE_CASES)
def test_the_scalar_client_gives_the_recorded_reports(
    table: dict[str, Any], case: dict[str, Any]
) -> None:
    oracle = oracle_from_plan(table["oracle"])
    draw, source = draw_from(bytes.fromhex(case["entropy"]))
    reports = [list(oracle.perturb(value, draw=draw)) for value in case["values"]]
    assert reports == case["reports"]
    assert source.left == b""


@pytest.mark.parametrize(("table", "case"), ORACLE_CASES)
def test_the_vectorized_client_gives_the_recorded_reports(
    table: dict[str, Any], case: dict[str, Any]
) -> None:
    oracle = oracle_from_plan(table["oracle"])
    source = Bytes(bytes.fromhex(case["entropy"]))
    rows = perturb_oracle_many(oracle, np.array(case["values"]), entropy=source).tolist()
    ends = [oracle.report_length - len(report) for report in case["reports"]]
    assert rows == [
        report + [PADDING] * end for report, end in zip(case["reports"], ends, strict=True)
    ]
    assert source.left == b""
