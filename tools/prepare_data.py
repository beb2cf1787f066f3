"""Make the bundled load series from their sources: `python tools/prepare_data.py SOURCE_DIR`.

SOURCE_DIR holds `swiss_homes_15min.npz` and `uci_household_1min_2006_2009.npz` (checked by digest;
firmware_stubs/data/LICENSES.txt says where they come from). The result depends on them alone: the
archives carry no time of making, so a second run writes the same bytes.
"""

import argparse
import hashlib
import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

BUNDLE = Path(__file__).parents[1] / "firmware_stubs" / "data"
SWISS = (
    "swiss_homes_15min.npz",
    "aa8f9f710976b8d24d33a82a179929250956cb983c7967ba6604872ece5c42fe",
)
UCI = (
    "uci_household_1min_2006_2009.npz",
    "7b59815ffb97e432b6755c356fa91e3d58e018876bcce114ecc862f4f8758bb5",
)
# Two winters from a Monday, chosen for their few missing minutes (5 and 4 of 120,960).
UCI_STARTS = (datetime(2007, 1, 15, tzinfo=UTC), datetime(2007, 11, 26, tzinfo=UTC))
UCI_DAYS = 84
# Four weeks and a year from a Monday: no step of 5 minutes is without data (31 minutes missing).
UCI_YEAR_START = datetime(2007, 8, 6, tzinfo=UTC)
UCI_YEAR_DAYS = 28 + 365

Arrays = dict[str, NDArray[np.generic]]


def swiss_homes(source: Path) -> Arrays:
    """Return `power_w` int32 (400, 4704): mean power of each quarter hour, rounded half up."""
    with np.load(_checked(source, *SWISS), allow_pickle=False) as archive:
        energy_mwh = archive["energy_milliwh"].astype(np.int64)
    power_w = (energy_mwh * 4 * 2 + 1000) // 2000
    return {"power_w": power_w.reshape(len(power_w), -1).astype(np.int32)}


def uci_household(source: Path) -> Arrays:
    """Return mean power in W of both winters: `power_w` (2, 8064), `power_w_5min` (2, 24192)."""
    with np.load(_checked(source, *UCI), allow_pickle=False) as archive:
        active_w = archive["active_w"].astype(np.int64)
        first_s = int(archive["start_epoch_s_local"])
    starts = [int(start.timestamp()) for start in UCI_STARTS]
    rows = np.stack([active_w[(start - first_s) // 60 :][: UCI_DAYS * 1440] for start in starts])
    return {
        "power_w": _means(rows, 15),
        "power_w_5min": _means(rows, 5),
        "start_s_local": np.array(starts, np.int64),
    }


def uci_year(source: Path) -> Arrays:
    """Return `power_w_5min` int16 (113184,): the same home's mean power, 393 days without a gap."""
    with np.load(_checked(source, *UCI), allow_pickle=False) as archive:
        active_w = archive["active_w"].astype(np.int64)
        first_s = int(archive["start_epoch_s_local"])
    start_s = int(UCI_YEAR_START.timestamp())
    row = active_w[(start_s - first_s) // 60 :][: UCI_YEAR_DAYS * 1440]
    return {
        "power_w_5min": _means(row[np.newaxis], 5)[0],
        "start_s_local": np.array(start_s, np.int64),
    }


def _means(rows: NDArray[np.int64], minutes: int) -> NDArray[np.int16]:
    """Return means over the minutes that are there (-1 is missing), rounded half up."""
    parts = rows.reshape(len(rows), -1, minutes)
    present = parts >= 0
    count = present.sum(axis=2)
    if not count.all():
        raise SystemExit("a step without any minute: choose another period")
    total = np.where(present, parts, 0).sum(axis=2)
    return np.asarray((2 * total + count) // (2 * count), np.int16)


def _checked(folder: Path, name: str, sha256: str) -> Path:
    path = folder / name
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        raise SystemExit(f"{path}: not the file that the bundled data was made from")
    return path


def save(path: Path, arrays: Arrays) -> None:
    """Write an .npz whose bytes depend on the arrays only: no time, no name of this machine."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            packed = io.BytesIO()
            np.lib.format.write_array(packed, array, version=(1, 0), allow_pickle=False)
            entry = zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            archive.writestr(entry, packed.getvalue(), compresslevel=9)


def main() -> None:
    """Write the archives and print their sizes and digests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="folder with the two source files")
    parser.add_argument("--out", type=Path, default=BUNDLE, help="where to write (the package)")
    args = parser.parse_args()
    makers = (
        ("swiss_homes", swiss_homes),
        ("uci_household", uci_household),
        ("uci_year", uci_year),
    )
    for name, make in makers:
        path = args.out / f"{name}.npz"
        save(path, make(args.source))
        content = path.read_bytes()
        print(f"{path.name} {len(content)} bytes sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
