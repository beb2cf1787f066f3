"""Curated streams at the aggregator: settled like reports, summed by the law of their noise."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from aggregator.answers.curated_sums import ChunkFacts, ReleasedError, Value, released_sum
from aggregator.answers.curated_view import (
    CuratedStream,
    ReleasedAnswer,
    curated_stream,
    curated_sums,
    ranges,
    released_csv,
    released_text,
)
from aggregator.counting.curated import (
    judge_released,
    read_released,
    settle_released,
    wanted_released,
)
from aggregator.counting.frames import FrameBatch
from aggregator.counting.records import Changes, Key, Known, Record, ReleasedArrival
from aggregator.counting.refusals import Reason, Rules
from aggregator.counting.settle import settle
from edge_ldp.continual import Curator, Design, Released, Shape, tops_design
from edge_ldp.protocol.messages import Status, StreamStatus
from edge_ldp.protocol.released import PublicDesign, ReleasedFrame, encode_released

SLOT_S = 900
NOW = 1_800_000_000
FIRST = NOW // SLOT_S - 1000
PUBLIC = PublicDesign(
    name="power",
    unit="W",
    slot_seconds=SLOT_S,
    kind="flat",
    fanout=4,
    chunk=16,
    pruned=1,
    smoother="recent",
    missing="skip",
    ceiling=5000,
    epsilon=(1, 1),
    paid=(1, 1),
)
HOME = ("home-1", 256)


def frame(batch: int = FIRST, **changes: Any) -> ReleasedFrame:
    made = ReleasedFrame(
        stream=0,
        batch=batch,
        series=FIRST - 1,
        position=0,
        theta=1000,
        design=PUBLIC,
        slots=(FIRST, FIRST + 1, FIRST + 3),
        values=(5, -7, 1 << 40),
    )
    return replace(made, **changes)


def later(batch: int, slots: int, **changes: Any) -> ReleasedFrame:
    """Return a frame of three values, so many slots and values after the first."""
    at = tuple(FIRST + slots + offset for offset in range(3))
    return frame(batch, **{"position": slots, "slots": at, **changes})


def rules(**changes: Any) -> Rules:
    made = Rules({}, None, 10, window_s=35 * 86_400, tolerance_s=300, now_s=NOW)
    return replace(made, **changes)


def arrivals(*frames: ReleasedFrame, device: str = "home-1") -> list[ReleasedArrival]:
    return [read_released(device, encode_released(one)) for one in frames]


class Store:
    """What a store keeps between flushes, in a few dictionaries."""

    def __init__(self) -> None:
        self.records: dict[Key, Record] = {}
        self.devices: set[str] = set()
        self.values: list[tuple[int, int]] = []
        self.refused: dict[tuple[str, int], tuple[int, int]] = {}

    def flush(
        self,
        found: list[ReleasedArrival],
        statuses: dict[str, Status] | None = None,
        **changed: Any,
    ) -> Changes:
        statuses = statuses or {}
        known = Known(dict(self.records), frozenset(self.devices), len(self.devices))
        now = rules(**changed)
        plain = settle(FrameBatch.of([]), statuses, {}, known, now)
        changes = settle_released(found, statuses, known, now, plain)
        self.records.update(changes.records)
        self.devices |= changes.enrolled
        self.refused.update(changes.refused)
        for one in changes.released:
            self.values += zip(one.frame.slots, one.frame.values, strict=True)
        return changes


def test_a_frame_counts_once_whatever_comes_again_REP_04_NET_16() -> None:
    store = Store()
    for _ in range(3):
        store.flush(arrivals(frame(), frame()))
    assert store.values == list(zip(frame().slots, frame().values, strict=True))
    record = store.records[HOME]
    assert (record.counted, record.duplicates) == (3, 15)
    assert store.devices == {"home-1"}


ONE = {"slots": (FIRST,), "values": (5,), "numbering": 7}


@pytest.mark.parametrize(
    "frames",
    [
        [frame(), later(FIRST + 1, 4), later(FIRST + 2, 8)],
        [frame(9, **ONE), frame(1, **ONE | {"slots": (FIRST + 1,), "position": 1, "numbering": 8})],
    ],
    ids=["numbers of one series", "of the slots, with another series"],
)
def test_batches_in_any_order_are_settled_in_theirs_NET_17(frames: list[ReleasedFrame]) -> None:
    store = Store()
    changes = store.flush(arrivals(*reversed(frames)))
    assert [slot for slot, _ in store.values] == [s for one in frames for s in one.slots]
    assert changes.settled == {"home-1"}
    assert wanted_released(arrivals(frame())) == {HOME}


def test_a_gap_stays_open_until_it_is_filled_or_given_up() -> None:
    store = Store()
    told = StreamStatus(256, FIRST, FIRST + 1, FIRST, created=3, expired=0)
    store.flush(arrivals(frame()), {"home-1": Status("online", "x", (told,))})
    changes = store.flush(arrivals(later(FIRST + 2, 8)))
    assert changes.gapped == {"home-1"}
    state = store.records[HOME].state
    assert [(gap.first, gap.last) for gap in state.gaps] == [(FIRST + 1, FIRST + 1)]
    store.flush(arrivals(later(FIRST + 1, 4)))
    assert store.records[HOME].state.gaps == ()
    assert store.records[HOME].counted == 9


def test_what_the_device_says_of_itself_completes_the_account_S3() -> None:
    store = Store()
    store.flush(arrivals(frame()))
    told = StreamStatus(256, FIRST, FIRST + 3, FIRST + 1, created=12, expired=2)
    store.flush([], {"home-1": Status("online", "x", (told,))})
    record = store.records[HOME]
    assert record.created == record.counted + record.rejected + record.expired + record.pending
    assert record.pending == 7


def test_frames_that_contradict_their_neighbours_never_count_REP_05() -> None:
    store = Store()
    store.flush(arrivals(frame()))
    store.flush(arrivals(frame(values=(1, 2, 3))))  # the same batch, other bytes
    store.flush(arrivals(frame(FIRST + 1)))  # the same slots in another batch
    assert len(store.values) == 3
    record = store.records[HOME]
    assert (record.conflicts, record.rejected) == (3, 3)
    assert store.refused["conflict", 256] == (1, 3)
    assert store.refused["slots", 256] == (1, 3)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"now_s": NOW - 1000 * SLOT_S - 10_000}, Reason.EARLY),
        ({"now_s": NOW + 60 * 86_400}, Reason.LATE),
    ],
)
def test_the_future_and_what_is_too_old_do_not_count_REP_07(changed: Any, reason: Reason) -> None:
    assert judge_released(frame(), rules(**changed)) is reason
    store = Store()
    store.flush(arrivals(frame()), **changed)
    assert store.values == []
    assert (HOME in store.records) == reason.is_final


def test_a_design_that_cannot_be_is_refused_for_good_REP_01() -> None:
    impossible = replace(PUBLIC, fanout=5, chunk=16)
    assert judge_released(frame(design=impossible), rules()) is Reason.RANGE
    deep = replace(PUBLIC, pruned=9)
    assert judge_released(frame(design=deep), rules()) is Reason.RANGE
    store = Store()
    store.flush(arrivals(frame(design=impossible)))
    assert store.records[HOME].rejected == 3


def test_unknown_devices_get_no_row_REP_03() -> None:
    store = Store()
    store.flush(arrivals(frame(), device="stranger"), devices=frozenset({"home-1"}))
    assert store.records == {}
    assert store.devices == set()
    assert store.refused["device", -1] == (1, 3)
    store.flush([*arrivals(frame()), *arrivals(frame(), device="home-2")], max_devices=1)
    assert len(store.devices) == 1


def test_a_flush_without_curated_streams_is_left_as_it_is() -> None:
    known = Known({}, frozenset(), 0)
    plain = settle(FrameBatch.of([]), {}, {}, known, rules())
    assert settle_released([], {}, known, rules(), plain) is plain


# sums


def curate(
    design: Design, values: int, draw: Callable[[int], int] | None = None
) -> tuple[Released, list[Value], dict[Any, ChunkFacts]]:
    """Return the library's own sums and what the aggregator stores, of the same releases."""
    shape = design.shape
    public = replace(
        PUBLIC,
        kind=shape.kind,
        fanout=shape.fanout,
        chunk=shape.chunk,
        pruned=shape.pruned,
        smoother=design.smoother,
        epsilon=design.epsilon.as_integer_ratio(),
    )
    curator, sums = Curator(design, draw=draw), Released(design)
    stored, chunks = [], {}
    for position in range(values):
        release = curator.push(position % 700)
        sums.add(release)
        assert release.value is not None
        assert release.theta is not None
        stored.append(Value(release.slot, 9, position, release.value))
        chunks[9, position // shape.chunk] = ChunkFacts(release.theta, public)
    return sums, stored, chunks


@pytest.mark.parametrize("smoother", ["recent", "mean", "moving", "exponential"])
@pytest.mark.parametrize("kind", ["consistent", "causal", "flat"])
def test_sums_are_those_of_the_library_for_every_range(kind: str, smoother: str) -> None:
    design = tops_design(
        epsilon=1,
        ceiling=500,
        theta=500,
        chunk=32,
        fanout=4,
        pruned=1,
        kind=kind,
        smoother=smoother,
    )
    sums, stored, chunks = curate(design, 80)
    picks = Random(1)  # noqa: S311 (which ranges are looked at)
    for _ in range(60):
        first, end = sorted(picks.sample(range(81), 2))
        expected, found = sums.range(first, end), released_sum(stored, chunks, first, end)
        assert found.sum == expected
        whole = not (first % 4 or end % 4)
        assert found.is_whole == whole
        assert found.thetas == (500,)


def test_values_that_never_came_are_left_out_of_sum_and_variance() -> None:
    design = tops_design(epsilon=1, ceiling=500, theta=500, chunk=32, fanout=4, pruned=1)
    sums, stored, chunks = curate(design, 64)
    holes = [one for one in stored if not 8 <= one.position < 16]
    found = released_sum(holes, chunks, 0, 64).sum
    assert (found.readings, found.missing) == (56, 8)
    assert found.total == sums.range(0, 8).total + sums.range(16, 64).total
    parts = sums.range(0, 8).variance + sums.range(16, 64).variance
    whole = sums.range(0, 64).variance
    assert whole < found.variance < 2 * parts  # less certain than all, and no simple sum


def test_a_flat_streams_variances_add_up_over_holes() -> None:
    shape = Shape("flat", 4, 32, 1)
    design = replace(tops_design(epsilon=1, ceiling=500, theta=500, chunk=32), shape=shape)
    sums, stored, chunks = curate(design, 64)
    holes = [one for one in stored if not 8 <= one.position < 16]
    found = released_sum(holes, chunks, 0, 64).sum
    parts = sums.range(0, 8).variance + sums.range(16, 64).variance
    assert found.variance == pytest.approx(parts)


def test_two_series_have_noise_of_their_own() -> None:
    design = tops_design(epsilon=1, ceiling=500, theta=500, chunk=32, fanout=4, pruned=1)
    sums, stored, chunks = curate(design, 32)
    again = [one._replace(slot=one.slot + 100, series=110) for one in stored]
    both = {**chunks, **{(110, number): facts for (_, number), facts in chunks.items()}}
    found = released_sum([*stored, *again], both, 0, 132).sum
    assert found.variance == pytest.approx(2 * sums.range(0, 32).variance)


def test_a_theta_that_never_came_is_said_and_taken_as_the_largest() -> None:
    design = tops_design(
        epsilon=1, ceiling=500, theta=500, chunk=8, fanout=4, pruned=1, smoother="mean"
    )
    _, stored, chunks = curate(design, 24)
    del chunks[9, 0]
    found = released_sum(stored[8:], chunks, 8, 23).sum
    assert not found.is_exact
    assert found.variance > 0


def test_a_series_with_two_designs_means_nothing() -> None:
    design = tops_design(epsilon=1, ceiling=500, theta=500, chunk=8, fanout=4, pruned=1)
    _, stored, chunks = curate(design, 16)
    chunks[9, 1] = replace(chunks[9, 1], design=replace(PUBLIC, epsilon=(2, 1)))
    with pytest.raises(ReleasedError):
        released_sum(stored, chunks, 0, 16)


def test_a_liars_position_costs_no_more_than_an_honest_one() -> None:
    public = replace(PUBLIC, chunk=1, pruned=0, smoother="mean", fanout=2)
    position = 3_000_000_001
    values = [Value(10, 0, position, 5), Value(11, 0, position + 1, 5)]
    chunks = {(0, position + at): ChunkFacts(100, public) for at in range(2)}
    assert released_sum(values, chunks, 0, 20).sum.total == 10
    blocks = replace(public, chunk=4, pruned=1)
    chunks = {(0, (position + at) // 4): ChunkFacts(100, blocks) for at in range(2)}
    with pytest.raises(ReleasedError, match="chunks"):
        released_sum(values, chunks, 0, 20)


@pytest.mark.parametrize(("by", "count"), [("none", 1), ("hour", 96), ("day", 5), ("week", 2)])
def test_groups_hold_every_slot_once(by: str, count: int) -> None:
    monday = 4 * 86_400 // SLOT_S  # 1970-01-05
    first = monday + 5 * 96 + 48  # a Saturday noon
    parts = list(ranges(first, first + 4 * 96, PUBLIC, by))
    assert len(parts) == count
    assert parts[0][0] == first
    assert parts[-1][1] == first + 4 * 96
    assert all(a[1] == b[0] for a, b in pairwise(parts))
    if by == "week":
        assert parts[0][1] == monday + 7 * 96


def test_groups_of_days_are_those_of_the_zone_when_clocks_change() -> None:
    first = 1_711_756_800 // PUBLIC.slot_seconds  # 2024-03-30, the day before, in UTC
    day = 86_400 // PUBLIC.slot_seconds
    parts = list(ranges(first, first + 3 * day, PUBLIC, "day", ZoneInfo("Europe/Berlin")))
    assert [(end - begin) * PUBLIC.slot_seconds // 3600 for begin, end in parts] == [23, 23, 24, 2]


@pytest.mark.parametrize("by", ["none", "day"])
def test_of_no_slots_there_is_no_range(by: str) -> None:
    assert list(ranges(100, 100, PUBLIC, by)) == list(ranges(200, 100, PUBLIC, by)) == []


def test_the_view_says_what_is_public_and_what_is_missing() -> None:
    design = tops_design(epsilon=1, ceiling=500, theta=500, chunk=32, fanout=4, pruned=1)
    _, stored, chunks = curate(design, 40)
    public = chunks[9, 0].design
    zone, stream = ZoneInfo("Europe/Berlin"), CuratedStream("home-1", 256, chunks, public)
    rows = curated_sums(stored, stream, [(0, 16), (16, 40), (40, 50)], zone)
    first, _, last = rows
    assert [row.readings for row in rows] == [16, 24, 0]
    assert first.low is not None
    assert first.total is not None
    assert first.high is not None
    assert first.low < first.total < first.high
    assert (last.total, last.missing) == (None, 10)
    assert first.energy_kwh == first.total * public.slot_seconds / 3.6e6
    shown = curated_stream(stream, rows)
    view = ReleasedAnswer(released=[shown])
    head = released_text(view, zone).splitlines()[3].split()
    assert head[:4] == ["from", "Europe/Berlin", "energy", "kWh"]
    table = released_csv(view).splitlines()
    assert table[0].startswith("device,stream,unit,slot_seconds,from,to,total,low,high,energy_kwh,")
    ends = f"{first.from_},{first.to}"
    assert table[1].startswith(f"home-1,{public.name},W,900,{ends},{first.total},")
    assert len(table) == 4
    assert (shown.theta, shown.chunks, shown.series) == (500, 2, 1)
