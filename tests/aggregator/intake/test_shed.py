"""What came again is known without decoding it, and counts as it did: AGG-37."""

import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from aggregator.counting.records import Changes
from aggregator.counting.refusals import Rules
from aggregator.intake.intake import commit
from aggregator.intake.shed import MOST, PLACES, TOLD_AFTER_S, Shed
from aggregator.store.contract import Store
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.service.mqtt import Message
from tests.aggregator.home_traffic import RULES, flushes, report, seen
from tests.reached import reached

HOMES = ("a", "bb", "ccc")


class Shedding:
    """Flushes as the intake makes them, with what came again told at once."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.shed = Shed("demo")
        self.decoded = 0

    def take(self, messages: Sequence[Message], rules: Rules = RULES) -> Changes:
        fresh, _ = self.shed.parted(messages, 0.0)
        self.decoded += len(fresh)
        again = self.shed.take()
        changes = commit(
            self.store, fleet="demo", messages=fresh, rules=rules, name=uuid4(), again=again
        )
        self.shed.told(again, changes)
        self.shed.learn(fresh, changes)
        return changes


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[SqliteStore, SqliteStore]]:
    made = SqliteStore.open(tmp_path / "a.db"), SqliteStore.open(tmp_path / "b.db")
    yield made
    for store in made:
        store.close()


def test_the_store_holds_the_same_whether_or_not_duplicates_are_shed_AGG_37(
    stores: tuple[SqliteStore, SqliteStore],
) -> None:
    """Late, twice, out of order, several in a message, broken: all but the work is the same."""
    plain, other = stores
    shedding = Shedding(other)
    rng = random.Random(37)  # noqa: S311 (a test's order)
    sent: list[Message] = []
    for flush in flushes(HOMES, 12):
        messages = [*flush, *rng.choices(sent, k=4)] if sent else flush
        joined = Message(flush[0].topic, flush[0].payload + report("a", 13).payload)
        messages += [joined, Message(flush[0].topic, b"no frame"), Message("else/where", b"x")]
        rng.shuffle(messages)
        sent += messages
        commit(plain, fleet="demo", messages=messages, rules=RULES, name=uuid4())
        shedding.take(messages)
    once = shedding.decoded
    frames = [one for one in sent if one.topic.startswith("edge") and one.payload != b"no frame"]
    for _ in range(3):
        commit(plain, fleet="demo", messages=frames, rules=RULES, name=uuid4())
        shedding.take(frames)
    assert seen(plain) == seen(other)
    assert {(r.reason, r.stream): r.reports for r in plain.refused()} == {
        (r.reason, r.stream): r.reports for r in other.refused()
    }
    assert shedding.decoded == once  # nothing that was settled is decoded any more


def test_what_is_revoked_since_is_refused_as_that_AGG_37(
    stores: tuple[SqliteStore, SqliteStore],
) -> None:
    shedding = Shedding(stores[0])
    shedding.take([report("a", 1)])
    shedding.take([report("a", 1)], replace(RULES, devices=frozenset({"b"})))
    assert [(row.reason, row.messages) for row in stores[0].refused()] == [("device", 1)]


def test_what_a_store_lost_is_counted_when_it_comes_again_AGG_37(
    stores: tuple[SqliteStore, SqliteStore],
) -> None:
    """A replica took over that lacks the last commits: no report is lost, none counts twice."""
    shedding = Shedding(stores[0])
    shedding.take([report("a", 1), report("bb", 1)])
    shedding.store = stores[1]
    changes = shedding.take([report("a", 1)])
    assert not changes.records  # nothing is settled, so no receipt covers it
    assert not changes.settled
    assert shedding.take([report("a", 1)]).records["a", 1].counted > 0
    assert shedding.take([report("bb", 1)]).records["bb", 1].counted > 0


def test_other_bytes_under_a_number_are_a_conflict_each_time_AGG_37(
    stores: tuple[SqliteStore, SqliteStore],
) -> None:
    shedding = Shedding(stores[0])
    first = report("a", 1)
    shedding.take([first])
    other = Message(first.topic, first.payload[:-2] + b"\1\0")
    for times in (1, 2):
        record = shedding.take([other]).records["a", 1]
        assert (record.conflicts, record.duplicates) == (times * 12, 0)


def test_memory_is_bounded_and_what_waits_is_told_soon_AGG_37(
    stores: tuple[SqliteStore, SqliteStore],
) -> None:
    shedding, frame = Shedding(stores[0]), report("a", 1)
    shedding.take([frame, *(report("bb", at) for at in range(1, 100))])
    one = shedding.shed
    assert sum(sys.getsizeof(part) for part in reached(one)) < 8 * PLACES + 4096
    found = one.due_at, one.parted([frame], 5.0), one.due_at
    assert found == (None, ([], [frame]), 5.0 + TOLD_AFTER_S)
    assert not one.due(5.0)
    assert one.due(5.0 + TOLD_AFTER_S)
    one.parted([frame] * MOST, 5.1)
    assert one.due(5.1)
    (again,) = one.take().values()
    assert (again.messages, len(again.batches)) == (MOST + 1, 1)
    assert not one.due(99.0)
