"""The C oracles against models of ten lines: every draw where that is possible."""

from functools import partial

import pytest

from edge_ldp.device.draw import Draw
from edge_ldp.device.oracle import PRIME
from tests.edge_ldp.device.oracle_models import (
    Model,
    grr_model,
    haar_model,
    hrr_model,
    olh_model,
    oue_model,
    tree_model,
)
from tests.edge_ldp.laws import Bytes
from tests.firmware_stubs.c.builds import Runner, Script
from tests.firmware_stubs.c.laws import all_runs, random_words, words_for
from tests.firmware_stubs.c.vectors import Table, add_oracle, printed_report

E1 = (178145, 65536)  # floor(e * 2^16) / 2^16


def plan(mechanism: str, size: int, d: int, ratio: tuple[int, int]) -> Table:
    return {"mechanism": mechanism, "size": size, "waves": [[d, 0, *ratio]]}


def tree(size: int, fanout: int, levels: list[Table]) -> Table:
    return {"mechanism": "hh", "size": size, "fanout": fanout, "levels": levels}


def oue(size: int, ratio: tuple[int, int]) -> Table:
    return {"mechanism": "oue", "size": size, "ratio": list(ratio)}


SMALL = [
    plan("grr", 2, 2, (3, 1)),
    plan("grr", 5, 5, (7, 2)),
    plan("hrr", 2, 2, (3, 1)),
    plan("hrr", 6, 2, (5, 2)),
    plan("haar-hrr", 2, 2, (3, 1)),
    plan("haar-hrr", 7, 2, (5, 2)),
    oue(2, (3, 1)),
    oue(3, (5, 2)),
    tree(5, 2, [plan("grr", n, n, (3, 1)) for n in (2, 4, 8)]),
    tree(9, 3, [plan("grr", n, n, (4, 3)) for n in (3, 9)]),
    tree(2, 4, [plan("grr", 4, 4, (4, 3))]),
]
LARGE = [  # up to the largest sizes there are
    plan("grr", 65_536, 65_536, E1),
    plan("olh", 2, 3, E1),
    plan("olh", 1000, 8, (482_000, 65_536)),
    plan("olh", PRIME, 2, (90_000, 65_536)),
    plan("olh", 100, 65_535, (65_534 << 16, 1 << 16)),
    plan("hrr", 1000, 2, E1),
    plan("hrr", 1 << 31, 2, E1),
    plan("hrr", (1 << 30) + 1, 2, E1),
    plan("haar-hrr", 1000, 2, E1),
    plan("haar-hrr", 1 << 31, 2, E1),
    oue(70, E1),
    tree(1000, 4, [plan("grr", 4, 4, E1), *(plan("olh", 4**k, 3, E1) for k in (2, 3, 4, 5))]),
    tree(46_340**2, 46_340, [plan("grr", 46_340, 46_340, E1), plan("olh", 46_340**2, 3, E1)]),
]


def model_of(table: Table) -> Model:
    """Return (value, draw) -> report, from the table of a plan."""
    kind, size = table["mechanism"], table["size"]
    if kind == "oue":
        return oue_model(size, *table["ratio"])
    if kind == "hh":
        return tree_model(table["fanout"], [model_of(level) for level in table["levels"]])
    ((d, _, *ratio),) = table["waves"]
    if kind == "olh":
        return olh_model(d, PRIME, *ratio)
    return {"grr": grr_model, "hrr": hrr_model, "haar-hrr": haar_model}[kind](size, *ratio)


def name_of(table: Table) -> str:
    return f"{table['mechanism']} {table['size']}"


@pytest.mark.parametrize("table", SMALL, ids=name_of)
def test_every_draw_of_a_small_oracle_gives_the_report_of_its_law(
    run: Runner, table: Table
) -> None:
    script = Script()
    command = add_oracle(script, table)
    model = model_of(table)
    for value in range(table["size"]):
        runs = all_runs(partial(model, value))
        script.entropy(words_for(sequence for sequence, _ in runs))
        for _, report in runs:
            script.add(f"{command} {value}", printed_report(table, report))
        script.add("left", 0)
    assert run.differences(script) == []


def edges(size: int) -> list[int]:
    return sorted({0, 1, size - 1, size - 2, size // 2, size // 3, size // 2 - 1})


@pytest.mark.parametrize("table", LARGE, ids=name_of)
def test_random_words_give_the_report_of_the_law(run: Runner, table: Table) -> None:
    script = Script()
    command = add_oracle(script, table)
    model = model_of(table)
    for value in edges(table["size"]):
        given = random_words(f"{name_of(table)} {value}", 1000)
        source = Bytes(given)
        draw = Draw(source, block_words=1)
        script.entropy(given)
        for _ in range(10):
            script.add(f"{command} {value}", printed_report(table, model(value, draw)))
        script.add("left", len(source.left))
    assert run.differences(script) == []


@pytest.mark.parametrize("table", SMALL + LARGE, ids=name_of)
def test_other_categories_are_refused_before_any_draw(run: Runner, table: Table) -> None:
    script = Script()
    command = add_oracle(script, table)
    script.entropy(random_words("refused", 100))
    size = table["size"]
    for value in (-1, size, size + 1, 1 << 32, (1 << 32) + 1, (1 << 63) - 1, -(1 << 63)):
        script.add(f"{command} {value}", "value")
    script.add("left", 800)
    assert run.differences(script) == []
