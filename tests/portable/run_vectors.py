"""Check golden vectors on whatever runs this: MicroPython, or CPython for comparison.

Usage: run_vectors.py FILE...; prints one line per file and exits with 1 at the first difference.
Written in the subset of `edge_ldp/device`, which is all that it imports.
"""

import json
import sys

from edge_ldp.device import frame
from edge_ldp.device.channel import wave
from edge_ldp.device.draw import Draw
from edge_ldp.device.errors import EdgeLdpError, WireError
from edge_ldp.device.randomizer import BUCKETS, LATTICE, randomizer, reporter
from edge_ldp.device.table import profile
from edge_ldp.device.table import table as explicit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from edge_ldp.device.randomizer import Randomizer


class DifferentError(Exception):
    """This platform does not give what the vectors say."""


class Replay:
    """An entropy source that replays the bytes of a vector."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def __call__(self, size: int) -> bytes:
        """Return the next bytes."""
        start, self.at = self.at, self.at + 2 * size
        return bytes.fromhex(self.text[start : self.at])


def from_table(table: "dict[str, Any]") -> "Randomizer":
    """Return the randomizer of a plan's table."""
    encoder = BUCKETS if table["mechanism"] == "square-wave" else LATTICE
    low, high = table["low"], table["high"]
    if "waves" in table:
        waves = tuple(wave(*row) for row in table["waves"])
        return randomizer(low, high, encoder, tuple(table["coin"]), waves)
    if "profile" in table:
        shape = table["profile"]
        channel = profile(shape["d"], shape["weights"], shape["r_den"])
        return randomizer(low, high, BUCKETS, (1, 1), (channel,))
    return randomizer(low, high, LATTICE, (1, 1), (explicit(table["table"]["weights"]),))


def check(name: str, found: object, wanted: object) -> None:
    """Raise DifferentError unless the two are equal."""
    if found != wanted:
        raise DifferentError(f"{name}: found {found}, wanted {wanted}")


def check_reports(table: "dict[str, Any]") -> int:
    """Check every case of a report file; return how many codes that were."""
    if "share" in table:
        both = reporter(
            from_table(table["stream"]), from_table(table["survey"]), tuple(table["share"])
        )
        perturb = both.report
    else:
        perturb = from_table(table["mechanism"]).perturb
    count = 0
    for case in table["cases"]:
        source = Replay(case["entropy"])
        draw = Draw(source, 1)
        check(case["name"], [perturb(value, draw) for value in case["values"]], case["codes"])
        check(case["name"] + ", bytes used", source.at, len(case["entropy"]))
        count += len(case["values"])
    return count


def check_frames(table: "dict[str, Any]") -> int:
    """Check every frame of a frame file; return how many there were."""
    for row in table["frames"]:
        payload = bytes.fromhex(row["hex"])
        if "reason" in row:
            try:
                frame.decode(payload)
            except WireError as refused:
                check(row["name"], [refused.reason, refused.offset], [row["reason"], row["offset"]])
                check(row["name"], isinstance(refused, EdgeLdpError), wanted=True)
            else:
                raise DifferentError(f"{row['name']}: accepted")
            continue
        head = [row["stream"], row["batch"], row["epoch"]]
        made = frame.encode(head[0], head[1], head[2], row["slots"], row["codes"])
        check(row["name"], made, payload)
        found = frame.decode(payload)
        check(row["name"], [found.stream, found.batch, found.epoch], head)
        check(row["name"], list(found.slots), row["slots"])
        check(row["name"], list(found.codes), row["codes"])
    return len(table["frames"])


def main(paths: "list[str]") -> int:
    """Check every file; return 0 if all agree."""
    for path in paths:
        with open(path) as file:  # noqa: PTH123 (MicroPython has no pathlib)
            table = json.load(file)
        check("version", table["version"], 1)
        checks = check_frames if table["format"] == "frame" else check_reports
        print(f"{checks(table)} agree in {path}")  # noqa: T201 (the result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
