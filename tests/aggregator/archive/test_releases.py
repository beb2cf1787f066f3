"""Homes' sums in the archive: what the store keeps, whatever dies, and told where it is not."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from aggregator.archive.directory import open_spool
from aggregator.archive.files import Compacted, compact
from aggregator.archive.releases import read_releases
from aggregator.archive.spool import Spool
from aggregator.archive.spool_record import (
    RecordError,
    decode_record,
    doubt_of,
    encode_record,
    find_records,
    releases_of,
)
from aggregator.commands import replay
from aggregator.counting.frames import CountedFrames
from aggregator.counting.records import Doubt
from aggregator.counting.refusals import Measured
from aggregator.errors import StoreError
from aggregator.intake.intake import commit
from aggregator.store.sqlite.session import SqliteSession
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.device.sums_frame import encode_sums
from edge_ldp.protocol.released import FIRST_SUMS_KEY
from edge_ldp.service.broker import Message
from tests.aggregator.archive_run import CONFIG, RULES, SLOT_S, config_in, traffic
from tests.aggregator.counting.test_period_sums import NOW, WEEK, frame

SUMS = replace(RULES, now_s=NOW, measured={"power": Measured(1, "W", 0, 43_470)})
FLUSH = b"f" * 16


@pytest.fixture
def spool(tmp_path: Path, store: SqliteStore) -> Iterator[Spool]:
    made = open_spool(config_in(tmp_path), store)
    assert made is not None
    yield made
    made.close()


def release(home: int, period: int = WEEK) -> Message:
    payload = encode_sums(frame(period, 1 + period - WEEK))
    return Message(f"edge-ldp/v1/demo/report/home-{home}", payload)


def test_a_record_of_reports_and_sums_is_read_back_and_a_damaged_one_told(
    store: SqliteStore,
) -> None:
    changes = commit(store, fleet="demo", messages=[release(1), *traffic()[0]], rules=SUMS)
    both, alone = changes.counted, changes.summed
    (body,) = find_records(encode_record(both, FLUSH, alone)).bodies
    assert releases_of(body) == alone
    assert len(decode_record(body)) == len(both.frames.slots)
    assert doubt_of(body).device == both.frames.devices[0]
    (body,) = find_records(encode_record(CountedFrames.of(), FLUSH, alone)).bodies
    assert (releases_of(body), len(decode_record(body))) == (alone, 0)
    assert doubt_of(body) == Doubt(FLUSH, "home-1", FIRST_SUMS_KEY, 1, 7)
    (body,) = find_records(encode_record(both, FLUSH)).bodies
    assert releases_of(body) == ()
    damaged = encode_record(CountedFrames.of(), FLUSH, alone)[12:]
    for at in (8, 12, 25):
        with pytest.raises(RecordError):
            releases_of(memoryview(damaged[:at] + b"\xff" + damaged[at + 1 :]))


def test_what_was_not_committed_is_not_in_the_archive_AGG_01(
    tmp_path: Path, store: SqliteStore, spool: Spool
) -> None:
    commit(store, fleet="demo", messages=[release(1)], rules=SUMS, spool=spool)
    lost = SqliteStore.open(tmp_path / "other.db")
    summed = commit(lost, fleet="demo", messages=[release(2)], rules=SUMS).summed
    lost.close()
    spool.put(CountedFrames.of(), FLUSH, summed)  # and died before the store did
    found = compact(tmp_path / "archive", {1: SLOT_S}, store.committed)
    assert found == Compacted(releases=1)
    assert [one.device for one in read_releases(tmp_path / "archive")] == ["home-1"]


def test_a_replay_says_whether_archive_and_store_have_the_same_sums_REP_15(
    tmp_path: Path, store: SqliteStore, spool: Spool, capsys: pytest.CaptureFixture[str]
) -> None:
    later = replace(SUMS, now_s=NOW + 35 * 86_400)
    for period in (WEEK, WEEK + 1, WEEK + 3):
        messages = [release(home, period) for home in (1, 2, 3)]
        commit(store, fleet="demo", messages=[*messages, *messages], rules=later, spool=spool)
        compact(tmp_path / "archive", {1: SLOT_S}, store.committed)
    config = tmp_path / "aggregator.toml"
    config.write_text(CONFIG.format(place=tmp_path))

    def told() -> tuple[int, dict[str, int]]:
        code = replay.main(["-c", str(config), "--json"])
        return code, json.loads(capsys.readouterr().out)["sums"]

    assert told() == (0, {"releases": 9, "differ": 0, "totals_differ": 0})
    assert replay.main(["-c", str(config)]) == 0
    assert "homes' sums: 9 releases, 0 differ" in capsys.readouterr().out
    session = SqliteSession.open(store.path)
    with session.transaction():
        session.rows("DELETE FROM period_sums WHERE device = 'home-1' AND first_s < ?", (NOW,))
    session.close()
    code, sums = told()
    assert (code, sums["differ"] > 0, sums["totals_differ"] > 0) == (1, True, True)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "releases" / "month=2026-01" / "shard-000.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1")
    with pytest.raises(StoreError, match="is damaged"):
        list(read_releases(tmp_path))
