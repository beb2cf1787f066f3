"""Whatever a public function is handed, it answers or raises a documented error: AGG-34."""

import copy
import inspect
import pickle
from contextlib import suppress
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import edge_ldp
from aggregator.plans.keys import KeyFileError
from edge_ldp import EdgeLdpError, ParameterError, SquareWave, WireError
from edge_ldp.continual import Tops
from edge_ldp.entropy import StuckEntropyError
from edge_ldp.errors import CountsError, NoReportsError, RowError
from edge_ldp.estimate import auto, ems
from edge_ldp.protocol.strict_json import MessageError
from edge_ldp.service.broker import LinkLostError, RefusedError, TooBigError
from edge_ldp.service.typed_table import TableError
from edge_ldp.sums import CodeCounts, estimate_mean, surveys_of
from edge_ldp.threshold import choose_threshold
from edge_ldp.vectorized import perturb_many
from studies.evaluate.given import InputError
from studies.evaluate.rows import RowsError
from studies.tuning import TuningError
from tests.edge_ldp.hostile import CALLS, CODES, DENSITY, EPOCH, GRR, SURVEY, VALUES, Call, replaced
from tests.test_public_names import PUBLIC

# of VALUES a few of each kind; all of them in the slow suite
FEW = [value for value in VALUES if repr(value) in {"nan", "inf", "-1", "None", "'a'", "True"}]
FEW += [2**64, np.array([1, 2]), np.ma.masked, np.ma.array([1, 2], mask=[False, True]), GRR]

# needs minutes, a published plan, a picture or a service's tables: tried with their own tests
ELSEWHERE = {
    "edge_ldp.certify.certify_plan": "takes a plan, which parses itself",
    "studies.tuning.certify_table": "takes a response and a ratio, which `solve` makes",
    "studies.tuning.tune": "seconds a call; `solve` and `Tuned` do its work",
}
# an honest answer that takes its time: draws of counts by the thousand
SLOW = {("edge_ldp.poisoning.alarm", "false_alarm"): 1e-3}


def asked(call: Call, arguments: Any) -> None:
    """Call; whatever is raised must be documented."""
    with np.errstate(all="ignore"), suppress(EdgeLdpError):
        call[0](**arguments)


def too_slow(name: str, argument: str, value: object) -> bool:
    """Say whether an answer would take minutes."""
    least = SLOW.get((name, argument))
    return least is not None and isinstance(value, float) and 0 < value < least


@pytest.mark.parametrize("name", CALLS)
def test_every_call_is_one_that_succeeds(name: str) -> None:
    function, arguments = CALLS[name]
    if "judge" not in name and "parse_state" not in name:
        function(**arguments)


def test_no_public_function_is_left_out() -> None:
    functions = {
        f"{room}.{name}"
        for room, names in PUBLIC.items()
        for name in names.split()
        if inspect.isfunction(getattr(import_module(room), name))
    }
    assert functions - set(CALLS) == set(ELSEWHERE)


@pytest.mark.parametrize("name", CALLS)
def test_AGG_34_what_is_no_argument_is_refused_by_type(name: str) -> None:
    for argument in CALLS[name][1]:
        for value in FEW:
            asked(CALLS[name], replaced(CALLS[name], argument, value))


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_AGG_34_every_hostile_value_in_every_place(name: str) -> None:
    for argument in CALLS[name][1]:
        for value in VALUES:
            if not too_slow(name, argument, value):
                asked(CALLS[name], replaced(CALLS[name], argument, value))


LEAVES = st.one_of(
    st.sampled_from(VALUES),
    st.integers(),
    st.integers(-5, 300),
    st.floats(),
    st.fractions(),
    st.text(max_size=3),
    st.binary(max_size=9),
)
ANYTHING = st.one_of(
    LEAVES,
    st.lists(LEAVES, max_size=5),
    st.lists(st.integers(-2, 300), max_size=5).map(np.array),
    st.lists(st.floats(), max_size=25).map(np.array),
)


@pytest.mark.slow
@pytest.mark.timeout(3600)  # ten minutes of CPU and less, on a machine that does other work too
@settings(
    max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
@given(data=st.data())
def test_AGG_34_hypothesis_finds_only_documented_errors(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(CALLS)))
    places = data.draw(st.sets(st.sampled_from(sorted(CALLS[name][1])), min_size=1, max_size=3))
    changed = {place: data.draw(ANYTHING) for place in sorted(places)}
    if not any(too_slow(name, place, value) for place, value in changed.items()):
        asked(CALLS[name], {**CALLS[name][1], **changed})


@pytest.mark.parametrize("ceiling", [float("nan"), 0, 1, -5, 998, None, "a", np.float64(999)])
def test_AGG_34_a_ceiling_below_what_reports_can_tell_of_is_refused(ceiling: Any) -> None:
    with pytest.raises(ParameterError, match="ceiling"):
        estimate_mean([EPOCH], ceiling=ceiling)


def test_AGG_34_surveys_that_tell_nothing_apart_are_refused() -> None:
    blind = edge_ldp.GeneralWave(epsilon="1e-4", low=0, high=9999, size=16)
    with pytest.raises(ParameterError, match="tell values apart"):
        surveys_of([CodeCounts(blind, np.ones(blind.code_count, np.int64))])


def test_AGG_34_a_threshold_is_not_chosen_where_floats_do_not_count() -> None:
    far = SquareWave(epsilon=1, low=2**53, high=2**53 + 2**20, size=16)
    with pytest.raises(ParameterError, match="density"):
        choose_threshold(ems(far, np.ones(far.code_count)), 4.0, 10, low=2**53)


def test_AGG_34_what_takes_one_value_takes_no_array_and_no_seed() -> None:
    for call in (
        lambda: SURVEY.perturb(np.array([5])),
        lambda: DENSITY.quantile([0.5]),  # type: ignore[arg-type] # that is the test
        lambda: auto(SURVEY, CODES, rng=1),  # type: ignore[arg-type] # same
        lambda: ems(GRR, CODES),  # type: ignore[arg-type] # same
    ):
        with pytest.raises(ParameterError):
            call()


def test_AGG_34_a_masked_reading_is_missing_and_never_reported() -> None:
    for masked in (np.ma.array([1, 2], mask=[False, True]), np.ma.masked):
        with pytest.raises(ParameterError):
            perturb_many(SURVEY, masked)
    with pytest.raises(ParameterError):
        SURVEY.perturb(np.ma.array(5, mask=True))
    with pytest.raises(EdgeLdpError, match="counts"):
        ems(SURVEY, np.ma.array(CODES, mask=CODES[0] == CODES))


@pytest.mark.parametrize("kind", [np.int64, np.uint16, np.int8])
def test_AGG_34_integers_of_numpy_are_integers(kind: Any) -> None:
    made = SquareWave(epsilon=1, low=kind(0), high=kind(90), size=kind(16))
    assert made == SquareWave(epsilon=1, low=0, high=90, size=16)
    assert all(type(number) is int for number in (made.low, made.high, made.size))
    tops = Tops(epsilon=1, ceiling=kind(50), readings=kind(2), chunk=kind(16), fanout=kind(4))
    assert tops.push(kind(3)).slot == 0
    assert tops.push(3, slot=kind(4)).slot == 4
    assert type(tops.state().slot) is int
    assert edge_ldp.Tuned(epsilon=1, low=kind(0), high=kind(90)).high == 90


ERRORS = (
    EdgeLdpError("why"),
    ParameterError("p", "0..1"),
    WireError("magic", 3),
    CountsError("negative"),
    RowError("a row"),
    NoReportsError(),
    StuckEntropyError(),
    TuningError("no table"),
    MessageError("value", "epoch", "an integer"),
    InputError("a.csv", "power", "missing", "name it"),
    RowsError("a.csv", "damaged", "remove it"),
    LinkLostError("localhost:1", "refused"),
    RefusedError("t", "no right"),
    TooBigError("t", 9),
    TableError([("a", "an integer")]),
    KeyFileError(import_module("pathlib").Path("k"), "empty", "make one"),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_AGG_34_an_error_is_the_same_after_copying_and_pickling(error: EdgeLdpError) -> None:
    error.add_note("where it was met")
    for again in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301 (our own)
        assert type(again) is type(error)
        assert (str(again), vars(again)) == (str(error), vars(error))


def test_AGG_34_every_error_of_the_library_is_among_them() -> None:
    def below(kind: type[EdgeLdpError]) -> set[type[EdgeLdpError]]:
        return {kind}.union(*(below(one) for one in kind.__subclasses__()))

    ours = {
        kind
        for kind in below(EdgeLdpError)
        if kind.__module__.startswith(("edge_ldp.", "studies."))
    }
    assert ours - {type(error) for error in ERRORS} == {edge_ldp.EntropyError}
