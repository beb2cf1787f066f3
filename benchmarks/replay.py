"""Seconds and memory of a replay: spool into files, counting by each engine, comparing.

`python -m benchmarks.replay [--devices 2000] [--rounds 100] [--reports 50] [--shards 4]
[--engines duckdb]` makes an archive of so many reports (1 % of frames twice, 2 % late, 2 % of
devices lying), brings it into files with `edge-ldp replay --compact`, and counts it with each
engine. One JSON object a line; `rss_mb` is the peak of the Python process; Spark's Java is apart
(1 GB of heap at most).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

REPLAY = ("edge_ldp.cli", "replay")
CONFIG = """
fleet = "demo"
[broker]
host = "127.0.0.1"
[store]
path = "{place}/a.db"
[archive]
path = "{place}/archive"
shards = {shards}
[[streams]]
name = "power"
id = 1
unit = "W"
ceiling = 4095
epsilon = 4
size = 64
survey_size = 64
horizon = 1000000
"""


def run(place: Path, *words: str) -> tuple[dict[str, Any], dict[str, float]]:
    """Return what a module prints with --json, and its seconds, CPU seconds and memory."""
    began, printed = time.monotonic(), place / "printed"
    with printed.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-m", *words, "--json"], stdout=out)
        _, _, usage = os.wait4(process.pid, 0)
    figures = {
        "seconds": round(time.monotonic() - began, 1),
        "cpu_s": round(usage.ru_utime + usage.ru_stime, 1),
        "rss_mb": usage.ru_maxrss >> 10,
    }
    return json.loads(printed.read_bytes()), figures


def main(argv: Sequence[str]) -> None:
    """Make the archive, and count it with each engine."""
    args = _parser().parse_args(argv)
    with TemporaryDirectory(prefix="bench-replay-", dir=args.place) as name:
        place, config = Path(name), Path(name) / "a.toml"
        config.write_text(CONFIG.format(place=place, shards=args.shards))
        spec = [f"--{one}={getattr(args, one)}" for one in ("devices", "rounds", "reports")]
        made, figures = run(place, "benchmarks.fleet_offline", "-c", str(config), *spec)
        spool = sum(path.stat().st_size for path in place.glob("archive/spool/*"))
        _tell(
            "fleet into the store, offline",
            figures,
            reports=made["counted"],
            spool_bytes=round(spool / made["counted"], 2),
        )
        done, figures = run(place, *REPLAY, "-c", str(config), "--compact")
        files = sum(path.stat().st_size for path in place.rglob("*.parquet"))
        _tell(
            "spool into files",
            figures,
            reports=done["reports"],
            parquet_bytes=round(files / made["counted"], 2),
        )
        for engine in args.engines:
            found, figures = run(place, *REPLAY, "-c", str(config), "--engine", engine)
            assert found["compared"]["equal"] == found["compared"]["cells"]
            _tell(
                engine,
                figures,
                **{f"{part}_s": spent for part, spent in found["seconds"].items()},
                reports=found["reports"],
                digest=found["digest"],
            )


def _tell(what: str, figures: dict[str, float], **more: Any) -> None:
    sys.stdout.write(json.dumps({"what": what, **figures, **more}) + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay", description=__doc__)
    add = parser.add_argument
    add("--devices", type=int, default=2000)
    add("--rounds", type=int, default=100)
    add("--reports", type=int, default=50)
    add("--shards", type=int, default=4)
    add("--engines", nargs="+", default=["duckdb", "spark"])
    add("--place", type=Path, help="an existing directory on the disk to be measured")
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
