"""What cannot be a design or a state is refused by name."""

import json
from collections.abc import Callable
from fractions import Fraction

import pytest

from edge_ldp import ParameterError
from edge_ldp.continual import (
    Curator,
    CuratorState,
    Design,
    Fixed,
    Renewal,
    Shape,
    parse_state,
    tops_design,
)
from edge_ldp.protocol.strict_json import MessageError
from tests.edge_ldp.continual.paths import noise_from
from tests.edge_ldp.continual.streams import DESIGNS, READINGS, SMALL

F = Fraction


@pytest.mark.parametrize(
    "make",
    [
        lambda: tops_design(**{**SMALL, "theta": 51}),  # θ above B
        lambda: tops_design(**{**SMALL, "theta": 0}),
        lambda: tops_design(**{**SMALL, "epsilon": 0}),
        lambda: tops_design(**{**SMALL, "epsilon": -1}),
        lambda: tops_design(**{**SMALL, "epsilon": "1e-5"}),  # below 2^-16
        lambda: tops_design(**{**SMALL, "ceiling": 1 << 35, "epsilon": "1/1000", "theta": 5}),
        lambda: tops_design(**{**SMALL, "ceiling": 0}),
        lambda: tops_design(**{**SMALL, "readings": 0}),
        lambda: tops_design(**{**SMALL, "readings": -5}),
        lambda: tops_design(**{**SMALL, "chunk": 0}),
        lambda: tops_design(**{**SMALL, "chunk": 62}, pruned=1),
        lambda: tops_design(**SMALL, pruned=3),
        lambda: tops_design(**{**SMALL, "fanout": 1}, pruned=0),
        lambda: tops_design(**SMALL, smoother="spline"),
        lambda: tops_design(**SMALL, missing="guess"),
        lambda: tops_design(**SMALL, memory="disk"),
        lambda: tops_design(**SMALL, kind="wavelet", pruned=0),
        lambda: tops_design(**SMALL, kind="tree", pruned=1),
        lambda: tops_design(**SMALL, noise="normal"),
        lambda: tops_design(**SMALL, tuning=0),
        lambda: tops_design(**{**SMALL, "tuning": 1.5}),
        lambda: tops_design(**{**SMALL, "readings": 65}, renewal=Renewal(1, "sequential")),
        lambda: tops_design(**SMALL, theta=5, renewal=Renewal(1)),
        lambda: Design(Fixed(3), Shape("flat", 2, 4), F(1), 0, 0),
        lambda: Renewal(0),
        lambda: Renewal(1, "never"),
        lambda: Design(Fixed(3), Shape("flat", 2, 4), F(1), 5, 1),
        lambda: Curator(DESIGNS["tops"], state=CuratorState("another")),
    ],
)
def test_designs_that_cannot_be_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ParameterError):
        make()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("v", 2),
        ("slot", -2),
        ("theta", -1),
        ("theta", 0),
        ("chunks", 0),
        ("released", "1"),
        ("smoother", [1.5]),
        ("smoother", ["1"]),
        ("smoother", [True]),
        ("chunk", [{}]),
        ("chunk", [{"key": "zz", "position": 1, "open": []}]),
        ("chunk", [{"key": "00", "position": 1, "open": []}]),
        ("chunk", [{"key": "00" * 32, "position": -1, "open": []}]),
        ("chunk", [{"key": "00" * 32, "position": 1, "open": [None]}]),
        ("chunk", [{"key": "00" * 32, "position": 1, "open": [0] * 65}]),
        ("chunk", [{"key": "00" * 32, "position": 64, "open": []}]),
        ("chunk", [{"key": "00" * 32, "position": 1, "open": []}]),
        ("design", "another"),
    ],
)
def test_a_damaged_state_is_refused(field: str, value: object) -> None:
    curator = Curator(DESIGNS["tops"], draw=noise_from(1))
    for reading in READINGS[:17]:
        curator.push(reading)
    table = json.loads(curator.state().to_json())
    table[field] = value
    with pytest.raises((MessageError, ParameterError)):
        Curator(DESIGNS["tops"], state=parse_state(json.dumps(table).encode()))
