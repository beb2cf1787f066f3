"""A flush at once keeps what frame after frame would, and marks whom it would mark."""

from functools import reduce

import numpy as np
import pytest

from aggregator.counting.code_sets import watch_mechanism
from aggregator.counting.watching import (
    AGAIN,
    KEPT,
    WatchState,
    from_bytes,
    look,
    observe_flush,
    upper_tail,
)
from edge_ldp import Hybrid, SquareWave
from edge_ldp.errors import CountsError
from tests.aggregator.counting.reference_watch import observe

HYBRID = Hybrid(epsilon=1, low=0, high=100, size=32)
WATCH = watch_mechanism(HYBRID)
RATE, DEVICES = 1e-4, 1000


def flush(
    before: list[bytes | None], frames: list[np.ndarray], watch: object = WATCH
) -> tuple[list[bytes], dict[int, tuple[object, ...]]]:
    owners = np.repeat(np.arange(len(frames)), [len(codes) for codes in frames])
    found, marks = observe_flush(
        watch,  # type: ignore[arg-type]
        before,
        owners,
        np.concatenate(frames),
        rate=RATE,
        devices=DEVICES,
    )
    return found, dict(marks)


@pytest.mark.parametrize("mechanism", [HYBRID, SquareWave(epsilon=2, low=0, high=99, size=20)])
def test_three_flushes_keep_what_observe_keeps_of_every_device(mechanism: object) -> None:
    watch = watch_mechanism(mechanism)  # type: ignore[arg-type]
    rng = np.random.default_rng(1)
    size = mechanism.code_count  # type: ignore[attr-defined]
    frames = [
        [rng.integers(0, size, rng.integers(1, 60)) for _ in range(7)]
        for _ in range(3)  # flushes of seven devices
    ]
    kept: list[bytes | None] = [None] * 7
    for one in frames:
        kept = list(flush(kept, one, watch)[0])
    for at in range(7):

        def step(so_far: WatchState, codes: np.ndarray) -> WatchState:
            after = observe(watch, so_far, codes)
            return look(watch, after, rate=RATE, devices=DEVICES)[0]

        alone = reduce(step, (one[at] for one in frames), WatchState())
        found = kept[at]
        assert found is not None
        assert from_bytes(found) == alone
        assert found == alone.to_bytes()
        assert len(alone.codes) <= KEPT


def test_only_the_device_that_sends_one_code_is_marked() -> None:
    rng = np.random.default_rng(2)
    honest = [rng.integers(0, HYBRID.code_count - 2, 60) for _ in range(20)]
    liar = np.full(60, 3)
    _, marks = flush([None] * 21, [*honest, liar])
    assert set(marks) == {20}
    assert "code 3" in {mark.name for mark in marks[20]}  # type: ignore[attr-defined]


def test_the_chance_of_so_many_is_exact_from_none_on() -> None:
    found = upper_tail([0, 1, 2, 3], 3, np.full(4, 0.25))
    assert found == pytest.approx([1, 37 / 64, 10 / 64, 1 / 64])


def test_a_device_is_looked_at_only_when_its_reports_have_doubled() -> None:
    kept, marks = flush([None], [np.full(15, 3)])
    assert from_bytes(kept[0]).looks == 0
    assert not marks
    kept, _ = flush(list(kept), [np.full(25, 3)])
    assert (from_bytes(kept[0]).looks, from_bytes(kept[0]).due) == (1, 80)
    kept, marks = flush(list(kept), [np.full(39, 3)])
    assert not marks


def test_after_many_reports_a_device_begins_again_with_its_looks_counted() -> None:
    kept, _ = flush([None], [np.arange(AGAIN) % HYBRID.code_count])
    found = from_bytes(kept[0])
    assert (found.reports, found.looks, found.due, found.codes) == (0, 1, 16, ())
    _, marks = flush(list(kept), [np.full(60, 3)])
    assert marks  # the long past does not hide it


def test_AGG_12_what_was_kept_under_other_plans_is_refused() -> None:
    other = WatchState().to_bytes(len(WATCH.tails) + 1)
    with pytest.raises(CountsError):
        flush([other], [np.array([1])])
