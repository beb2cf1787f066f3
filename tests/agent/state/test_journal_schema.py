"""Files of older versions: brought up whole or not at all; and what a slot costs the flash."""

import logging
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent.claims.batches import Batch, BatchSeries, Key, pack
from agent.claims.elapsed import Elapsed
from agent.claims.pipeline import Claim, Report
from agent.errors import StateGoneError
from agent.state import journal_schema
from agent.state.device import Device
from agent.state.journal import Journal
from agent.state.journal_schema import SCHEMA, TABLES, WITH_SHED, seal
from agent.state.plan_journal import StoredPlan
from edge_ldp.device.sums_frame import encode_sums
from edge_ldp.period_sums import PeriodLayout
from edge_ldp.protocol.ledger import Ledger, Window, charge
from edge_ldp.protocol.messages import StreamStatus
from edge_ldp.protocol.released import FIRST_SUMS_KEY, encode_released
from edge_ldp.ratio import floor_ratio
from tests.agent.journal_bytes import bytes_a_slot
from tests.agent.samples import SLOT, begun, make_plan, numbered
from tests.agent.state.device_bench import planned
from tests.edge_ldp.device.test_sums import FRAME as SUMS
from tests.edge_ldp.protocol.test_released import FRAME

RATIO = floor_ratio(1)
WINDOW = Window(8, 97, 1)
LEDGER = Ledger(WINDOW, tuple(range(0, 80, 10)), SLOT + 3, silent_until=0, spent=((3, 2, 9),))
WAITING = [Report(1, SLOT + 2, 1, 7), Report(1, SLOT + 3, 1, 8)]
NUMBER = SLOT + 2  # the highest of a batch of slots until SLOT + 1 that an aggregator takes
(BATCH,) = pack(
    [Report(1, SLOT, 1, 5), Report(1, SLOT + 1, 1, 6)], numbered(1, following=NUMBER, series=0)
)
PLAN = StoredPlan("power", 1, make_plan().to_json())


def write_version_1(path: Path) -> None:
    """Write what the first released version wrote: its tables, a ledger, reports, a plan."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA page_size = 512")
    db.execute("PRAGMA journal_mode = WAL")
    db.executescript(f"BEGIN;{';'.join(TABLES[1])};PRAGMA user_version = 1;COMMIT;")
    db.execute("INSERT INTO ledger VALUES (1, 41, x'', ?)", (LEDGER.to_json(),))
    db.execute("INSERT INTO streams VALUES (1, ?, ?, 6, 2)", (SLOT - 1, NUMBER + 1))
    db.execute("INSERT INTO plans VALUES (?, ?, ?)", (PLAN.name, PLAN.epoch, PLAN.payload))
    for report in WAITING:
        row = (report.stream, report.slot, report.epoch, report.code)
        db.execute("INSERT INTO waiting VALUES (?, ?, ?, ?)", row)
    key = BATCH.key
    batch = (key.stream, key.number, BATCH.last_slot, BATCH.reports, BATCH.payload)
    db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", batch)
    db.execute("UPDATE ledger SET seal = ?", (seal(db),))
    db.close()


def write_version(path: Path, version: int) -> None:
    """Write what an older version wrote, from the first one's by the steps until then."""
    write_version_1(path)
    with sqlite3.connect(path, isolation_level=None) as db:
        for step in range(1, version):
            for statement in journal_schema.STEPS[step]:
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {version}")
        db.execute("UPDATE ledger SET seal = ?", (seal(db),))
    db.close()


def check_content(journal: Journal) -> None:
    assert journal.ledger() == LEDGER
    assert journal.waiting() == WAITING
    assert journal.keys() == [BATCH.key]
    assert journal.payload(BATCH.key) == BATCH.payload
    assert journal.plans() == [PLAN]
    assert journal.status() == [StreamStatus(1, SLOT - 1, NUMBER + 1, NUMBER, 6, 2)]


LAST = PeriodLayout(SUMS.slot_seconds, SUMS.days, SUMS.cells, SUMS.offset_s, SUMS.block).first_slot(
    SUMS.period + 1
)
OTHERS = {  # series, and a batch of it
    "released values": (
        FRAME.numbering,
        Batch(
            Key(FRAME.key, FRAME.batch), encode_released(FRAME), FRAME.slots[-1], len(FRAME.slots)
        ),
    ),
    "a period's sums": (
        SUMS.series,
        Batch(Key(FIRST_SUMS_KEY + SUMS.stream, SUMS.batch), encode_sums(SUMS), LAST - 1, 1),
    ),
}


@pytest.mark.parametrize("wrong", [0, 1])
@pytest.mark.parametrize("what", OTHERS)
def test_a_batch_is_what_its_row_says_or_the_file_is_damaged(
    tmp_path: Path, what: str, wrong: int
) -> None:
    journal = Journal(tmp_path / "s.db")
    series, batch = OTHERS[what]
    with journal.transaction() as db:
        db.execute("INSERT INTO streams VALUES (?, 1, 1, 0, 0, 0)", (batch.key.stream,))
        journal.begin_series(begun(batch.key.stream, series=series))
        journal.put_batch(batch._replace(reports=batch.reports + wrong))
    journal.close()
    again = Journal(tmp_path / "s.db")
    assert (again.set_aside is None) == (again.keys() == [batch.key]) == (not wrong)


def test_batches_v1_numbered_above_their_slots_are_packed_in_a_series_AGT_28(
    tmp_path: Path,
) -> None:
    """Slots of 60 s were numbered, then they were lengthened: no aggregator takes such a batch."""
    write_version(tmp_path / "s.db", 4)
    lost = [Report(1, SLOT + 4, 1, 9), Report(1, SLOT + 5, 1, 3)]
    (outrun,) = pack(lost, numbered(1, following=15 * SLOT, series=0))
    with sqlite3.connect(tmp_path / "s.db", isolation_level=None) as db:
        row = (*outrun.key, outrun.last_slot, outrun.reports, outrun.payload)
        db.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", row)
        db.execute("UPDATE streams SET next = ?, created = 8", (15 * SLOT + 1,))
        db.execute("UPDATE ledger SET elapsed = ?", (Elapsed(60, 1, 1, 1, "new").encode(),))
        db.execute("UPDATE ledger SET seal = ?", (seal(db),))
    db.close()
    journal = Journal(tmp_path / "s.db")
    assert journal.set_aside is None
    assert journal.keys() == [BATCH.key]
    assert journal.waiting() == [*WAITING, *lost]
    assert journal.series() == [BatchSeries(1, 0, 0, 60, 15 * SLOT)]
    (account,) = journal.status()
    assert (account.created, account.expired, account.oldest) == (8, 2, NUMBER)


@pytest.mark.parametrize("version", range(1, SCHEMA))
def test_a_file_of_an_older_version_is_brought_up_with_all_that_it_held_AGT_21(
    tmp_path: Path, version: int
) -> None:
    write_version(tmp_path / "s.db", version)
    for _ in range(2):
        journal = Journal(tmp_path / "s.db")
        assert journal.set_aside is None
        check_content(journal)
        assert journal.shed_counts() == {1: 0}
        assert journal.elapsed() is None
        with journal.reading() as db:
            assert db.execute("PRAGMA user_version").fetchone()[0] == SCHEMA
        journal.close()
    assert list(tmp_path.glob("*damaged*")) == []


def test_a_brought_up_file_takes_the_next_claim(tmp_path: Path) -> None:
    write_version_1(tmp_path / "s.db")
    journal = Journal(tmp_path / "s.db")
    charged = charge(LEDGER, SLOT + 4, 0, [RATIO])
    journal.commit(Claim(charged, (Report(1, SLOT + 4, 1, 9),)), [], begun(1, base=NUMBER))
    assert [report.slot for report in journal.waiting()] == [SLOT + 2, SLOT + 3, SLOT + 4]
    assert journal.status()[0].created == 7


@pytest.mark.parametrize(
    ("version", "broken_at"), [*((1, at) for at in range(1, 8)), (2, 0), (2, 1)]
)
def test_a_migration_that_fails_anywhere_leaves_the_old_file_AGT_21(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int, broken_at: int
) -> None:
    write_version(tmp_path / "s.db", version)
    steps = list(journal_schema.STEPS[version])
    with monkeypatch.context() as patched:
        broken = (*steps[:broken_at], "this is no SQL", *steps[broken_at:])
        patched.setitem(journal_schema.STEPS, version, broken)
        with pytest.raises(Exception, match="syntax error"):
            Journal(tmp_path / "s.db")
    with sqlite3.connect(tmp_path / "s.db") as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == version
    db.close()
    journal = Journal(tmp_path / "s.db")
    assert journal.set_aside is None
    check_content(journal)


@pytest.mark.parametrize(("version", "shed"), [(1, {}), (WITH_SHED, {1: 0})])
def test_a_reader_of_an_old_file_changes_nothing(
    tmp_path: Path, version: int, shed: dict[int, int]
) -> None:
    write_version(tmp_path / "s.db", version)
    before = (tmp_path / "s.db").read_bytes()
    journal = Journal(tmp_path / "s.db", create=False)
    assert journal.status()[0].created == 6
    assert journal.shed_counts() == shed
    assert journal.elapsed() is None
    journal.close()
    assert (tmp_path / "s.db").read_bytes() == before


def test_a_damaged_old_file_is_set_aside_and_not_brought_up(tmp_path: Path) -> None:
    write_version_1(tmp_path / "s.db")
    with sqlite3.connect(tmp_path / "s.db") as db:
        db.execute("UPDATE streams SET next = next - 1")
    db.close()
    journal = Journal(tmp_path / "s.db")
    assert journal.set_aside is not None
    assert journal.ledger() is None


# what a slot writes, in pages of 512 bytes with their heads in the log


@pytest.mark.parametrize(
    ("streams", "online", "most_bytes"),
    [(1, True, 1620), (1, False, 1800), (3, True, 680), (4, True, 600), (8, True, 400),
     (4, False, 600), (8, False, 360)],
)  # fmt: skip
def test_a_slot_writes_at_most_2_kB_and_700_bytes_a_report_of_several_streams(
    tmp_path: Path, streams: int, *, online: bool, most_bytes: int
) -> None:
    """The mean over 100 slots; docs/security.md has the figures, also of two streams."""
    assert bytes_a_slot(tmp_path, streams, online=online, slots=100) / streams <= most_bytes


# the size limit


def filled(directory: Path, slots: int) -> tuple[Device, Journal]:
    bench = planned(directory / "s.db", slots=2, sending="jitter_s = 0\nmax_kib = 16")
    bench.live(slots)
    return bench.device, bench.journal


def test_beyond_the_size_limit_the_oldest_is_given_up_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    device, journal = filled(tmp_path, 400)
    assert len(journal.keys()) == 400
    with caplog.at_level(logging.WARNING):
        device.housekeeping()
        device.housekeeping()
    room = 16 * 1024 // 63  # a frame of one report, and 32 bytes beside it (docs/security.md)
    kept = journal.keys()
    assert len(kept) == room
    assert kept[-1].number - kept[0].number == room - 1, "the newest stay, without a gap"
    (account,) = journal.status()
    assert (account.created, account.expired) == (400, 400 - room)
    assert account.oldest == kept[0].number
    assert journal.shed_counts() == {1: 400 - room}
    assert sum("beyond the size limit" in record.message for record in caplog.records) == 1
    while device.delivery.due:
        for key, _, _ in device.take_messages(0):
            assert device.core.journal.payload(key) is not None
            device.delivery.acknowledged(key, 0)


def test_below_the_limit_nothing_is_given_up(tmp_path: Path) -> None:
    device, journal = filled(tmp_path, 200)
    device.housekeeping()
    assert len(journal.keys()) == 200
    assert journal.shed(200 * 63) == []
    assert len(journal.shed(200 * 63 - 1)) == 1


def test_waiting_reports_given_up_are_charged_to_their_own_stream(tmp_path: Path) -> None:
    """One place is left for five: of slot 1 all go, of slot 2 all but the highest stream's."""
    journal = Journal(tmp_path / "s.db")
    journal.save_ledger(LEDGER)
    slots = {4: (SLOT + 1,), 6: (SLOT + 1, SLOT + 2), 9: (SLOT + 1, SLOT + 2)}
    reports = [Report(stream, slot, 1, 7) for stream in slots for slot in slots[stream]]
    for slot in (SLOT + 1, SLOT + 2):
        journal.commit(
            Claim(LEDGER, tuple(one for one in reports if one.slot == slot)), [], begun(4, 6, 9)
        )
    assert journal.shed(5 * 16) == []
    assert journal.waiting() == reports
    assert journal.shed(2 * 16 - 1) == []
    assert journal.waiting() == [reports[-1]]
    assert journal.shed_counts() == {4: 1, 6: 2, 9: 1}
    assert {one.stream: one.expired for one in journal.status()} == {4: 1, 6: 2, 9: 1}


@pytest.mark.parametrize("room", [0, 1, 5])
def test_waiting_reports_are_given_up_after_the_batches_oldest_first(
    tmp_path: Path, room: int
) -> None:
    write_version_1(tmp_path / "s.db")
    journal = Journal(tmp_path / "s.db")
    lost = journal.shed(room * 16)
    assert lost == [Key(1, NUMBER)]  # its 59 bytes fit in none of these
    assert journal.waiting() == WAITING[2 - min(room, 2) :]
    gone = 2 + 2 - min(room, 2)
    assert journal.shed_counts() == {1: gone}
    assert journal.status()[0].expired == 2 + gone
    journal.close()
    reopened = Journal(tmp_path / "s.db")
    assert reopened.set_aside is None


@pytest.mark.parametrize(
    "more",
    [
        "CREATE TRIGGER more AFTER INSERT ON plans BEGIN DELETE FROM ledger; END",
        "CREATE VIEW more AS SELECT * FROM plans",
    ],
)
def test_a_state_that_would_do_more_than_its_rows_say_is_set_aside_AGT_07(
    tmp_path: Path, more: str
) -> None:
    path = tmp_path / "s.db"
    Journal(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute(more)
    with pytest.raises(StateGoneError):
        Journal(path, create=False)
    with closing(Journal(path)) as journal:
        assert journal.set_aside is not None
