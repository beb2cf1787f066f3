"""What every store does, whichever engine keeps it; each engine's own faults stand beside it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from uuid import uuid4

import numpy as np
import pytest

from aggregator.counting.period_totals import totals_of
from aggregator.counting.records import Changes, Key, Known, Marked, Member, Record
from aggregator.counting.reporters import pack_reporters, unpack_reporters
from aggregator.counting.seen_batches import DIGEST, DeviceState, Gap
from aggregator.counting.tally import Tally
from aggregator.errors import StoreError
from aggregator.store.contract import PlanRow, Reader, RevisionRow, Store
from aggregator.store.rows import ORDERS, STATES, BeatRow, BeatTimes, DeviceSums, FleetDay, MarkRow
from edge_ldp.protocol.messages import Status
from edge_ldp.protocol.released import FIRST_KEY
from tests.aggregator.counting.test_curated import FIRST, arrivals, frame, later
from tests.aggregator.counting.test_period_sums import Store as Sums
from tests.aggregator.counting.test_period_sums import arrival
from tests.aggregator.tallies import count_batches

OpenStore = Callable[[], Store]
OpenReader = Callable[[], Reader]
NOW_S = 1_700_000_000
DAY_S = 86_400
RECORD = Record(
    state=DeviceState(
        highest=9,
        last_slot=1_900_000,
        floor=2,
        gaps=(Gap(3, 4, -1, None), Gap(6, 6, 1_899_000, 1_899_500)),
        digests=DIGEST.pack(8, b"12345678") + DIGEST.pack(9, b"abcdefgh"),
    ),
    first_slot=1_898_000,
    counted=50,
    rejected=4,
    duplicates=3,
    conflicts=2,
    created=60,
    expired=1,
    first=2,
    next=11,
    before=5,
)


def changes(
    records: dict[tuple[str, int], Record] | None = None,
    tally: Tally | None = None,
    **others: object,
) -> Changes:
    made = {
        "records": records or {},
        "statuses": {},
        "tally": tally or Tally(),
        "presence": {},
        "refused": {},
        "enrolled": frozenset(),
        "gapped": frozenset(),
        "settled": frozenset(),
    }
    return Changes(**{**made, **others})  # type: ignore[arg-type]


def give(made: Changes, _: Known) -> Changes:
    return made


def commit(store: Store, change: Changes, now_s: int = NOW_S) -> None:
    store.update(frozenset(), frozenset(), now_s, lambda _: change)


def known(
    store: Store,
    keys: Iterable[Key] = (),
    devices: Iterable[str] = (),
    now_s: int = NOW_S,
    change: Changes | None = None,
) -> Known:
    """Return what a decision about these is told; nothing changes unless told."""
    seen: list[Known] = []

    def decide(known: Known) -> Changes:
        seen.append(known)
        return change or changes()

    store.update(frozenset(keys), frozenset(devices), now_s, decide)
    return seen[0]


def codes(*pairs: tuple[int, int], epoch: int = 1, stream: int = 1, group: int = 0) -> Tally:
    slots, found = zip(*pairs, strict=True)
    return count_batches([((stream, epoch, group, 0), 4, np.array(slots), np.array(found))])


def rows(store: Store, first: int = 0, last: int = 1 << 32) -> list[tuple[int, ...]]:
    found = store.counts(1, first, last)
    columns = (found.epoch, found.bucket, found.code, found.count)
    return list(zip(*(column.tolist() for column in columns), strict=True))


class StoreContract:
    """Inherited by the tests of each store, which gives the fixture `open_store`.

    That is a function which opens the same store again; what was open before is closed first.
    """

    def test_a_new_store_is_empty(self, open_store: OpenStore) -> None:
        store = open_store()
        assert (store.plans(), store.devices(), store.refused()) == ([], [], [])
        assert (list(store.records()), store.presence(1), rows(store)) == ([], [], [])
        assert store.last_commit_s() is None
        assert len(store.totals(1).code) == 0

    def test_a_decision_sees_what_was_committed_before(self, open_store: OpenStore) -> None:
        store = open_store()
        first = changes({("home", 1): RECORD}, enrolled=frozenset({"home"}))
        commit(store, first)
        store = open_store()
        keys = [("home", 1), ("home", 2), ("new", 1)]
        told = known(store, keys, ["home", "new"], NOW_S + 1)
        assert told == Known({("home", 1): RECORD}, frozenset({"home"}), 1, claims=[])
        assert store.last_commit_s() == NOW_S + 1
        assert store.states("home") == [(1, RECORD)]
        assert list(store.records()) == [(("home", 1), RECORD)]

    def test_records_and_devices_added_up_are_those_of_single_ones(
        self, open_store: OpenStore
    ) -> None:
        store = open_store()
        states = {"home-a": "online", "home-b": "offline", "home-c": "online"}
        told = {
            name: Status(state, "v", refusals=("why",) * (name == "home-b"))
            for name, state in states.items()
        }
        others = RECORD._replace(created=90, expired=20), RECORD._replace(counted=7, created=3)
        kept = {("home-a", 1): RECORD, ("home-b", 1): others[0], ("home-c", 2): others[1]}
        kept["home-c", FIRST_KEY] = RECORD
        mark = Marked("top", seen=9, reports=10, bound=0.5, chance=1e-9)
        assert (store.longest_silent(), store.device_states()) == (None, {})
        commit(store, changes(kept, statuses=told, holds={"home-b"}, marked={("home-c", 2): mark}))
        rows = store.report_sums()
        names = ("counted", "rejected", "given_up", "pending", "duplicates", "conflicts")
        assert sorted(
            (row.stream, row.group, row.held, row.first_slot, row.last_slot, *row[5:])
            for row in rows
        ) == sorted(
            (
                *(key, 0, device == "home-b", record.first_slot, record.state.last_slot, 1),
                *(getattr(record, name) for name in names),
            )
            for (device, key), record in kept.items()
        )
        found = DeviceSums(
            3, online=2, silent=0, revoked=0, held=1, refusing=1, marked=1, heard=3, missing=0
        )
        assert store.device_sums(NOW_S) == found
        assert store.device_states() == {"online": 2, "offline": 1}
        rows_of = {row.device: row for row in store.devices()}
        assert store.devices_in_trouble() == [rows_of["home-b"]]
        assert store.longest_silent() == rows_of["home-a"]
        assert store.device_sums(NOW_S + 1) == found._replace(silent=3, missing=3)
        assert [store.may_report(group) for group in (None, 0, 1)] == [2, 2, 0]
        of = {state: store.device_names(state, "device", NOW_S) for state in STATES}
        every = [*states]
        assert of == {
            "all": every,
            "online": ["home-a", "home-c"],
            "silent": [],
            "revoked": [],
            "held": ["home-b"],
            "refusing": ["home-b"],
            "marked": ["home-c"],
        }
        assert store.device_names("silent", "device", NOW_S + 1) == every
        assert store.device_names("all", "device", NOW_S, 7) == []
        for order in ORDERS:
            assert sorted(store.device_names("all", order, NOW_S)) == every
        assert store.device_names("all", "state", NOW_S) == ["home-b", "home-a", "home-c"]
        assert store.device_names("all", "counted", NOW_S)[0] == "home-c"
        assert store.device_names("all", "pending", NOW_S, down=True)[0] == "home-b"
        late = {name: Status("online", "v", health="late") for name in ("home-a", "home-c")}
        commit(store, changes(statuses=late), NOW_S + 2)
        rows_of = {row.device: row for row in store.devices()}
        assert store.devices_in_trouble() == [*rows_of.values()]
        assert store.longest_silent() == rows_of["home-b"]
        assert store.some_devices(["home-c", "nobody", "home-a"]) == [
            row for row in reversed(store.devices()) if row.device != "home-b"
        ]

    def test_the_version_is_another_after_every_commit_of_another(
        self, open_reader: OpenReader, open_store: OpenStore
    ) -> None:
        store = open_store()
        reader = open_reader()
        seen = [reader.version()]
        for at in range(3):
            assert reader.version() == seen[-1]
            commit(store, changes({(f"home-{at}", 1): RECORD}))  # within one second
            seen.append(reader.version())
        assert len({*seen}) == len(seen)
        reader.close()

    def test_AGG_16_the_last_commit_never_goes_back_with_the_clock(
        self, open_store: OpenStore
    ) -> None:
        store = open_store()
        for at_s in (NOW_S, NOW_S + 86_400, NOW_S + 9):
            store.update(frozenset(), frozenset(), at_s, lambda _: changes(), uuid4())
        assert store.last_commit_s() == NOW_S + 86_400
        assert open_store().last_commit_s() == NOW_S + 86_400

    def test_counts_presence_and_refusals_add_up_and_outlive_the_process(
        self, open_store: OpenStore
    ) -> None:
        one = changes(
            tally=codes((4, 7), (5, 7), (9, 2)),
            presence={(1, 1, 0, 0): 2, (1, 2, 0, 0): 1},
            refused={("late", 1): (1, 96), ("frame", -1): (2, 0)},
        )
        two = changes(
            tally=codes((6, 7), (6, 65_535), epoch=2),
            presence={(1, 2, 0, 0): 3},
            refused={("late", 1): (1, 4)},
        )
        for change in (one, two, one):
            commit(open_store(), change)
        store = open_store()
        assert rows(store) == [*[(1, 1, 7, 4), (1, 2, 2, 2)], *[(2, 1, 7, 1), (2, 1, 65_535, 1)]]
        assert rows(store, 2, 2) == [(1, 2, 2, 2)]
        totals = store.totals(1)
        assert totals.epoch.tolist() == [1, 1, 2, 2]
        assert totals.code.tolist() == [2, 7, 7, 65_535]
        assert totals.count.tolist() == [2, 4, 1, 1]
        assert store.presence(1) == [(1, 4), (2, 5)]
        found = [(row.reason, row.stream, row.messages, row.reports) for row in store.refused()]
        assert found == [("frame", -1, 4, 0), ("late", 1, 3, 196)]

    def test_who_reported_is_united_by_bucket_group_and_part_AGG_30(
        self, open_store: OpenStore
    ) -> None:
        def told(*slots: int, who: int, epoch: int = 1, group: int = 0) -> Changes:
            tally = codes(*((slot, 7) for slot in slots), epoch=epoch, group=group)
            sets = {(1, epoch, group, 0, slot // 4): pack_reporters([who], []) for slot in slots}
            return changes(tally=tally, reporters=sets)

        def shown(sets: Mapping[int, bytes]) -> dict[int, set[int] | None]:
            return {bucket: unpack_reporters(who)[0] for bucket, who in sets.items()}

        for change in (told(4, 9, who=1), told(5, who=2), told(6, who=2, epoch=2)):
            commit(open_store(), change)
        commit(open_store(), told(9, 12, who=3, group=5))
        commit(open_store(), changes(tally=codes((12, 7))))  # of whom nobody knows
        store = open_store()
        assert shown(store.counts(1, 0, 9).reporters) == {1: {1, 2}, 2: {1, 3}, 3: {3}}
        assert shown(store.counts(1, 0, 9, 5).reporters) == {2: {3}, 3: {3}}
        halves = store.summed(1, 0, 9, None, lambda bucket: bucket > 1).reporters
        assert shown(halves) == {1: {1, 2}, 2: {1, 3}}
        assert shown(store.reporters(1, 0, 9, 5)) == {1: {1, 2}, 2: {1}, 3: set()}
        assert shown(store.reporters(1, 2, 3, 0)) == {2: {3}, 3: {3}}

    def test_a_decision_that_fails_changes_nothing(self, open_store: OpenStore) -> None:
        store = open_store()

        def decide(_: Known) -> Changes:
            raise RuntimeError("no")

        with pytest.raises(RuntimeError):
            store.update(frozenset(), frozenset(), NOW_S, decide)
        assert store.last_commit_s() is None
        commit(store, changes(tally=codes((4, 7))))
        assert rows(store) == [(1, 1, 7, 1)]

    def test_a_write_that_fails_half_way_changes_nothing_REP_13_AGG_02(
        self, open_store: OpenStore
    ) -> None:
        """Counts and dedupe state stand or fall together (REP-13, AGG-02)."""
        store = open_store()
        unwritable = changes(
            {("home", 1): RECORD}, codes((4, 7)), presence={("x", object(), 0, 0): 1}
        )
        with pytest.raises(Exception):  # noqa: B017, PT011 (any driver's error for a bad value)
            commit(store, unwritable)
        store = open_store()
        assert list(store.records()) == []
        assert rows(store) == []

    def test_it_is_kept_for_31_days_on_which_of_them_a_status_came(
        self, open_store: OpenStore
    ) -> None:
        store, first = open_store(), NOW_S // DAY_S
        told = changes(statuses={"home": Status("online", "1")})
        commit(store, changes(enrolled={"home"}), NOW_S)
        for ago, came in ((2, (2,)), (3, (2, 3)), (30, (2, 3, 30)), (34, (30, 34)), (90, (90,))):
            commit(store, told, NOW_S + ago * DAY_S)
            commit(store, told, NOW_S + ago * DAY_S + 1)  # of one day it is kept once
            (row,) = store.devices()
            days = {day: row.heard_on(first + day) for day in range(-40, 100)}
            assert {day for day, is_so in days.items() if is_so} == {*came}
            assert min(d for d, is_so in days.items() if is_so is not None) == max(0, ago - 30)
        commit(store, told, NOW_S)  # a clock that was set back: nothing before is sure
        assert store.devices()[0].heard == 3
        store.close()

    def test_a_status_replaces_the_one_before_and_enrols(self, open_store: OpenStore) -> None:
        store = open_store()
        commit(store, changes(enrolled=frozenset({"a", "b"})))
        told = Status("online", "1.0", refusals=("ratio", "sig key"))
        commit(store, changes(statuses={"a": told, "c": told}))
        commit(store, changes(statuses={"a": Status("offline", "1.1")}))
        found = [(row.device, row.state, row.software, row.refusals) for row in store.devices()]
        assert found == [
            ("a", "offline", "1.1", ()),
            ("b", "unknown", "", ()),
            ("c", "online", "1.0", ("ratio", "sig key")),
        ]

    def test_a_plan_is_kept_in_its_exact_bytes_and_issued_once(self, open_store: OpenStore) -> None:
        one, two = PlanRow(1, 1, NOW_S, b'{"a": 1}'), PlanRow(1, 2, NOW_S, b"\x00")
        store = open_store()
        store.add_plan(one)
        store.add_plan(two)
        with pytest.raises(StoreError):
            store.add_plan(PlanRow(1, 2, NOW_S, b"other"))
        assert open_store().plans() == [one, two]

    def test_a_revision_is_kept_with_the_plan_that_it_led_to(self, open_store: OpenStore) -> None:
        store = open_store()
        store.add_revision(RevisionRow(1, 5, b"stays"))
        store.add_plan(PlanRow(1, 2, 9, b"plan"), RevisionRow(1, 9, b"leads to 2"))
        with pytest.raises(StoreError):
            store.add_plan(PlanRow(1, 2, 10, b"again"), RevisionRow(1, 10, b"not kept"))
        kept = open_store().revisions()
        assert kept == [RevisionRow(1, 5, b"stays"), RevisionRow(1, 9, b"leads to 2")]

    def test_a_heartbeat_replaces_the_one_before_AGG_27(self, open_store: OpenStore) -> None:
        store = open_store()
        for row in (
            BeatRow("two", 5, "ok"),
            BeatRow("one", 6, "degraded: link down"),
            BeatRow("two", 7, "ok", BeatTimes(report_s=6, link_s=2)),
        ):
            store.beat(row)
        assert open_store().beats() == [
            BeatRow("one", 6, "degraded: link down"),
            BeatRow("two", 7, "ok", BeatTimes(report_s=6, link_s=2)),
        ]

    def test_days_of_the_fleet_are_kept_for_a_fortnight(self, open_store: OpenStore) -> None:
        store = open_store()
        for day in (5, *range(700_000, 700_020), 700_019):
            store.beat(FleetDay(day, 3, day % 5, 0))
        days = range(700_006, 700_020)
        assert open_store().fleet_days() == [FleetDay(day, 3, day % 5, 0) for day in days]

    def test_a_heartbeat_is_read_by_and_from_the_version_without_times_AGG_27(
        self, open_store: OpenStore
    ) -> None:
        """That one takes all of "alive, worker ": seconds, a space, and the rest for health."""
        store = open_store()
        store.beat(BeatRow("one", 6, "degraded: link down", BeatTimes(4, 5, None, 3)))
        with store.reading() as db:
            facts = dict(db.execute("SELECT name, value FROM facts").fetchall())
        told = {name: value for name, value in facts.items() if name.startswith("alive, worker ")}
        assert told == {"alive, worker one": "6 degraded: link down"}
        write = "UPDATE facts SET value = '9 ok' WHERE name = 'alive, worker one'"
        with store.reading() as db:
            db.execute(write)
        assert open_store().beats() == [BeatRow("one", 9, "ok")]  # not with times of another one

    def test_totals_of_some_buckets_are_those_of_no_other(self, open_store: OpenStore) -> None:
        store = open_store()
        commit(store, changes(tally=codes((4, 7), (8, 7), (8, 9), (12, 9))))
        found = store.totals(1, 2, 2)
        assert (found.code.tolist(), found.count.tolist()) == ([7, 9], [1, 1])
        assert store.totals(1, 3).count.tolist() == [1]
        assert store.totals(1, 0, -1).count.tolist() == []

    def test_what_is_kept_of_a_device_is_replaced_and_its_marks_are_counted(
        self, open_store: OpenStore
    ) -> None:
        store = open_store()
        mark = Marked("code 7", 20, 40, 0.25, 1e-9)
        key = ("home", 1)
        commit(store, changes({key: RECORD}, watched={(*key, "a"): b"1", (*key, "b"): b"2"}))
        commit(store, changes(watched={(*key, "a"): b"3"}, marked={key: mark}))
        commit(store, changes(marked={key: replace(mark, seen=45)}), NOW_S + 60)
        store = open_store()
        assert known(store, [key]).watched == {(*key, "a"): b"3", (*key, "b"): b"2"}
        assert store.marks() == [MarkRow("home", 1, NOW_S, NOW_S + 60, 2, replace(mark, seen=45))]

    def test_what_the_counts_are_about_cannot_change(self, open_store: OpenStore) -> None:
        store = open_store()
        store.pin({"fleet": "demo", "stream 1": "power"})
        store = open_store()
        store.pin({"fleet": "demo", "stream 2": "gas"})
        with pytest.raises(StoreError, match="stream 1 = power, not gas"):
            store.pin({"fleet": "demo", "stream 1": "gas"})

    def test_the_largest_state_survives_the_trip(self, open_store: OpenStore) -> None:
        gaps = tuple(Gap(2 * i + 1, 2 * i + 1, 10 * i - 1, 10 * i + 5) for i in range(64))
        digests = b"".join(DIGEST.pack(i, b"x" * 8) for i in range(8))
        state = DeviceState(1 << 31, (1 << 32) - 2, 3, gaps, digests)
        store = open_store()
        commit(store, changes({("home", 255): Record(state)}))
        assert store.states("home") == [(255, Record(state))]

    def test_a_curated_stream_is_kept_with_its_designs(self, open_store: OpenStore) -> None:
        store = open_store()
        for _ in range(2):  # what was stored first stands
            commit(store, changes(released=tuple(arrivals(frame(), later(FIRST + 1, 4)))))
        store = open_store()
        (first,) = store.released_chunks()
        assert (first.device, first.key, first.theta) == ("home-1", 256, 1000)
        assert first.design == frame().design.encode()
        values = store.released_values("home-1", 256, FIRST, FIRST + 2)
        assert [row[:1] + row[2:] for row in values] == [(FIRST, 0, 5), (FIRST + 1, 1, -7)]
        assert store.released_span("home-1", 256)[0] == FIRST

    def test_sums_of_a_period_are_kept_and_add_up_to_totals_REP_15(
        self, open_store: OpenStore
    ) -> None:
        homes = Sums(home_1=Member(group=2), home_3=Member(held=True))
        came = homes.flush(*(arrival(f"home-{one}") for one in range(1, 4))).summed
        begin, end = came[0][2:4]
        store = open_store()
        commit(store, changes(summed=came[:1]))
        commit(store, changes(summed=came[1:]))
        store = open_store()
        kept = store.period_sums("power", begin, end)
        assert kept == [one for one in came if not one.held]
        assert store.period_totals("power", begin, end) == totals_of(kept)
        assert store.period_totals("power", begin, end, 2) == totals_of(kept[:1])
        for name, since_s, until_s in (("gas", begin, end), ("power", begin + 1, end)):
            assert not store.period_totals(name, since_s, until_s)
            assert not store.period_sums(name, since_s, until_s)
        asked = [("home-2", 513), ("other", 513), ("home-2", 1)]
        assert [list(known(store, [key], (), end).claims) for key in asked] == [
            [came[1][:4]],
            [],
            [],
        ]

    def test_a_record_is_replaced_by_a_decision_that_saw_it(self, open_store: OpenStore) -> None:
        store = open_store()
        key = ("home", 1)
        for counted in (1, 2, 3):
            made = changes({key: RECORD._replace(counted=counted)})
            store.update(frozenset({key}), frozenset(), NOW_S, partial(give, made))
        assert store.states("home") == [(1, RECORD._replace(counted=3))]
