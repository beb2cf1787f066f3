"""The dashboard to import, judged by the model that Grafana's own makers publish of theirs.

The model drops what it does not know and takes values of any type; so what it makes of the file is
compared with the file, and each value with the model's annotations.
"""

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from enum import Enum
from itertools import combinations
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from grafana_foundation_sdk.cog import encoder, plugins, runtime
from grafana_foundation_sdk.models import units
from grafana_foundation_sdk.models.dashboard import Dashboard

from aggregator.console.metrics import metrics_text
from tests.aggregator.answers.test_alarms import FINE
from tests.aggregator.console.test_metrics import CONSOLE, ROOT, series

BOARD: dict[str, Any] = json.loads((ROOT / "config" / "grafana-dashboard.json").read_text())
COLUMNS = 24  # of Grafana's grid
plugins.register_default_plugins()


def faults(board: dict[str, Any]) -> list[str]:
    """Return what Grafana's model does not know, misses or takes otherwise."""
    made = Dashboard.from_json(deepcopy(board))
    again = json.loads(encoder.JSONEncoder().encode(made))
    return [*_differences(board, again, ""), *_misfits(made, ""), *_of_panels(board)]


def _differences(told: Any, kept: Any, at: str) -> Iterator[str]:
    """Yield what of the file is not in what the model makes of it."""
    if isinstance(told, dict) and isinstance(kept, dict):
        for key, value in told.items():
            if key in kept:
                yield from _differences(value, kept[key], f"{at}/{key}")
            else:
                yield f"{at}/{key}: unknown"
    elif isinstance(told, list) and isinstance(kept, list):
        for number, (one, other) in enumerate(zip(told, kept, strict=True)):
            yield from _differences(one, other, f"{at}/{number}")
    elif told != kept:
        yield f"{at}: {told} becomes {kept}"


def _misfits(made: Any, at: str) -> Iterator[str]:
    """Yield values of other types than the model's, and texts that it must have and has not."""
    if isinstance(made, list):
        for number, one in enumerate(made):
            yield from _misfits(one, f"{at}/{number}")
    elif hasattr(made, "to_json"):
        hints = get_type_hints(type(made))
        for name, value in vars(made).items():
            here = f"{at}/{name.removesuffix('_val')}"
            if not _fits(value, hints[name]) or (hints[name] is str and not value):
                yield f"{here}: {value!r} is no {hints[name]}"
            yield from _misfits(value, here)


def _fits(value: Any, hint: Any) -> bool:
    kind, parts = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if kind is Literal:
        return value in parts
    if kind is list:
        return isinstance(value, list) and all(_fits(one, parts[0]) for one in value)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return value in {one.value for one in kind}
    if kind in (int, float):
        return isinstance(value, (int, kind)) and not isinstance(value, bool)
    return isinstance(value, kind)


def _of_panels(board: dict[str, Any]) -> Iterator[str]:
    """Yield what the model has no words for: kinds, places, names of units and of variables."""
    known = {value for value in vars(units).values() if isinstance(value, str)}
    sources = {f"${{{one['name']}}}" for one in board["templating"]["list"]}
    panels = board["panels"]
    for number, panel in enumerate(panels):
        at = f"/panels/{number}"
        if runtime.panelcfg_config(panel["type"]) is None:
            yield f"{at}/type: {panel['type']} is no panel"
        if panel["fieldConfig"]["defaults"]["unit"] not in known:
            yield f"{at}/fieldConfig/defaults/unit: unknown"
        for one in (panel, *panel["targets"]):
            query = runtime.dataquery_from_json(deepcopy(one), one["datasource"]["type"])
            if (
                isinstance(query, runtime.UnknownDataquery)
                or one["datasource"]["uid"] not in sources
            ):
                yield f"{at}: {one['datasource']} is no source"
        if len({target["refId"] for target in panel["targets"]}) < len(panel["targets"]):
            yield f"{at}: two queries have one refId"
        if set(panel["gridPos"]) != {*"xywh"} or sum(map(panel["gridPos"].get, "xw")) > COLUMNS:
            yield f"{at}/gridPos: not in the grid"
    for one, other in combinations(panels, 2):
        if one["id"] == other["id"] or _overlap(one["gridPos"], other["gridPos"]):
            yield f"panels {one['title']} and {other['title']} are in one place, or have one id"


def _overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    return all(
        one[at] < other[at] + other[size] and other[at] < one[at] + one[size]
        for at, size in ("xw", "yh")
    )


def test_grafanas_own_model_finds_nothing_wrong_with_the_dashboard() -> None:
    assert faults(BOARD) == []
    assert 1 <= len(BOARD["uid"]) <= 40


def _panel(**change: Any) -> Callable[[dict[str, Any]], None]:
    return lambda board: board["panels"][1].update(change)


FAULTS: dict[str, Callable[[dict[str, Any]], None]] = {
    "/refreshEvery: unknown": lambda board: board.update(refreshEvery="1m"),
    "/panels/1/fieldconfig: unknown": _panel(fieldconfig={}),
    "/panels/1/options/legends: unknown": _panel(options={"legends": {}}),
    "/panels/1/options/legend/placement: 'under'": _panel(
        options={"legend": {"placement": "under"}}
    ),
    "/panels/1/type: graf is no panel": _panel(type="graf"),
    "/panels/1/id: '2'": _panel(id="2"),
    "/panels/1/gridPos: not in the grid": _panel(gridPos={"x": 20, "y": 0, "w": 10, "h": 8}),
    "Until a plan expires are in one place": _panel(gridPos={"x": 4, "y": 0, "w": 11, "h": 8}),
    "/panels/1/targets/0/expr: ''": lambda board: board["panels"][1]["targets"][0].pop("expr"),
    "/panels/1/targets/0/exprs: unknown": lambda board: board["panels"][1]["targets"][0].update(
        exprs="1"
    ),
    "/panels/1/fieldConfig/defaults/unit: unknown": _panel(
        fieldConfig={"defaults": {"unit": "secs"}, "overrides": []}
    ),
    "is no source": _panel(datasource={"type": "prometheus", "uid": "${prometheus}"}),
    "/schema_version: '39'": lambda board: board.update(schemaVersion="39"),
    "/templating/list/0/type: 'data'": lambda board: board["templating"]["list"][0].update(
        type="data"
    ),
}


@pytest.mark.parametrize("told", FAULTS)
def test_a_fault_in_the_dashboard_is_found(told: str) -> None:
    board = deepcopy(BOARD)
    FAULTS[told](board)
    assert any(told in fault for fault in faults(board)), faults(board)


def test_each_legend_names_a_label_that_its_metric_has() -> None:
    there: dict[str, set[str]] = {}
    for one in series(metrics_text(FINE, {}, CONSOLE)):
        name, _, labels = one.partition("{")
        there.setdefault(name, set()).update(re.findall(r"(\w+)=", labels))
    for panel in BOARD["panels"]:
        for target in panel["targets"]:
            (name,) = re.findall(r"edge_ldp_\w+", target["expr"])
            asked = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert asked == there[name], panel["title"]
