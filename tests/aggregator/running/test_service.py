"""Connecting, losing the link, connecting again: NET-01, NET-11, S5."""

import asyncio
import logging
import socket
import time
from dataclasses import replace
from pathlib import Path

import pytest

from aggregator.errors import StoreError
from aggregator.running.service import Service, make_broker
from aggregator.store.rows import BeatTimes
from aggregator.store.sqlite.reader import SqliteReader
from aggregator.store.sqlite.store import SqliteStore
from edge_ldp.service.clock import Clock
from tests.aggregator.fakes import make_config, until


def test_the_session_is_durable_and_acknowledged_by_us(tmp_path: Path) -> None:
    broker = make_broker(make_config(tmp_path / "a.db"), "secret")
    assert broker.client_id == "edge-ldp-demo-aggregator"
    assert broker.session_s == 35 * 86_400
    assert broker.manual_ack
    assert "secret" not in repr(broker)


async def test_a_broker_that_is_not_there_is_one_line_and_no_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aggregator.running.service.BACKOFF_CAP_S", 0.01)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    config = make_config(tmp_path / "a.db")
    config = replace(config, broker=replace(config.broker, port=port))
    service = Service(config, None, Clock(), SqliteStore.open(tmp_path / "a.db"))
    with caplog.at_level(logging.INFO):
        task = asyncio.create_task(service.serve())
        await until(lambda: bool(caplog.messages))
        await asyncio.sleep(0.5)  # many attempts more
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    assert len(caplog.messages) == 1
    assert f"127.0.0.1:{port}" in caplog.text


async def test_AGG_27_a_service_tells_who_reads_the_store_what_it_waits_for(tmp_path: Path) -> None:
    config = make_config(tmp_path / "a.db")
    config = replace(config, broker=replace(config.broker, host="127.0.0.1", port=1))
    store = SqliteStore.open(tmp_path / "a.db")
    reader = SqliteReader.open(tmp_path / "a.db")
    assert reader.beats() == []
    task = asyncio.create_task(Service(config, None, Clock(), store).serve())
    await until(lambda: bool(reader.beats()), 60)
    (row,) = reader.beats()
    assert (row.worker, row.health.partition(",")[0]) == ("", "degraded: link down")
    assert abs(row.at_s - time.time()) < 600
    assert (row.times.report_s, row.times.receipt_s, row.times.link_s) == (None, None, None)
    assert row.times.lost_s is not None
    assert 0 <= row.at_s - row.times.lost_s < 60
    task.cancel()
    await asyncio.wait([task])
    assert reader.beats()[0].health == "stopped"
    assert reader.beats()[0].times == BeatTimes()
    reader.close()


async def test_a_store_that_does_not_open_its_plans_ends_the_service(tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path / "a.db")
    with store.reading() as db:
        db.execute("DROP TABLE plans")
    with pytest.raises(StoreError):
        await Service(make_config(tmp_path / "a.db"), None, Clock(), store).serve()
