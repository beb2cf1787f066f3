"""Spark and DuckDB count the same archive: the same query, the same counts to the bit."""

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow.parquet as pq
import pytest

from aggregator.archive.files import compact
from aggregator.commands.replay import main as replay
from aggregator.config import load_config
from aggregator.errors import StoreError
from aggregator.replay.comparison import digest_of, tally_of_rows
from aggregator.replay.counts import WORK, Counted, count_archive
from aggregator.replay.statement import Selection
from aggregator.store.sqlite.reader import SqliteReader
from benchmarks.fleet_offline import run_offline
from edge_ldp.extras import pip_install
from studies.load.fates import Spec
from tests import needs
from tests.studies.load.test_load import CONFIG

SPEC = Spec(
    devices=40,
    rounds=12,
    reports=20,
    seed=5,
    window_s=35 * 86_400,
    duplicates=0.1,
    delayed=0.2,
    lost=0.1,
    liars=0.3,
    reinstalls=0.2,
)
ONE = frozenset({"load-0000007"})


class House:
    """A store and its archive after bad traffic, brought into files in two parts."""

    def __init__(self, place: Path) -> None:
        self.path = place / "a.toml"
        self.path.write_text(CONFIG.format(place=place))
        self.config = load_config(self.path)
        self.archive = place / "archive"
        self.streams = {s.id: s.bucket_slots for s in self.config.streams}
        run_offline(self.config, str(self.path), SPEC, lambda _: None, 50)
        kept = place / "kept"
        shutil.copytree(self.archive / "spool", kept)
        self.compact()
        for segment in kept.glob("*.spool"):  # the same parts again, as after a crash
            shutil.copy(segment, self.archive / "spool")
        self.compact()

    def compact(self) -> None:
        reader = SqliteReader.open(self.archive.parent / "a.db")
        slots = {s.id: s.slot_seconds for s in self.config.streams}
        compact(self.archive, slots, reader.committed)
        reader.close()

    def count(self, **more: Any) -> Counted:
        without = more.pop("without", frozenset())
        return count_archive(self.archive, Selection(self.streams, without), **more)

    def in_store(self) -> str:
        reader = SqliteReader.open(self.archive.parent / "a.db")
        found = digest_of(tally_of_rows({at: reader.counts(at, 0, 1 << 32) for at in self.streams}))
        reader.close()
        return found


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


@pytest.fixture
def engine() -> ModuleType:
    """Give the module; only an environment for the slow tests has Spark, half a gigabyte of it."""
    if find_spec("pyspark") is None:
        needs.missing("pyspark", "make test-slow, which installs it")
    return import_module("aggregator.replay.spark_engine")


@pytest.fixture
def spark(
    house: House, engine: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Selection], Any]:
    # these queries are over before Java's second compiler has paid for itself
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    needs.program("java")
    return partial(engine.open_spark, master="local[2]", work=house.archive / WORK)


@pytest.mark.slow
def test_spark_and_duckdb_count_an_archive_to_the_same_bits(
    house: House,
    engine: ModuleType,
    spark: Callable[[Selection], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One JVM for all of it, because starting one takes longest."""
    duckdb = house.count(without=ONE)
    assert digest_of(duckdb.tally) == house.in_store()
    found = house.count(engine=spark, without=ONE)
    assert digest_of(found.tally) == digest_of(duckdb.tally)
    assert digest_of(found.left_out) == digest_of(duckdb.left_out)
    assert 0 < found.left_out.total < found.tally.total > 10_000
    assert found.kept.total == found.tally.total - found.left_out.total

    _one_file_without_groups(house)
    monkeypatch.setattr(engine.SparkEngine, "days_at_once", 5)
    told: list[int] = []

    def interrupt(done: int, _all: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        house.count(engine=spark, progress=interrupt)
    again = house.count(engine=spark, resume=True, progress=lambda done, _all: told.append(done))
    assert again.resumed == 5
    assert digest_of(again.tally) == house.in_store() == digest_of(house.count().tally)
    assert told[-1] == again.days > 6

    damaged = max((house.archive / "reports").glob("day=*/*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(StoreError, match=r"cannot be read .*restore it from a backup"):
        house.count(engine=spark)
    assert "spark" in (house.archive / WORK / "spark.log").read_text().lower()


def _one_file_without_groups(house: House) -> None:
    """Write a file as the version before groups did."""
    path = min((house.archive / "reports").glob("day=*/*.parquet"))
    pq.write_table(pq.read_table(path, partitioning=None).drop_columns("grp"), path)


@pytest.mark.slow
def test_executors_in_other_processes_count_the_same(
    house: House, engine: ModuleType, spark: Callable[[Selection], Any]
) -> None:
    cluster = partial(
        engine.open_spark, master="local-cluster[2,1,1024]", work=house.archive / WORK
    )
    assert digest_of(house.count(engine=cluster).tally) == house.in_store()
    assert spark is not None


@pytest.mark.slow
def test_without_java_the_remedy_is_named(
    house: House,
    engine: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    missed = engine.java_missed({"PATH": str(house.archive)})
    assert missed.endswith("in PATH: apt-get install default-jre-headless")
    missed = engine.java_missed({"JAVA_HOME": "/nowhere", "PATH": os.environ["PATH"]})
    assert "JAVA_HOME, which is /nowhere: apt-get install" in missed
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert replay(["-c", str(house.path), "--engine", "spark"]) == 2
    assert "--engine spark: expected Java 17" in capsys.readouterr().err


def test_without_the_extra_the_remedy_is_named(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "aggregator.replay.spark_engine", raising=False)
    for name in ("pyspark", "pyspark.errors"):
        monkeypatch.setitem(sys.modules, name, None)
    assert replay(["-c", str(house.path), "--engine", "spark"]) == 2
    told = pip_install("edge-ldp-aggregator[spark]")
    assert f"expected PySpark: {told}\n" in capsys.readouterr().err
