"""What an operator decides about devices holds from the next flush on, on either store."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aggregator.commands.member_files import read_members
from aggregator.counting.members import named_wishes
from aggregator.counting.records import Marked
from aggregator.errors import MemberError
from aggregator.store.administration.registry import apply, listed
from aggregator.store.contract import Session, Store
from aggregator.store.opening import open_session
from tests.aggregator.engines import Engine
from tests.aggregator.home_traffic import CLOSED, NOW_S, REPORTS, RULES, flushes, report, seen, take
from tests.aggregator.store_contract import changes, commit, known

HOMES = ("a", "bb", "ccc")
AT_S = int(NOW_S)


@contextmanager
def opened(engine: Engine) -> Iterator[tuple[Store, Session]]:
    """Give a service's store, and an operator's connection beside it."""
    store = engine.open()
    session = open_session(engine.config(), "test.toml")
    try:
        yield store, session
    finally:
        session.close()
        store.close()


def decide(session: Session, *devices: str, **wanted: Any) -> list[str]:
    return apply(session, named_wishes(devices, **wanted), AT_S)


def refusals(store: Store) -> dict[str, int]:
    return {row.reason: row.messages for row in store.refused()}


def test_a_revoked_device_is_refused_until_reinstated_and_loses_nothing_REP_03(
    engine: Engine,
) -> None:
    with opened(engine) as (store, session):
        take(store, report("a", 1), report("bb", 1))
        assert decide(session, "a", revoked=True) == ["a"]
        assert decide(session, "a", revoked=True) == []
        before = seen(store)
        take(store, report("a", 2))
        assert refusals(store) == {"device": 1}
        assert seen(store) == before  # no row grew, the record did not move
        assert store.states("a")[0][1].state.highest == 1
        decide(session, "a", revoked=False)
        take(store, report("a", 2))
        assert store.states("a")[0][1].counted == 2 * REPORTS
        assert [(row.device, row.revoked_s) for row in listed(store)] == [("a", None), ("bb", None)]


def test_revoking_stands_above_a_list_and_above_open_enrolment_REP_03(engine: Engine) -> None:
    listing = replace(RULES, devices=frozenset(HOMES))
    with opened(engine) as (store, session):
        take(store, report("a", 1), rules=listing)
        decide(session, "a", revoked=True)
        take(store, report("a", 2), rules=listing)
        take(store, report("a", 2))
        assert refusals(store) == {"device": 2}
        assert len(store.devices()) == 1


def test_where_only_the_store_enrols_unknown_devices_get_no_row_REP_03(engine: Engine) -> None:
    with opened(engine) as (store, session):
        take(store, *(report(name, 1) for name in HOMES), rules=CLOSED)
        assert (refusals(store), store.devices(), list(store.records())) == ({"device": 3}, [], [])
        decide(session, "bb", enrols=True, group="feeder-1")
        take(store, *(report(name, 1) for name in HOMES), rules=CLOSED)
        assert [row.counted for _, row in store.records()] == [REPORTS]
        (row,) = listed(store)
        assert (row.device, row.group, row.state, row.enrolled_s) == (
            "bb", "feeder-1", "unknown", AT_S,
        )  # fmt: skip


def test_devices_that_an_operator_enrols_count_towards_the_cap_REP_03(engine: Engine) -> None:
    capped = replace(RULES, max_devices=2)
    with opened(engine) as (store, session):
        take(store, report("a", 1), rules=capped)
        decide(session, "x", "y", enrols=True)
        take(store, report("bb", 1), report("x", 1), rules=capped)
        assert refusals(store) == {"device": 1}
        assert sorted(row.device for row in store.devices()) == ["a", "x", "y"]


def test_counts_belong_to_the_group_that_a_device_was_in_when_they_were_counted(
    engine: Engine,
) -> None:
    with opened(engine) as (store, session):
        take(store, report("a", 1), report("bb", 1))
        decide(session, "a", group="north")
        take(store, report("a", 2), report("bb", 2))
        decide(session, "a", group="")
        decide(session, "bb", group="south")
        take(store, report("a", 3), report("bb", 3))
        groups = store.groups()
        sums = {name: int(store.totals(1, group=of).count.sum()) for name, of in groups.items()}
        assert sums == {"": 4 * REPORTS, "north": REPORTS, "south": REPORTS}
        every = store.counts(1, 0, 1 << 32)
        assert every.count.sum() == store.totals(1).count.sum() == 6 * REPORTS
        columns = (every.bucket, every.whose, every.code)
        cells = list(zip(*(column.tolist() for column in columns), strict=True))
        assert cells == sorted(set(cells))
        slots = {name: sum(n for _, n in store.presence(1, of)) for name, of in groups.items()}
        assert sum(slots.values()) == sum(n for _, n in store.presence(1))
        assert slots["north"] > 0


def test_held_counts_are_kept_apart_and_join_exactly_when_released(
    engine: Engine, tmp_path: Path
) -> None:
    other = Engine("sqlite", f'path = "{tmp_path / "b.db"}"', tmp_path / "b.db", "")
    work = flushes(HOMES, 12)
    with opened(engine) as (store, session), opened(other) as (never, beside):
        for one, two in ((store, session), (never, beside)):
            take(one, report("a", 1))
            decide(two, "a", group="north")
        decide(session, "ccc", "bb", enrols=True, held=True)
        for at, messages in enumerate(work):
            if at == len(work) // 3:
                decide(session, "a", held=True)
            if at == len(work) // 2:
                decide(session, "bb", held=False)
            for one in (store, never):
                take(one, *messages)
        held, plain = seen(store), seen(never)
        assert held.records == plain.records
        assert held.apart > 12 * REPORTS  # all of ccc, and some of a
        assert held.tally.total + held.apart == plain.tally.total
        assert held.tally != plain.tally
        decide(session, "a", "ccc", held=False)
        assert seen(store) == plain
        assert decide(session, "a", held=False) == []
        assert [row.held_s for row in listed(store)] == [None] * 3


def test_a_mark_holds_a_device_only_where_it_is_told_to_and_never_one_that_was_released(
    engine: Engine,
) -> None:
    mark = Marked("code 7", 20, 40, 0.25, 1e-9)
    held = changes(holds=frozenset({"a"}), marked={("a", 1): mark})
    with opened(engine) as (store, session):
        take(store, report("a", 1))
        commit(store, held, AT_S)
        assert [row.held_s for row in listed(store)] == [AT_S]
        take(store, report("a", 2))
        assert seen(store).apart == REPORTS
        decide(session, "a", held=False)
        member = known(store, devices=["a"]).members["a"]
        assert (member.held, member.cleared) == (False, True)


def test_an_import_is_done_whole_or_not_at_all(engine: Engine) -> None:
    with opened(engine) as (store, session):
        take(store, report("a", 1))
        good = "device,group,revoked\na,north,yes\nbb,,no\nccc,north,\n"
        assert apply(session, read_members(good, "csv", "f.csv"), AT_S) == ["a", "bb", "ccc"]
        found = [(row.device, row.group, row.revoked_s) for row in listed(store)]
        assert found == [("a", "north", AT_S), ("bb", "", None), ("ccc", "north", None)]
        wishes = [*named_wishes(["bb"], revoked=True), *named_wishes(["nobody"], group="south")]
        with pytest.raises(MemberError, match=r"device nobody: is not enrolled.*nothing was"):
            apply(session, wishes, AT_S)
        assert found == [(row.device, row.group, row.revoked_s) for row in listed(store)]
        assert sorted(store.groups()) == ["", "north"]
