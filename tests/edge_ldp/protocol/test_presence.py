"""What an aggregator says of itself: read back, and nothing else is believed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.protocol.presence import MOST_BYTES, Presence, parse_presence
from edge_ldp.protocol.strict_json import MessageError

TIMES = st.integers(0, 1 << 40)
PROCESSES = st.binary(min_size=8, max_size=8).map(bytes.hex)


@given(st.builds(Presence, st.booleans(), TIMES, st.booleans(), PROCESSES, TIMES))
def test_a_presence_is_read_back(presence: Presence) -> None:
    assert parse_presence(presence.to_json()) == presence


def test_a_process_without_a_name_is_read_back_and_tells_none() -> None:
    told = Presence(is_online=True, since_s=7)
    assert parse_presence(told.to_json()) == told
    assert b"process" not in told.to_json()


def test_who_does_not_name_several_takes_one_batch_a_message() -> None:
    told = b'{"v":1,"state":"online","since_s":7,"later":[1]}'
    assert parse_presence(told) == Presence(is_online=True, since_s=7, several=False)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"online",
        b"[]",
        b'{"v":2,"state":"online","since_s":7}',
        b'{"v":1,"state":"asleep","since_s":7}',
        b'{"v":1,"state":"online","since_s":-1}',
        b'{"v":1,"state":"online","since_s":1,"several":2}',
        b'{"v":1,"state":"online","since_s":1,"since_s":2}',
        b'{"v":1,"state":"online","since_s":1,"process":"home"}',
        b'{"v":1,"state":"online","since_s":1,"process":"0123456789abcdef"}',
        b" " * MOST_BYTES + Presence(is_online=True).to_json(),
    ],
)
def test_anything_else_is_refused_NET_25(payload: bytes) -> None:
    with pytest.raises(MessageError):
        parse_presence(payload)
