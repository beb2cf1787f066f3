"""What no device can have made is kept out of totals, and no count wraps."""

from dataclasses import replace

import numpy as np
import pytest

from aggregator.answers.lookup import read_account
from aggregator.counting.accounts import SLACK_S, is_plausible
from aggregator.counting.tally import MOST, Tally
from aggregator.store.contract import LAST_BUCKET
from edge_ldp.protocol.messages import StreamStatus
from tests.aggregator.engines import Engine
from tests.aggregator.store_contract import changes, commit
from tests.aggregator.tallies import count_batches

SLOT_S = 900
NOW_S = 1_800_000_000
SLOT = NOW_S // SLOT_S
SLACK = SLACK_S // SLOT_S


def told(created: int, expired: int = 0, first: int = SLOT) -> StreamStatus:
    return StreamStatus(1, first, max(first, SLOT), max(first, SLOT), created, expired)


@pytest.mark.parametrize(
    ("status", "plausible"),
    [
        (told(0), True),
        (told(1), True),
        (told(SLACK + 1), True),
        (told(SLACK + 2), False),  # more than a report a slot since its state began
        (told(SLOT, first=1), True),
        (told(SLOT + SLACK + 2, first=1), False),
        (told(1 << 62, first=1), False),
        (told(0, expired=1 << 62, first=1), False),
        (told(5, first=(1 << 32) - 1), True),  # a number that is no slot says nothing
    ],
)
def test_a_status_of_more_reports_than_slots_is_not_believed(
    status: StreamStatus, *, plausible: bool
) -> None:
    assert is_plausible(status, slot_seconds=SLOT_S, now_s=NOW_S) == plausible


def test_a_stored_count_at_the_integers_end_stays_and_its_neighbours_are_exact_AGG_23(
    engine: Engine,
) -> None:
    one = count_batches([((1, 1, 0, 0), 1, np.array([900, 900, 901]), np.array([1, 4, 1]))])
    ((where, part),) = one.parts.items()
    assert part.counts.tolist() == [1, 1, 1]
    near = replace(part, counts=np.array([MOST - 1, 7, 3]))
    store = engine.open()
    commit(store, changes(tally=Tally({where: near})))
    for _ in range(5):
        commit(store, changes(tally=one))
    found = store.counts(1, 0, LAST_BUCKET)
    told = zip(found.bucket.tolist(), found.code.tolist(), found.count.tolist(), strict=True)
    assert sorted(told) == [(900, 1, MOST), (900, 4, 12), (901, 1, 8)]
    # what `completeness` says of it, when another one stands there too
    commit(store, changes(tally=Tally({where: replace(part, counts=np.array([1, MOST, 3]))})))
    _, (power,) = read_account(store, engine.config())
    assert power.in_counts == 2 * MOST  # two codes of all buckets
    store.close()
