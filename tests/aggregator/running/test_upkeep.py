"""Roll-ups, sums and retention on both stores: exact, done or not done at any crash, and told."""

import json
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from aggregator.answers.load_curve import LoadCurve
from aggregator.answers.load_lookup import read_load_curve
from aggregator.config import AggregatorConfig, StreamTable
from aggregator.counting.period_totals import totals_of
from aggregator.counting.retention import DAY_S, GONE, SUMMED, spans
from aggregator.counting.tally import merge
from aggregator.main import main
from aggregator.plans import planner
from aggregator.replay.comparison import only_group, tally_of_rows
from aggregator.running.process import Retention
from aggregator.store.administration.quarantine_release import count_held
from aggregator.store.contract import LAST_BUCKET, PlanRow, Reader, Session, Store
from aggregator.store.forms import pack_pairs
from aggregator.store.opening import open_session
from aggregator.store.rollups import tend
from tests.aggregator.counting.test_period_sums import arrival
from tests.aggregator.engines import Engine
from tests.aggregator.store_contract import changes, commit
from tests.aggregator.tallies import count_batches

QUARTERS = "bucket_slots = 1\nutc_offset_s = 0\n"
RETENTION = "[retention]\nbucket_days = 40\nhour_days = 60\n"
DAYS, FIRST_DAY = 4, 19_000
NOW_S = (FIRST_DAY + 63) * DAY_S  # the first days are to be days, the others hours
SLOTS = 96
ONE_DAY = {"days": 1, "n": (96,), "y": (96_000,)}


def configured(engine: Engine, more: str = RETENTION) -> AggregatorConfig:
    return engine.config(more=QUARTERS + more)


def fill(store: Store, config: AggregatorConfig, *, seed: int = 1) -> None:
    """Count reports of two epochs and two groups in some slots of some days, with presence."""
    stream = config.streams[0]
    first = planner.first_plan("demo", stream, epoch=1, now_s=0)
    second = planner.following(first, stream, stream.sums(500), share=(1, 16), now_s=0)
    assert second is not None
    for plan in (first, second):
        store.add_plan(PlanRow(1, plan.epoch, 0, plan.to_json()))
    rng = np.random.default_rng(seed)
    codes = [p.stream_mechanism.code_count + p.survey_mechanism.code_count for p in (first, second)]
    for group in (0, 3):
        batches = []
        for epoch, count in enumerate(codes, start=1):
            slots = FIRST_DAY * SLOTS + rng.integers(0, DAYS * SLOTS, 300)
            batches.append(((1, epoch, group, 0), 1, slots, rng.integers(0, count, 300)))
        there = {
            (1, FIRST_DAY * SLOTS + at, group, 0): int(rng.integers(1, 9))
            for at in range(DAYS * SLOTS)
        }
        commit(store, changes(tally=count_batches(batches), presence=there))


def seen(reader: Reader, first: int = 0, last: int = LAST_BUCKET) -> list[Any]:
    found = []
    for group in (None, 0, 3):
        totals = reader.totals(1, first, last, group)
        found.append([part.tolist() for part in (totals.epoch, totals.code, totals.count)])
    return found


def columns(curve: LoadCurve) -> list[bytes]:
    return [
        part.tobytes()
        for part in (curve.bucket, curve.n, curve.mean, curve.low, curve.high, curve.device_slots)
    ]


def tend_all(config: AggregatorConfig, now_s: float = NOW_S) -> int:
    steps = 0
    with closing(open_session(config, "test")) as session:
        while tend(session, config, now_s):
            steps += 1
    return steps


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_totals_and_curves_are_the_same_to_the_bit_before_and_after(
    engine: Engine, seed: int
) -> None:
    config = configured(engine)
    stream = config.streams[0]
    store = engine.open()
    fill(store, config, seed=seed)
    borders = [(FIRST_DAY + day) * SLOTS for day in range(DAYS + 1)]
    ranges = [(a, b - 1) for a in borders for b in borders if a < b]
    before = [seen(store, *at) for at in [(0, LAST_BUCKET), *ranges]]
    curve = [columns(read_load_curve(store, stream, 0, LAST_BUCKET, g)) for g in (None, 0, 3)]
    presence = store.presence(1)
    assert tend_all(config) > DAYS
    assert tend_all(config) == 0
    kept = store.rolled_up(1)
    hour, day = spans(stream)
    assert set(kept.until) == {SUMMED, hour, day}
    assert before == [seen(store, *at) for at in [(0, LAST_BUCKET), *ranges]]
    after = [columns(read_load_curve(store, stream, 0, LAST_BUCKET, g)) for g in (None, 0, 3)]
    assert curve == after
    assert store.presence(1) == presence
    for first, last in [(0, LAST_BUCKET), (0, 0), *ranges]:
        sums = store.sums(1, first, last)
        for group in (None, 0, 3):
            mine = [row.bucket for row in sums if group in (None, row.group)]
            assert store.first_summed(1, first, last, group) == min(mine, default=None)
    rows = store.counts(1, 0, LAST_BUCKET)
    per_day = kept.until[day] - borders[0]
    assert per_day % day == 0
    assert per_day > 0
    assert not (rows.bucket[rows.bucket < kept.until[day]] % day).any()
    assert not (rows.bucket[rows.bucket < kept.until[hour]] % hour).any()
    store.close()


def test_a_curve_has_the_averages_that_the_sums_give(engine: Engine) -> None:
    """The same as `query` has before it adds the tail, but for rounding: from counts by code."""
    from aggregator.answers.lookup import read_plans  # noqa: PLC0415 (only here)
    from aggregator.counting.tally import split_epochs  # noqa: PLC0415
    from edge_ldp.sums import CodeCounts, Epoch, estimate_mean  # noqa: PLC0415

    config = configured(engine)
    stream = config.streams[0]
    store = engine.open()
    fill(store, config)
    tend_all(config, NOW_S - 70 * DAY_S)
    curve = read_load_curve(store, stream, 0, LAST_BUCKET, 3)
    plans = read_plans(store, stream)
    for at in range(0, len(curve.bucket), 17):
        first = int(curve.bucket[at])
        rows = store.counts(1, first, first + 3, 3)
        parts = split_epochs(plans, rows.epoch, rows.code, rows.count)
        epochs = [
            Epoch(
                CodeCounts(plans[epoch].stream_mechanism, streams),
                CodeCounts(plans[epoch].survey_mechanism, np.zeros_like(surveys)),
            )
            for epoch, (streams, surveys) in parts.items()
        ]
        found = estimate_mean(epochs, ceiling=stream.ceiling)
        assert found is not None
        assert curve.n[at] == found.n
        assert curve.mean[at] == pytest.approx(found.mean, rel=1e-9, abs=1e-6)
        half = (curve.high[at] - curve.low[at]) / 2
        assert half == pytest.approx(1.959963984540054 * found.noise_se, rel=1e-9)
    store.close()


# the finest step, and days that are none of UTC's; the others with the slow tests
@pytest.mark.parametrize(
    ("by", "zone"),
    [
        ("hour", "UTC"),
        pytest.param("day", "UTC", marks=pytest.mark.slow),
        ("day", "America/New_York"),
        pytest.param("week", "UTC", marks=pytest.mark.slow),
    ],
)
def test_a_curve_from_counts_of_an_archive_is_that_of_a_store_with_sums_to_the_bit(
    engine: Engine, by: str, zone: str
) -> None:
    of: Any = {"by": by, "zone": ZoneInfo(zone)}
    config = configured(engine)
    stream = config.streams[0]
    store = engine.open()
    fill(store, config)
    counted = merge(
        tally_of_rows({1: store.counts(1, 0, LAST_BUCKET, group)}, group) for group in (0, 3)
    )
    before = [columns(read_load_curve(store, stream, 0, LAST_BUCKET, g, **of)) for g in (None, 3)]
    assert tend_all(config) > DAYS
    first, last = (FIRST_DAY + 1) * SLOTS + 7, (FIRST_DAY + 3) * SLOTS + 5
    for at, group in enumerate((None, 0, 3)):
        tally = counted if group is None else only_group(counted, group)
        for borders in ((0, LAST_BUCKET), (first, last)):
            kept = read_load_curve(store, stream, *borders, group, **of)
            made = read_load_curve(store, stream, *borders, group, tally=tally, **of)
            assert columns(made) == columns(kept)
            assert len(made.bucket) > 0
        if group != 0:
            whole = read_load_curve(store, stream, 0, LAST_BUCKET, group, tally=tally, **of)
            assert columns(whole) == before[at // 2]
    days = read_load_curve(store, stream, 0, LAST_BUCKET, by="day")
    assert days.bucket.tolist() == [(FIRST_DAY + day) * SLOTS for day in range(DAYS)]
    hours = read_load_curve(store, stream, 0, LAST_BUCKET)
    assert days.n.sum() == hours.n.sum()
    assert days.device_slots.sum() >= hours.device_slots.sum()
    store.close()


class Failing:
    """A session whose statements fail from the k-th on: what a kill there would leave."""

    def __init__(self, session: Session, at: int) -> None:
        self._session, self._left = session, at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def rows(self, query: str, values: Any = ()) -> list[Any]:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return self._session.rows(query, values)


def test_a_step_that_ends_anywhere_was_done_or_not_done(engine: Engine) -> None:
    config = configured(engine, "[retention]\nhour_days = 60\n")
    stream = config.streams[0]
    store = engine.open()
    fill(store, config)
    before = seen(store)
    curve = columns(read_load_curve(store, stream, 0, LAST_BUCKET))
    at = crashes = 0
    with closing(open_session(config, "test")) as session:
        while True:
            try:
                if not tend(Failing(session, at), config, NOW_S):
                    break
                at = 0
            except KeyboardInterrupt:
                crashes += 1
                at += 1 + at // 4
            if crashes % 8 == 0:
                assert seen(store) == before
                assert columns(read_load_curve(store, stream, 0, LAST_BUCKET)) == curve
    assert crashes > 20
    assert seen(store) == before
    assert columns(read_load_curve(store, stream, 0, LAST_BUCKET)) == curve
    store.close()


def test_a_damaged_sum_ends_load_curve_with_a_word_not_a_traceback(
    engine: Engine, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    config = configured(engine, "")
    store = engine.open()
    fill(store, config)
    store.close()
    tend_all(config)
    with closing(open_session(config, "test")) as session, session.transaction():
        session.rows("UPDATE sums SET sums = ?", (b"\0",))
    file = tmp_path / "a.toml"
    file.write_text(engine.text(more=QUARTERS))
    assert main(["load-curve", "-c", str(file)]) == 4
    assert "a bucket's sums are not those of epoch" in capsys.readouterr().err


@pytest.mark.parametrize("table", ["", "[retention]\nhour_days = 36\n"])
# the last quarter of an hour reaches into the next with its next; the others with the slow tests
@pytest.mark.parametrize(
    "offset", [*(pytest.param(at, marks=pytest.mark.slow) for at in range(3)), 3]
)
def test_what_is_added_later_to_an_hour_with_sums_is_in_the_curve(
    engine: Engine, table: str, offset: int
) -> None:
    """Of a device that an operator releases, into hours and days added up: as if never held."""
    config = configured(engine, table)
    stream, slot = config.streams[0], (FIRST_DAY + 1) * SLOTS + offset
    store = engine.open()
    fill(store, config)
    tend_all(config)
    expected, total, kept = reports_by_hour(store, stream), totals(store), store.rolled_up(1)
    held = [(slot, 5), (slot + 1, 6), (slot + 4, 7)]
    with closing(open_session(config, "test")) as session, session.transaction():
        for bucket, count in held:
            session.rows(
                """INSERT INTO held_counts (device, stream, epoch, grp, bucket, pairs)
                VALUES (?, 1, 1, 0, ?, ?)""",
                ("home", bucket, pack_pairs(np.array([0]), np.array([count]))),
            )
        count_held(session, "home")
    for bucket, count in held:
        expected[bucket - bucket % 4] = expected.get(bucket - bucket % 4, 0) + count
    assert reports_by_hour(store, stream) == expected
    tend_all(config)
    assert reports_by_hour(store, stream) == expected
    assert totals(store) == total + sum(count for _, count in held)
    assert store.rolled_up(1) == kept
    store.close()


def test_what_was_held_of_days_that_are_gone_goes_with_them(engine: Engine) -> None:
    config = configured(engine, "[retention]\nday_days = 61\n")
    store = engine.open()
    fill(store, config)
    tend_all(config)
    gone, total = store.rolled_up(1).until[GONE], totals(store)
    with closing(open_session(config, "test")) as session, session.transaction():
        for bucket in (gone - 1, gone):
            pairs = pack_pairs(np.array([0]), np.array([5]))
            session.rows(
                "INSERT INTO held_counts (device, stream, epoch, grp, bucket, pairs)"
                " VALUES ('home', 1, 1, 0, ?, ?)",
                (bucket, pairs),
            )
            session.rows(
                "INSERT INTO held_presence (device, stream, bucket, grp, slots)"
                " VALUES ('home', 1, ?, 0, 1)",
                (bucket,),
            )
        count_held(session, "home")
    assert totals(store) == total + 5
    assert min(bucket for bucket, _ in store.presence(1)) == gone
    store.close()


def totals(store: Store) -> int:
    return int(store.totals(1).count.sum())


def reports_by_hour(store: Store, stream: StreamTable) -> dict[int, int]:
    curve = read_load_curve(store, stream, 0, LAST_BUCKET)
    return dict(zip(curve.bucket.tolist(), curve.n.tolist(), strict=True))


def test_after_day_days_counts_are_gone_and_what_is_left_is_as_before(engine: Engine) -> None:
    config = configured(engine, "[retention]\nday_days = 61\n")
    store = engine.open()
    fill(store, config)
    left = (FIRST_DAY + 2) * SLOTS
    before = seen(store, left)
    name = config.streams[0].name
    days = [arrival(f"home-{at}", period=FIRST_DAY + at, **ONE_DAY) for at in range(4)]
    kept = [one.kept(0, held=False)._replace(name=name) for one in days]
    commit(store, changes(summed=tuple(kept)))
    tend_all(config)
    assert store.rolled_up(1).until[GONE] == left
    assert store.period_sums(name, 0, 1 << 40) == kept[2:]
    assert store.period_totals(name, 0, 1 << 40) == totals_of(kept[2:])
    assert seen(store) == seen(store, left) == before
    assert min(bucket for bucket, _ in store.presence(1)) == left
    curve = read_load_curve(store, config.streams[0], 0, LAST_BUCKET)
    assert curve.bucket.min() >= left
    store.close()


def test_a_range_that_cuts_a_day_is_widened_to_it_and_said(
    engine: Engine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configured(engine)
    path = tmp_path / "a.toml"
    path.write_text(engine.text(more=QUARTERS + RETENTION))
    store = engine.open()
    fill(store, config)
    tend_all(config)
    store.close()
    start = FIRST_DAY * DAY_S
    asked = ["query", "-c", str(path), "--json", "--since", str(start + 3600)]
    main([*asked, "--until", str(start + 2 * DAY_S)])
    out = capsys.readouterr()
    view = json.loads(out.out)
    (warning,) = view["warnings"]
    assert "kept by days" in warning
    assert "2022-01-08T00:00Z to 2022-01-09T00:00Z" in warning
    assert warning in out.err
    assert view["from_s"] == start
    main(["query", "-c", str(path), "--json", "--by", "hour-of-day"])
    view = json.loads(capsys.readouterr().out)
    assert any("without their hours" in one for one in view["warnings"])
    main(["load-curve", "-c", str(path), "--json", "--until", str(start + DAY_S)])
    hours = json.loads(capsys.readouterr().out)["hours"]
    assert [row["from_s"] - start for row in hours] == list(range(0, DAY_S, 3600))


@pytest.mark.parametrize("offset_s", [pytest.param(0, marks=pytest.mark.slow), 7200, 19_800])
def test_hours_of_the_day_are_as_before_where_they_are_kept_and_begin_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], offset_s: int
) -> None:
    """Days have no hours, nor have hours of UTC where the clocks are half an hour off."""
    engine = Engine("sqlite", f'path = "{tmp_path / "a.db"}"', tmp_path / "a.db", "")
    more = QUARTERS.replace("_s = 0", f"_s = {offset_s}") + "[retention]\nbucket_days = {}\n"
    more += "hour_days = 61\n"
    path = tmp_path / "a.toml"
    path.write_text(engine.text(more=more.format(60)))
    config = engine.config(more=more.format(60))
    store = engine.open()
    fill(store, config)
    days = [(FIRST_DAY + day) * SLOTS for day in range(DAYS)]
    ones = count_batches([((1, 1, 0, 0), 1, np.array(days), np.zeros(DAYS, np.int64))])
    commit(store, changes(tally=ones))  # sums of a day begin with it, however it is kept

    def asked(*range_: int) -> Any:
        by_hour = ("query", "-c", str(path), "--json", "--by", "hour-of-day")
        since = () if not range_ else ("--since", str(range_[0]))
        until = () if not range_ else ("--until", str(range_[1]))
        code = main([*by_hour, *since, *until])
        return json.loads(capsys.readouterr().out) | {"code": code}

    start, end = FIRST_DAY * DAY_S, (FIRST_DAY + DAYS) * DAY_S
    by_hours, by_buckets = start + 2 * DAY_S, start + 3 * DAY_S
    begins = by_buckets if offset_s % 3600 else by_hours
    before = asked(begins, end)
    assert tend_all(config) > DAYS
    stream = config.streams[0]
    hour, day = spans(stream)
    until = store.rolled_up(1).until
    assert (until[day] * 900, until[hour] * 900) == (by_hours, by_buckets)
    assert asked(begins, end) == before
    assert len(before["groups"]) == 24
    whole = asked()
    (warning,) = whole.pop("warnings")
    level = "hours of UTC" if offset_s % 3600 else "days"
    at = datetime.fromtimestamp(begins, UTC).strftime("%Y-%m-%dT%H:%MZ")
    assert warning == (
        f"counts before {at} are kept by {level}, without their hours: the answer begins there"
    )
    assert whole["from_s"] == begins
    assert whole["groups"] == before["groups"]
    none = asked(start, start + DAY_S)
    assert (none["code"], none["whole"]["mean"], none["groups"]) == (5, None, [])
    assert len(none["warnings"]) == 1
    store.close()


class TwoClocks:
    """A wall clock that can be put on, and one that never steps."""

    rate = 1.0

    def __init__(self, now_s: float) -> None:
        self.now_s, self.monotonic_s = now_s, 0.0

    def now(self) -> float:
        return self.now_s

    def monotonic(self) -> float:
        return self.monotonic_s


def test_a_clock_that_jumps_closes_and_deletes_nothing_for_an_hour_AGG_16(engine: Engine) -> None:
    config = configured(engine, "[retention]\nday_days = 400\n")
    store = engine.open()
    fill(store, config)
    clock = TwoClocks(NOW_S)
    chore = Retention(config, clock)  # type: ignore[arg-type] # what it asks for
    while chore(store):
        pass
    before, kept = seen(store), store.rolled_up(1)
    clock.now_s += 3650 * DAY_S
    for _ in range(3):
        assert not chore(store)
        clock.now_s += 1000
        clock.monotonic_s += 1000
    assert (seen(store), store.rolled_up(1)) == (before, kept)
    clock.now_s += 1000
    clock.monotonic_s += 1000
    while chore(store):  # it lasted: a correction
        pass
    assert store.rolled_up(1).until[GONE] > 0
    store.close()
