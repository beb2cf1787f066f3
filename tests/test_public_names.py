"""The names that users of the library may rely on, and what importing them costs."""

import ast
import sys
from collections import defaultdict
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import edge_ldp
from tests.processes import run_told
from tests.test_architecture import ROOT, SHIPPED

LOADED = """
import sys
before = set(sys.modules)
import edge_ldp, edge_ldp.protocol.ledger, edge_ldp.protocol.messages, edge_ldp.protocol.plan
loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
print(*sorted(loaded - sys.stdlib_module_names))
"""


PUBLIC = {
    "edge_ldp": """
        EdgeLdpError EntropyError GeneralWave Hybrid Mechanism ParameterError Piecewise
        SquareWave StochasticRounding Tuned WireError __version__ from_plan
    """,
    "edge_ldp.certify": """
        Certificate ProvedClaim Verdict certify certify_pair certify_plan certify_sums
        judge_file judge_plan
    """,
    "edge_ldp.continual": """
        Account Charge Curator CuratorState Design Exponential Fixed Mean Median Moving
        NoisyMax Quantile RangeSum Recent Release Released
        Renewal Shape Tops best_pruning cold_design parse_state tops_design
    """,
    "edge_ldp.estimate": """
        Ahead Density EstimatorChoice Evidence HeldOut Supports ahead
        auto cells density edges_of em ems held_out
        hh hh_admm joint norm_sub olh_counts supports
    """,
    "edge_ldp.gateway": """
        Estimate ems
    """,
    "edge_ldp.mechanisms": """
        GeneralWave Hybrid Mechanism Piecewise Response SquareWave StochasticRounding Tuned
        from_plan
    """,
    "edge_ldp.oracles": """
        Grr HaarHrr Hierarchy Hrr Olh Oracle Oue oracle_from_plan
    """,
    "edge_ldp.period_sums": """
        PeriodLayout booked most_in_window scale_for
    """,
    "edge_ldp.poisoning": """
        Alarm Atom Cleaned alarm clean largest_shift
    """,
    "edge_ldp.sums": """
        EVERY_SLOT SHIPPED Band CodeCounts Cut Epoch Fleet Forecast ForecastRow
        FunctionalEstimate Interval Law MeanEstimate Means Question SurveyDesign
        Surveys Width below cdf_band design_of estimate estimate_mean estimate_means
        excess forecast half_width homes_law law_in_time law_of quantile_band range_band splits
        surveys_of tail_sds
    """,
    "edge_ldp.threshold": """
        Aim Choice Cost Outlook Threshold bias choose_threshold mean_square outlook prune
    """,
    "edge_ldp.vectorized": """
        decode_frames decode_many decode_table draw_many encode_frame perturb_many
        perturb_oracle_many
    """,
    "studies.baselines": """
        ContinuousWave cfo continuous_wave grr haar_hrr
    """,
    "studies.evaluate": """
        Masses SumErrors ks mean_error quantile_error query_pairs range_error
        variance_error w1
    """,
    "studies.tuning": """
        TuningError certify_table solve tune
    """,
}

# classes that stand in two files or more under one name
SAME_IDEA = {
    "BrokerTable ClockTable PlansTable StreamTable": "a section of both services' TOML files",
    "ConfigError": "of both services, which share no errors",
    "Grr HaarHrr Hierarchy Hrr Olh Oue": "an oracle: the device's integers, and what counts say",
    "Comparison Played Row Run Scenario": "of the demo's two scenarios",
    "Interval": "an estimate between two ends; the demo reads it, as a stranger, from JSON",
}

# functions of a module that stand in two files or more under one name, commands' apart: those have
# the name of the command, as has what does its work
SAME_WORK = {
    "main": "runs a command, or a process",
    "load_config parse_config read_password": "of both services' own configuration",
    "back_up check connect restore translate write": "of a store, for each of the two engines",
    "agent_files aggregator_files compare draw meter_command meter_link registers_wh to_json": "of"
    " the demo's two scenarios",
    "crc": "of a simulated meter's protocol",
    "ems": "the same estimate, with NumPy and without",
}


@pytest.mark.parametrize("room", PUBLIC)
def test_the_public_names_of_a_room_are_these(room: str) -> None:
    package = import_module(room)
    assert package.__all__ == PUBLIC[room].split()
    assert all(hasattr(package, name) for name in package.__all__)


def test_no_room_of_the_library_with_public_names_is_left_out() -> None:
    library = Path(edge_ldp.__file__).parent
    inits = [library / "__init__.py", *library.glob("*/__init__.py")]
    inits += (ROOT / "studies").glob("*/__init__.py")
    listed = {
        path.parent.relative_to(library.parent) for path in inits if "__all__" in path.read_text()
    }
    assert {".".join(place.parts) for place in listed} == set(PUBLIC)


def test_the_library_imports_nothing_that_is_not_python() -> None:
    done = run_told([sys.executable, "-c", LOADED], check=True)
    assert done.stdout.split() == ["edge_ldp"]


@cache
def defined() -> list[tuple[Path, ast.stmt]]:
    """Return what stands at the top of each shipped file: parsing them all takes a second."""
    parsed = {path.relative_to(ROOT): ast.parse(path.read_text()) for path in SHIPPED}
    return [(place, node) for place, tree in parsed.items() for node in tree.body]


def shared_names(kinds: tuple[type[ast.AST], ...], *, commands: bool) -> dict[str, list[str]]:
    """Return the public names that a definition of these kinds has in two files or more."""
    places = defaultdict(set)
    for place, node in defined():
        named = place.name == "main.py" or place.stem.endswith("_command")
        is_meant = commands or not (named or "commands" in place.parts)
        name = getattr(node, "name", "_")
        if is_meant and isinstance(node, kinds) and not name.startswith("_"):
            places[name].add(str(place))
    return {name: sorted(files) for name, files in places.items() if len(files) > 1}


def test_two_public_classes_share_a_name_only_if_they_are_one_idea() -> None:
    shared = shared_names((ast.ClassDef,), commands=True)
    allowed = {*" ".join(SAME_IDEA).split()}
    assert set(shared) == allowed, shared


def test_two_public_functions_share_a_name_only_if_they_do_one_work() -> None:
    shared = shared_names((ast.FunctionDef, ast.AsyncFunctionDef), commands=False)
    assert set(shared) == {*" ".join(SAME_WORK).split()}, shared
