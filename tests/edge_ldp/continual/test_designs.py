"""What cannot be a design or a state is refused by name."""

import json
from fractions import Fraction

import pytest

from edge_ldp import ParameterError
from edge_ldp.continual import Curator, Design, Fixed, Shape, parse_state
from edge_ldp.protocol.strict_json import MessageError
from tests.edge_ldp.continual.paths import noise_from
from tests.edge_ldp.continual.streams import DESIGNS, READINGS
from tests.tables import each


def test_a_fixed_theta_reads_nothing_first() -> None:
    with pytest.raises(ParameterError, match="readings"):
        Design(Fixed(3), Shape("flat", 2, 4), Fraction(1), 5, 1)


@pytest.mark.parametrize(
    ("field", "value"),
    each(
        ("v", 2),
        ("slot", -2),
        ("theta", -1, 0),
        ("chunks", 0),
        ("released", "1"),
        ("smoother", [1.5], ["1"], [True]),
        ("chunk", [{}], [{"key": "zz", "position": 1, "open": []}]),
        ("chunk", [{"key": "00", "position": 1, "open": []}]),
        ("chunk", [{"key": "00" * 32, "position": -1, "open": []}]),
        ("chunk", [{"key": "00" * 32, "position": 1, "open": [None]}]),
        ("chunk", [{"key": "00" * 32, "position": 1, "open": [0] * 65}]),
        ("chunk", [{"key": "00" * 32, "position": 64, "open": []}]),
        ("chunk", [{"key": "00" * 32, "position": 1, "open": []}]),
        ("design", "another"),
    ),
)
def test_a_damaged_state_is_refused(field: str, value: object) -> None:
    curator = Curator(DESIGNS["tops"], draw=noise_from(1))
    for reading in READINGS[:17]:
        curator.push(reading)
    table = json.loads(curator.state().to_json())
    table[field] = value
    with pytest.raises((MessageError, ParameterError)):
        Curator(DESIGNS["tops"], state=parse_state(json.dumps(table).encode()))
