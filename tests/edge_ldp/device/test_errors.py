"""The library's errors have one root and carry facts."""

import pytest

from edge_ldp.device.errors import EdgeLdpError, EntropyError, ParameterError, WireError


def test_every_error_is_the_librarys_and_a_value_error() -> None:
    for error in (ParameterError("n", "1 or more"), EntropyError("dry"), WireError("short", 3)):
        assert isinstance(error, EdgeLdpError)
        assert isinstance(error, ValueError)


def test_errors_say_what_and_where() -> None:
    refused = ParameterError("n", "1 or more")
    assert (refused.name, refused.expected) == ("n", "1 or more")
    assert str(refused) == "n: expected 1 or more"
    broken = WireError("short", 3)
    assert (broken.reason, broken.offset) == ("short", 3)
    assert str(broken) == "frame: short at byte 3"


def test_one_handler_catches_all() -> None:
    with pytest.raises(EdgeLdpError, match="short"):
        raise WireError("short", 3)
