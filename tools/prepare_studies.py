"""Make the bundled data of `edge-ldp evaluate`: `python tools/prepare_studies.py SOURCE_DIR`.

SOURCE_DIR is laid out as studies/data/LICENSES.txt says, which also says where the sources
come from (they are checked by digest). The result depends on them alone: a second run writes the
same bytes.
"""

import argparse
import csv
import hashlib
import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BUNDLE = Path(__file__).parents[1] / "studies" / "data"
LENGTHS = {
    "pos": (
        "papers/bms_pos_lengths.npz",
        "af44eb82a982447e27116070768d72fad29c57d84d210239c3a59ddf4273c5ec",
    ),
    "retail": (
        "papers/retail_be_lengths.npz",
        "08d56c6d23feb38b8cd072148f53f99d0f9c3c70098ff62954ca6cf3fe9b0280",
    ),
    "webview": (
        "papers/bms_webview2_lengths.npz",
        "412447d481d49babaa8081650bd943728771cff4b601e743d666f6cd88889cb6",
    ),
}
TAXI = (
    "papers/nyc_yellow_taxi_2018_2019.npz",
    "c00b0560a6068805dbce742107a79d01656d0dcf63dd02d93dc70b03ceffd9a2",
)
UCI = (
    "load/uci_household_1min_2006_2009.npz",
    "7b59815ffb97e432b6755c356fa91e3d58e018876bcce114ecc862f4f8758bb5",
)
DAY_S = 86_400
TAXI_YEARS = (datetime(2018, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC))
MAX_FARE_CENTS = 50_000  # above: typing errors, up to 429,490.20 dollars
UCI_START = datetime(2007, 1, 15, tzinfo=UTC)  # a Monday, local time
UCI_MINUTES = 131_072

Arrays = dict[str, NDArray[Any]]


def lengths(source: Path) -> list[tuple[str, int, int]]:
    """Return (set, length, how many), lengths rising."""
    rows: list[tuple[str, int, int]] = []
    for name, (file, digest) in LENGTHS.items():
        given = _checked(source / file, digest)["length"]
        found, counts = np.unique(given, return_counts=True)
        rows += [(name, int(a), int(b)) for a, b in zip(found, counts, strict=True)]
    return rows


def taxi(source: Path) -> Arrays:
    """Return pick-ups counted by second of the day, and clean fares in the order of pick-up."""
    trips = _checked(source / TAXI[0], TAXI[1])
    first_s, end_s = (int(year.timestamp()) for year in TAXI_YEARS)
    pickup_s = trips["pickup_epoch_s_local"]
    kept = (first_s <= pickup_s) & (pickup_s < end_s)
    counts = np.bincount(pickup_s[kept] % DAY_S, minlength=DAY_S)
    fares = trips["fare_cents"][np.argsort(pickup_s, kind="stable")]
    clean = kept[np.argsort(pickup_s, kind="stable")] & (fares > 0) & (fares <= MAX_FARE_CENTS)
    return {
        "pickups_per_second_of_day": counts.astype(np.uint8),
        "fare_cents": fares[clean].astype(np.uint16),
    }


def household(source: Path) -> Arrays:
    """Return minute means of active power in W, in order; missing minutes are left out."""
    archive = _checked(source / UCI[0], UCI[1])
    start = (int(UCI_START.timestamp()) - int(archive["start_epoch_s_local"])) // 60
    power_w = archive["active_w"][start:]
    return {"power_w": power_w[power_w >= 0][:UCI_MINUTES].astype(np.int16)}


def main() -> None:
    """Write the bundle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    source = parser.parse_args().source
    with (BUNDLE / "lengths.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("set", "length", "count"))
        writer.writerows(lengths(source))
    for name, arrays in (("taxi", taxi(source)), ("household", household(source))):
        path = BUNDLE / f"{name}.npz"
        path.write_bytes(_archive(arrays))
        print(f"{path}: {path.stat().st_size} bytes, sha256 {_digest(path)}")


def _checked(path: Path, digest: str) -> Arrays:
    if _digest(path) != digest:
        raise SystemExit(f"{path}: not the file this tool was written for (sha256 differs)")
    with np.load(path, allow_pickle=False) as archive:
        return dict(archive)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _archive(arrays: Arrays) -> bytes:
    """Return an .npz whose bytes depend on the arrays alone."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, array in arrays.items():
            one = io.BytesIO()
            np.lib.format.write_array(one, array, allow_pickle=False)
            info = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, one.getvalue(), compresslevel=9)
    return whole.getvalue()


if __name__ == "__main__":
    main()
