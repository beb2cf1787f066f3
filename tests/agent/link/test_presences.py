"""Which aggregators are there: news is told once, and many names change nothing."""

from agent.link.trouble import MOST_PRESENCES, Presences
from edge_ldp.protocol.presence import Presence

HERE = Presence(is_online=True, since_s=100)
GONE = Presence(is_online=False)


def test_only_what_is_new_is_news_NET_25() -> None:
    heard = Presences()
    assert heard.heard("aggregator", HERE)
    assert not heard.heard("aggregator", HERE)  # retained, told again with each link
    assert heard.heard("aggregator", Presence(is_online=True, since_s=101))
    assert not heard.heard("aggregator", GONE)
    assert heard.heard("aggregator", HERE)


def test_several_batches_go_where_all_who_are_there_take_them() -> None:
    heard = Presences()
    plain = Presence(is_online=True, several=False)
    said = [heard.several]
    for name, presence in (("one", HERE), ("two", plain), ("two", GONE), ("one", GONE)):
        heard.heard(name, presence)
        said.append(heard.several)
    assert said == [False, True, False, True, False]


def test_names_without_end_are_not_kept() -> None:
    heard = Presences()
    told = [heard.heard(f"w{number}", HERE) for number in range(100)]
    assert told.count(True) == MOST_PRESENCES
