"""The errors that users of the library may meet."""

from edge_ldp import EdgeLdpError
from edge_ldp.device.errors import ParameterError
from edge_ldp.errors import CountsError, NoReportsError


def test_errors_carry_facts_and_have_one_root() -> None:
    argument, counts, none = ParameterError("p", "0..1"), CountsError("negative"), NoReportsError()
    assert (argument.name, argument.expected, str(argument)) == ("p", "0..1", "p: expected 0..1")
    assert (counts.reason, str(counts)) == ("negative", "counts: negative")
    assert all(type(error).__base__ is EdgeLdpError for error in (argument, counts, none))
    assert issubclass(EdgeLdpError, ValueError)
