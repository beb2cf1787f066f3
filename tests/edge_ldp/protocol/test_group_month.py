"""A group's month: read back, and shown only where it is one, of this group, and lately over."""

import json
from typing import Any

import pytest

from edge_ldp.protocol.group_month import (
    MONTH_S,
    MOST_BYTES,
    STALE_S,
    GroupMean,
    GroupMonth,
    fresh_month,
    parse_group_month,
)
from edge_ldp.protocol.strict_json import MessageError

TO_S = 1_798_761_600
MONTH = GroupMonth(
    "north",
    TO_S - MONTH_S,
    TO_S,
    (GroupMean("power", "W", 410, 40, 12), GroupMean("power_net", "W", -9, 0, 11)),
)


def forged(**changes: Any) -> bytes:
    """Return the message with other fields; `one`: of its first stream."""
    fields = json.loads(MONTH.to_json())
    fields["streams"][0] |= changes.pop("one", {})
    return json.dumps(fields | changes).encode()


def test_a_month_is_read_back() -> None:
    assert parse_group_month(MONTH.to_json()) == MONTH
    assert parse_group_month(forged(later=[1])) == MONTH


NO_MONTHS = [
    b"",
    b"\xff",
    b"410",
    b"[]",
    b"<html>",
    forged(v=2),
    forged(group=""),
    forged(group=7),
    forged(from_s=TO_S),
    forged(from_s=TO_S - MONTH_S - 1),
    forged(streams={}),
    forged(streams=[1]),
    forged(streams=[MONTH.streams[0]._asdict()] * 17),
    *(
        forged(one=one)
        for one in (
            {"mean": float("nan")},
            {"mean": 410.5},
            {"mean": "410"},
            {"mean": None},
            {"mean": 10**30},
            {"within": -1},
            {"homes": 0},
            {"homes": True},
            {"unit": "W\x1b[31m"},
            {"unit": ""},
            {"stream": "p" * 65},
        )
    ),
    MONTH.to_json()[:-1],
    MONTH.to_json() * 2,
    MONTH.to_json() + b" " * MOST_BYTES,
    b'{"v":1,"v":1}',
]


@pytest.mark.parametrize("payload", NO_MONTHS)
def test_anything_else_is_refused_and_never_shown_NET_31(payload: bytes) -> None:
    with pytest.raises(MessageError):
        parse_group_month(payload)
    assert fresh_month(payload, "north", TO_S) is None


@pytest.mark.parametrize(
    ("group", "now_s", "is_shown"),
    [
        ("north", TO_S, True),
        ("north", TO_S - 1, False),  # of a time that is yet to come, or by a clock that is wrong
        ("north", TO_S + STALE_S - 1, True),
        ("north", TO_S + STALE_S, False),  # retained by an aggregator that is gone
        ("south", TO_S, False),
        ("", TO_S, False),
    ],
)
def test_a_month_of_another_group_or_time_is_not_shown_NET_31(
    group: str, now_s: int, *, is_shown: bool
) -> None:
    assert (fresh_month(MONTH.to_json(), group, now_s) is not None) == is_shown
