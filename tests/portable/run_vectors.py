"""Check golden vectors on whatever runs this: MicroPython, or CPython for comparison.

Usage: run_vectors.py FILE...; prints one line per file and exits with 1 at the first difference.
Written in the subset of `edge_ldp/device`, which is all that it imports: of it what the kind of
file needs, and before the file is read, since compiling takes the most memory.
"""

# ruff: noqa: PLC0415 (see above)

import gc
import json
import sys

from edge_ldp.device.draw import Draw

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


def load(path: str) -> "dict[str, Any]":
    """Return what a vector file holds."""
    gc.collect()  # what compiling left lies between: long strings need room in one piece
    with open(path) as file:  # noqa: PTH123 (MicroPython has no pathlib)
        table: dict[str, Any] = json.load(file)
    check("version", 1 <= table["version"] <= 2, wanted=True)
    return table


def format_of(path: str) -> str:
    """Return the format of a vector file, which stands at its start, without reading all of it."""
    with open(path) as file:  # noqa: PTH123 (MicroPython has no pathlib)
        return file.read(40).split('"')[3]


def check(name: str, found: object, wanted: object) -> None:
    """Raise DifferentError unless the two are equal."""
    if found != wanted:
        raise DifferentError(f"{name}: found {found}, wanted {wanted}")


def from_table(table: "dict[str, Any]") -> "Randomizer":
    """Return the randomizer of a plan's table."""
    from edge_ldp.device import channel
    from edge_ldp.device import randomizer as device
    from edge_ldp.device import table as tables

    encoder = device.BUCKETS if table["mechanism"] == "square-wave" else device.LATTICE
    low, high = table["low"], table["high"]
    if "waves" in table:
        waves = tuple(channel.wave(*row) for row in table["waves"])
        return device.randomizer(low, high, encoder, tuple(table["coin"]), waves)
    if "profile" in table:
        shape = table["profile"]
        made = tables.profile(shape["d"], shape["weights"], shape["r_den"])
        return device.randomizer(low, high, device.BUCKETS, (1, 1), (made,))
    explicit = tables.table(table["table"]["weights"])
    return device.randomizer(low, high, device.LATTICE, (1, 1), (explicit,))


def check_reports(path: str) -> int:
    """Check every case of a report file; return how many codes that were."""
    import edge_ldp.device.table  # noqa: F401 (see above)
    from edge_ldp.device.randomizer import reporter

    table = load(path)
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


def client_of(table: "dict[str, Any]") -> "Any":
    """Return the client of an oracle's plan."""
    from edge_ldp.device import oracle

    kind, size = table["mechanism"], table["size"]
    if kind == "hh":
        return oracle.hierarchy(size, table["fanout"], tuple(map(client_of, table["levels"])))
    if kind == "oue":
        return oracle.oue(size, table["ratio"][0], table["ratio"][1])
    d, _, r_num, r_den = table["waves"][0]
    if kind == "olh":
        return oracle.olh(size, d, r_num, r_den)
    makers = {"grr": oracle.grr, "hrr": oracle.hrr, "haar-hrr": oracle.haar_hrr}
    return makers[kind](size, r_num, r_den)


def check_oracles(path: str) -> int:
    """Check every case of an oracle file; return how many reports that were."""
    import edge_ldp.device.oracle  # noqa: F401 (see above)

    table = load(path)
    client = client_of(table["oracle"])
    count = 0
    for case in table["cases"]:
        source = Replay(case["entropy"])
        draw = Draw(source, 1)
        for value, report in zip(case["values"], case["reports"]):  # noqa: B905 (no strict= there)
            check(case["name"], list(client.perturb(value, draw)), report)
        check(case["name"] + ", bytes used", source.at, len(case["entropy"]))
        count += len(case["values"])
    return count


def check_frames(path: str) -> int:
    """Check every frame of a frame file; return how many there were."""
    from edge_ldp.device import frame
    from edge_ldp.device.errors import EdgeLdpError, WireError

    table = load(path)
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
        more = [row.get("series", 0), row.get("tag", 0)]
        made = frame.encode(head[0], head[1], head[2], row["slots"], row["codes"], more[0], more[1])
        check(row["name"], made, payload)
        found = frame.decode(payload)
        check(row["name"], [found.series, found.tag], more)
        check(row["name"], [found.stream, found.batch, found.epoch], head)
        check(row["name"], list(found.slots), row["slots"])
        check(row["name"], list(found.codes), row["codes"])
    return len(table["frames"])


def check_sums(path: str) -> int:
    """Check every release, or every refusal, of a file of period sums; return how many."""
    from edge_ldp.device import sums, sums_frame
    from edge_ldp.device.errors import WireError

    table = load(path)
    for row in table.get("frames", ()):
        try:
            sums_frame.decode_sums(bytes.fromhex(row["hex"]))
        except WireError as exc:
            check(row["name"], [exc.reason, exc.offset], [row["reason"], row["offset"]])
        else:
            raise DifferentError(f"{row['name']}: accepted")
    for row in table.get("releases", ()):
        source = Replay(row["entropy"])
        y = sums.release(row["sums"], row["scale"], row["block"], Draw(source, 1))
        check(row["name"], list(y), row["y"])
        check(row["name"] + ", bytes used", source.at, len(row["entropy"]))
        head = [row[key] for key in ("stream", "series", "batch", "period", "slot_seconds")]
        head += [row[key] for key in ("days", "cells", "block", "offset_s", "low", "span", "scale")]
        head += [row["unit"], row["label"], tuple(row["n"]), y]
        found = sums_frame.SumsFrame(*head)
        payload = bytes.fromhex(row["hex"])
        check(row["name"], sums_frame.encode_sums(found), payload)
        check(row["name"], sums_frame.decode_sums(payload), found)
    return len(table.get("frames", ())) + len(table.get("releases", ()))


CHECKS = {
    "report": check_reports,
    "oracle": check_oracles,
    "frame": check_frames,
    "sums": check_sums,
}


def main(paths: "list[str]") -> int:
    """Check every file; return 0 if all agree."""
    for path in paths:
        print(f"{CHECKS[format_of(path)](path)} agree in {path}")  # noqa: T201 (the result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
