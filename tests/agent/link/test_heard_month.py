"""What the fleet tells of this home's group: kept unread, shown of the home's own streams alone."""

from pathlib import Path

import pytest

from agent.errors import ConfigError
from agent.link.plan_queue import HeardMonth
from edge_ldp.protocol.group_month import MOST_BYTES, GroupMean
from tests.agent.samples import make_config
from tests.edge_ldp.protocol.test_group_month import MONTH, NO_MONTHS, TO_S

POWER = MONTH.streams[0]


def heard(group: str = "north") -> HeardMonth:
    config = make_config(Path("s.db"), device=f'group = "{group}"')
    return HeardMonth(config, lambda: TO_S)


def test_nobody_is_asked_unless_the_owner_names_the_group() -> None:
    assert heard("").topics == []
    assert heard().topics == ["edge-ldp/v1/street/group/north"]
    with pytest.raises(ConfigError, match="a group's name"):
        heard("a/#")


def test_own_streams_are_shown_in_their_unit_and_a_cleared_topic_shows_nothing_NET_31() -> None:
    month = heard()
    assert month.shown() is None
    month.hear(MONTH.to_json())  # and power_net, which this home does not have
    assert month.shown() == MONTH._replace(streams=(POWER,))
    month.hear(MONTH._replace(streams=(POWER._replace(unit="kW"),)).to_json())
    assert month.shown() is None
    month.hear(MONTH._replace(streams=(GroupMean("gas", "W", 1, 1, 12),)).to_json())
    assert month.shown() is None
    month.hear(MONTH.to_json())
    month.hear(b"")
    assert month.shown() is None


def test_whatever_comes_is_cut_and_shows_nothing_NET_31() -> None:
    month = heard()
    for payload in (*NO_MONTHS, MONTH.to_json() + b" " * 10_000_000):
        month.hear(payload)
        assert month.shown() is None
        assert len(vars(month)["_payload"]) <= MOST_BYTES + 1
