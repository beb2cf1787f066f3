"""Reports are bit-identical for ever: the same bytes give the same codes on every platform."""

from typing import Any

import numpy as np
import pytest

from edge_ldp.device.randomizer import reporter
from edge_ldp.mechanisms import from_plan
from edge_ldp.mechanisms.parse import KINDS
from edge_ldp.vectorized import perturb_many
from tests.edge_ldp.golden import tables
from tests.edge_ldp.laws import Bytes, draw_from

REPORTS = tables("report")
CASES = [
    pytest.param(table, case, id=f"{name}: {case['name']}")
    for name, table in REPORTS.items()
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
