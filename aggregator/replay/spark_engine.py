"""Counting the archive's files on Spark: several days in one query, here or on a cluster.

Spark reads the files itself, so on a cluster the archive must be under the same path on every
machine. Only SQL runs there: workers need no Python of ours. What the cluster's administrator sets
in spark-defaults.conf (SPARK_CONF_DIR) is in force, but for what is set here.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from aggregator.errors import StoreError
from aggregator.replay.duckdb_engine import excluded_table, streams_table, unreadable
from aggregator.replay.statement import COLUMNS, SPARK, Selection
from edge_ldp.arrays import Ints

SCHEMA = "device STRING, stream INT, epoch BIGINT, slot BIGINT, code INT, grp BIGINT, cls INT"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",  # counts are small; Spark's 200 are for a thousand cores
}
LOCAL = {  # a driver alone: nobody connects from outside
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
}
LOG = "spark.log"
POLL_S = 0.2
JAVA = "default-jre-headless"


class SparkEngine:
    """Counts many days in one query; progress is that of its tasks."""

    days_at_once = 32

    def __init__(self, spark: SparkSession, selection: Selection) -> None:
        self._spark = spark
        self._query = selection.text(SPARK)
        tables = {"streams": streams_table(selection), "excluded": excluded_table(selection)}
        for name, table in tables.items():
            spark.createDataFrame(table).createOrReplaceTempView(name)

    def count(self, files: Sequence[Path], progress: Callable[[float], None]) -> list[Ints]:
        """Return COLUMNS of the reports in the files; raises StoreError for a damaged one."""
        urls = [
            f"file://{path.absolute()}" for path in files
        ]  # not quoted: Hadoop does not unquote
        try:
            self._spark.read.schema(SCHEMA).parquet(*urls).createOrReplaceTempView("reports")
            with ThreadPoolExecutor(1) as pool:
                running = pool.submit(lambda: self._spark.sql(self._query).toArrow())
                try:
                    while not running.done():
                        progress(self._share())
                        time.sleep(POLL_S)
                except BaseException:
                    self._spark.sparkContext.cancelAllJobs()
                    raise
            found = running.result()
        except (PySparkException, Py4JError) as exc:
            raise unreadable(files, _cause(exc)) from exc
        return [found.column(name).to_numpy().astype(np.int64) for name in COLUMNS]

    def _share(self) -> float:
        """Return which part of the running stage's tasks is done; 0.0 between stages."""
        tracker = self._spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
        done = sum(one.numCompletedTasks for one in stages if one)
        return float(done / max(1, sum(one.numTasks for one in stages if one)))


@contextmanager
def open_spark(selection: Selection, master: str, work: Path) -> Iterator[SparkEngine]:
    """Give the engine on a master (local[*], spark://host:7077, …); its log goes into `work`.

    Raises StoreError when Spark does not start.
    """
    log = work / LOG
    local = master.split("[", maxsplit=1)[0] == "local"
    settings = SETTINGS | {"spark.sql.warehouse.dir": str(work)} | (LOCAL if local else {})
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder: Any = SparkSession.builder.master(master).appName("edge-ldp replay")
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with _stderr_into(log):
            spark: SparkSession = builder.getOrCreate()
    except (PySparkException, Py4JError, OSError) as exc:
        reason = f"does not start ({_cause(exc)})"
        raise StoreError(f"Spark at {master}", reason, f"{log} says why") from exc
    try:
        yield SparkEngine(spark, selection)
    finally:
        spark.stop()


def java_missed(environ: Mapping[str, str]) -> str | None:
    """Return what is expected where there is no Java to start, else None."""
    home = environ.get("JAVA_HOME")
    path = str(Path(home) / "bin") if home else environ.get("PATH", "")
    if shutil.which("java", path=path) is not None:
        return None
    where = f"JAVA_HOME, which is {home}" if home else "PATH"
    return f"expected Java 17 or later in {where}: apt-get install {JAVA}"


@contextmanager
def _stderr_into(log: Path) -> Iterator[None]:
    """Let processes that are started here write their errors into a file: Java has much to say."""
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _cause(exc: Exception) -> Exception:
    """Return what is short enough to be told: the first line of a Java error."""
    if isinstance(exc, Py4JJavaError):
        return RuntimeError(str(exc.java_exception).partition("\n")[0])
    return RuntimeError(str(exc).partition("\n")[0])
