"""AGG-19, REP-04..07: bounded state against a model that remembers everything."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aggregator.counting.records import Changes, Key, Known, Record
from aggregator.counting.tally import CountRows, Tally, merge
from aggregator.store.contract import Decide
from tests.aggregator.counting.remembering import NAMES, Action, World
from tests.integration.both_stores import House

number = st.one_of(st.integers(0, 14), st.integers(0, 200))
actions = st.tuples(st.sampled_from(NAMES), number, number)
traffic = st.lists(actions, min_size=10, max_size=80)


class Memory:
    """A store that is a few dictionaries."""

    def __init__(self) -> None:
        self._records: dict[Key, Record] = {}
        self._devices: set[str] = set()
        self._tally = Tally()

    def update(
        self,
        keys: AbstractSet[Key],
        devices: AbstractSet[str],
        at_s: int,
        decide: Decide,
        flush: UUID | None = None,
    ) -> Changes:
        """Decide and keep what changed."""
        del at_s, flush
        found = {key: self._records[key] for key in keys if key in self._records}
        known = Known(found, frozenset(devices & self._devices), len(self._devices))
        changes = decide(known)
        self._records.update(changes.records)
        self._devices |= changes.enrolled
        self._tally = merge([self._tally, changes.tally])
        return changes

    def records(self) -> Iterator[tuple[Key, Record]]:
        """Yield what is kept."""
        yield from self._records.items()

    def counts(self, stream: int, first: int, last: int) -> CountRows:
        """Return all counts."""
        del stream, first, last
        rows = np.array([row[-3:] for row in self._tally.rows()], np.int64).reshape(-1, 3)
        return CountRows(np.ones(len(rows), np.int64), *rows.T)


@settings(max_examples=40, deadline=None)
@given(traffic)
def test_whatever_happens_every_report_counts_once_or_is_told_AGG_19_REP_06(
    given_: list[Action],
) -> None:
    world = World(House(Memory()))  # type: ignore[arg-type] # what the model asks of a store
    world.play(given_)
    world.settle()
    world.check()


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 12))]
)
def test_over_a_long_life_every_report_counts_once_or_is_told_AGG_19_REP_06(seed: int) -> None:
    world = World(House(Memory()), homes=3)  # type: ignore[arg-type] # as above
    world.live(seed, 400)
    world.settle()
    world.check()
    assert len(world.counted) > 50
