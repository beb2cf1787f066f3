"""A home is erased on either store: nothing of it alone stays, and nothing of it counts again."""

import json
from pathlib import Path
from secrets import randbelow
from typing import Any

import pyarrow.parquet as pq
import pytest

from aggregator.archive.directory import open_spool
from aggregator.counting.members import named_wishes
from aggregator.counting.records import Marked
from aggregator.counting.reporters import hash_of, unpack_reporters
from aggregator.errors import MemberError
from aggregator.intake.intake import commit
from aggregator.replay.comparison import Compared, Difference, explained
from aggregator.store.administration.erasure import GONE, erase, erased_devices
from aggregator.store.administration.registry import apply
from aggregator.store.contract import Reader, Session
from aggregator.store.opening import open_session
from aggregator.store.rows import AuditRow
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.cli import main
from edge_ldp.device.sums_frame import encode_sums
from edge_ldp.protocol.messages import Status, topic
from edge_ldp.service.mqtt import Message
from tests.aggregator.archive_run import CONFIG, DEVICES, SEGMENT_BYTES, config_in, traffic
from tests.aggregator.archive_run import REPORTS as ARCHIVED_REPORTS
from tests.aggregator.archive_run import RULES as ARCHIVED
from tests.aggregator.counting.test_curated import FIRST, arrivals, later
from tests.aggregator.counting.test_curated import frame as curated
from tests.aggregator.counting.test_period_sums import RULES as SUMMED
from tests.aggregator.counting.test_period_sums import frame as summed
from tests.aggregator.engines import Engine
from tests.aggregator.home_traffic import REPORTS, report, seen, take
from tests.aggregator.store.test_registry import AT_S, opened, refusals
from tests.aggregator.store_contract import changes
from tests.aggregator.store_contract import commit as put

NAME = "home-1"  # as those of the curated and summed frames
OTHERS = ("home-10", "home-200")  # one has the name in its own; codes are by its length


def status(device: str) -> Message:
    return Message(topic("demo", "status", device), Status("online", "1.2", ()).to_json())


def texts(session: Session) -> dict[str, str]:
    """Return all that the tables of single devices, the log and the facts say, as text."""
    tables = [*session.device_tables(), "devices", "records", "audit", "facts"]
    return {table: str(session.rows(f"SELECT * FROM {table}")) for table in tables}  # noqa: S608 (our own names)


def who(session: Session) -> set[int]:
    tables = [*session.COUNTED, "sums"]
    found = [row for one in tables for row in session.rows(f"SELECT reporters FROM {one}")]  # noqa: S608 (our own names)
    return {
        one for (blob,) in found for kind in unpack_reporters(bytes(blob)) for one in kind or ()
    }


def accounts(reader: Reader) -> list[int]:
    rows = reader.report_sums()
    return [sum(getattr(row, name) for row in rows) for name in ("created", "counted", "rejected")]


def fill(session: Session, store: Any) -> None:
    """Let three homes leave what can be left of them."""
    log = [f"devices group --to east {name}" for name in (NAME, *OTHERS)]
    session.orders = [AuditRow(AT_S, "ann", line) for line in log]
    homes = (NAME, *OTHERS)
    apply(session, named_wishes(homes, enrols=True, group="east"), AT_S)
    take(store, *(report(name, 1) for name in homes), *(status(name) for name in homes))
    mark = Marked("top", seen=9, reports=10, bound=0.5, chance=1e-9)
    released = tuple(arrivals(curated(), later(FIRST + 1, 4)))
    put(store, changes(released=released, marked={(NAME, 1): mark}))
    sums = [Message(topic("demo", "report", name), encode_sums(summed())) for name in homes]
    take(store, *sums, rules=SUMMED)


def test_AGG_39_nothing_of_an_erased_home_stays_but_its_name_and_sums_of_many(
    engine: Engine,
) -> None:
    with opened(engine) as (store, session):
        fill(session, store)
        before, made, told = seen(store), accounts(store), texts(session)
        assert hash_of(NAME) in who(session)
        assert all(NAME in told[table] for table in ("marks", "audit", "released_values"))
        totals = store.period_totals("power", 0, 1 << 40)
        (found,), _ = erase(session, [NAME], AT_S, randbelow)
        assert found.unnamed == 1
        assert (found.reports, found.audited, found.rows["marks"]) == (REPORTS, 1, 1)
        after, now = seen(store), texts(session)
        assert (after.tally, after.presence) == (before.tally, before.presence)
        assert accounts(store) == made
        assert store.period_totals("power", 0, 1 << 40) == totals
        kept = [row.device for row in store.period_sums("power", 0, 1 << 40)]
        assert len({*kept}) == 3
        assert NAME not in kept
        for table, text in now.items():
            words = text.count(f"'{NAME}'") + text.count(f" {NAME} ") + text.count(f" {NAME}'")
            assert words == {"devices": 1, "records": 2, "facts": 1}.get(table, 0), table
            assert [text.count(f"{one}'") for one in OTHERS] == [
                told[table].count(f"{one}'") for one in OTHERS
            ]
        assert GONE in now["audit"]
        assert hash_of(OTHERS[0]) in who(session)
        assert hash_of(NAME) not in who(session)
        assert len(who(session)) == 3
        (row,) = [row for row in store.devices() if row.device == NAME]
        assert (row.group, row.state, row.software, row.revoked_s) == ("", "unknown", "", AT_S)


def test_AGG_39_an_erased_homes_old_reports_and_its_name_are_refused_for_ever(
    engine: Engine,
) -> None:
    with opened(engine) as (store, session):
        fill(session, store)
        erase(session, [NAME], AT_S, randbelow)
        before, words = seen(store), texts(session)["devices"]
        take(store, report(NAME, 1), report(NAME, 2), status(NAME))
        assert seen(store) == before
        assert texts(session)["devices"] == words
        assert refusals(store)["device"] >= 2
        for wanted in ({"enrols": True}, {"revoked": False}, {"held": False}, {"group": "east"}):
            with pytest.raises(MemberError, match="was erased"):
                apply(session, named_wishes([OTHERS[0], NAME], **wanted), AT_S)
        with pytest.raises(MemberError):
            erase(session, [OTHERS[0], "stranger"], AT_S, randbelow)
        ((again,), _) = erase(session, [NAME], AT_S, randbelow)
        assert (again.rows, again.reports) == ({}, REPORTS)
        assert erased_devices(session.facts()) == {NAME: REPORTS}
        assert store.states(OTHERS[0])[0][1].state.highest == 1  # all were erased, or none


def test_AGG_39_what_was_kept_apart_of_an_erased_home_goes_and_counts_as_rejected(
    engine: Engine,
) -> None:
    with opened(engine) as (store, session):
        fill(session, store)
        apply(session, named_wishes([NAME], held=True), AT_S)
        take(store, report(NAME, 2))
        before, (created, counted, rejected) = seen(store), accounts(store)
        assert before.apart == REPORTS
        (found,), _ = erase(session, [NAME], AT_S, randbelow)
        assert (found.reports, found.rows["held_counts"]) == (REPORTS, 3)
        assert seen(store).apart == 0
        assert seen(store).tally == before.tally
        assert accounts(store) == [created, counted - REPORTS, rejected + REPORTS]


def test_AGG_39_no_byte_of_the_file_is_of_an_erased_home_when_no_service_runs(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    engine = Engine("sqlite", f'path = "{path}"', path, "")
    with opened(engine) as (store, session):
        fill(session, store)
        (record,) = [record for stream, record in store.states(NAME) if stream == 1]
        assert not session.forget_deleted()
    session = open_session(engine.config(), "test.toml")
    assert record.state.digests in path.read_bytes()
    assert erase(session, [NAME], AT_S, randbelow)[1]
    session.close()
    files = [one.read_bytes() for one in tmp_path.glob(f"{path.name}*")]
    assert not any(record.state.digests in content for content in files)


def test_AGG_39_an_erased_home_leaves_the_archive_and_replay_tells_its_counts_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also what the spool has still, and what an open segment brings again and again."""
    config, file = config_in(tmp_path), tmp_path / "a.toml"
    file.write_text(CONFIG.format(place=tmp_path))
    store = SqliteStore.open(tmp_path / "a.db")
    spool = open_spool(config, store, segment_bytes=SEGMENT_BYTES)
    for flush in traffic(9):
        commit(store, fleet="demo", messages=flush, rules=ARCHIVED, spool=spool)

    def asked(*words: str) -> tuple[int, Any]:
        code = main([*words, "-c", str(file), "--json"])
        return code, json.loads(capsys.readouterr().out)

    assert asked("replay")[0] == 0
    assert main(["aggregator", "devices", "erase", "-c", str(file), "home-3"]) == 2
    assert "--yes" in capsys.readouterr().err
    code, told = asked("aggregator", "devices", "erase", "--yes", "home-3")
    of_one = 9 * ARCHIVED_REPORTS
    assert (code, told["archived"], told["overwritten"]) == (0, of_one, False)
    assert told["devices"][0]["reports"] == of_one
    for _ in range(2):
        code, told = asked("replay")
        assert (code, told["erased"]) == (0, {"devices": 1, "reports": of_one, "explains": True})
        assert told["compared"]["differ"] > 0
        assert told["reports"] == (DEVICES - 1) * of_one
    files = [*(tmp_path / "archive").rglob("*.parquet")]
    assert files
    assert not any("home-3" in pq.read_table(one)["device"].to_pylist() for one in files)
    assert not any(b"home-3" in one.read_bytes() for one in files)
    assert spool is not None
    spool.close()
    store.close()


def test_a_replay_that_misses_more_than_what_was_erased_is_no_sound_one() -> None:
    def found(*cells: tuple[int, int]) -> Compared:
        return Compared(9, 9, 0, tuple(Difference(1, 1, 0, 0, 0, *one) for one in cells))

    assert explained(found(), 0)
    assert explained(found((1, 3), (0, 1)), 3)
    assert not explained(found((1, 3), (0, 1)), 2)
    assert not explained(found((1, 3), (1, 0)), 9)
