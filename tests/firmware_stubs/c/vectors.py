"""From golden vectors and plan tables to scripts for the C runner."""

from collections.abc import Iterable, Sequence
from typing import Any

from tests.firmware_stubs.c.builds import Script

BUCKETS, LATTICE = 0, 1
Table = dict[str, Any]


def joined(numbers: Iterable[object]) -> str:
    return " ".join(map(str, numbers))


def add_channels(script: Script, table: Table, first: int) -> int:
    """Add the channels of a plan's table, in places from `first` on; return how many."""
    if "profile" in table:
        shape = table["profile"]
        weights = shape["weights"]
        head = joined((first, shape["d"], shape["r_den"], len(weights)))
        script.add(f"profile {head} {joined(weights)}", "ok")
        return 1
    if "table" in table:
        rows = table["table"]["weights"]
        numbers = " ".join(map(joined, rows))
        script.add(f"table {first} {len(rows)} {len(rows[0])} {numbers}", "ok")
        return 1
    for at, wave in enumerate(table["waves"]):
        script.add(f"wave {first + at} {joined(wave)}", "ok")
    return len(table["waves"])


def add_randomizer(script: Script, table: Table, place: int) -> None:
    """Add the randomizer of a plan's table in a place; its channels lie in 2·place and after."""
    count = add_channels(script, table, 2 * place)
    encoder = BUCKETS if table["mechanism"] in ("square-wave", "general-wave") else LATTICE
    coin = table.get("coin", (1, 1))
    numbers = (place, table["low"], table["high"], encoder, *coin, 2 * place, count)
    script.add(f"randomizer {joined(numbers)}", "ok")


def report_script(table: Table) -> Script:
    script = Script()
    command = "perturb 0"
    if "share" in table:
        add_randomizer(script, table["stream"], 0)
        add_randomizer(script, table["survey"], 1)
        script.add(f"reporter 0 1 {joined(table['share'])}", "ok")
        command = "report"
    else:
        add_randomizer(script, table["mechanism"], 0)
    for case in table["cases"]:
        script.entropy(bytes.fromhex(case["entropy"]))
        for value, code in zip(case["values"], case["codes"], strict=True):
            script.add(f"{command} {value}", code)
        script.add("left", 0)
    return script


def add_oracle(script: Script, table: Table, place: int = 0) -> str:
    """Add an oracle of a plan's table; return the command that reports with it."""
    kind = table["mechanism"]
    size = table["size"]
    if kind == "oue":
        script.add(f"oue {size} {joined(table['ratio'])}", "ok")
        return f"bits {-(-size // 8)}"
    if kind == "hh":
        levels = table["levels"]
        for level, inner in enumerate(levels):
            add_oracle(script, inner, level)
        script.add(f"hh {size} {table['fanout']} 0 {len(levels)}", "ok")
        return "tree"
    ((d, c, *ratio),) = table["waves"]
    wanted = {"grr": size, "olh": d}.get(kind, 2)
    assert (d, c) == (wanted, 0)
    shape = (place, size, d, *ratio) if kind == "olh" else (place, size, *ratio)
    script.add(f"{kind} {joined(shape)}", "ok")
    return f"oracle {place}"


def printed_report(table: Table, report: Sequence[int]) -> str:
    """Return a report as the runner prints it: numbers, or OUE's bits as bytes."""
    if table["mechanism"] != "oue":
        return joined(report)
    return bytes(report).hex()


def oracle_script(table: Table) -> Script:
    script = Script()
    command = add_oracle(script, table["oracle"])
    for case in table["cases"]:
        script.entropy(bytes.fromhex(case["entropy"]))
        for value, report in zip(case["values"], case["reports"], strict=True):
            script.add(f"{command} {value}", printed_report(table["oracle"], report))
        script.add("left", 0)
    return script


def frame_script(table: Table) -> Script:
    script = Script()
    for row in table["frames"]:
        if "reason" in row:
            script.add(f"decode {row['hex'] or '-'}", f"{row['reason']} {row['offset']}")
            continue
        series, tag = row.get("series", 0), row.get("tag", 0)
        head = (row["stream"], series, row["batch"], row["epoch"], tag)
        pairs = [n for pair in zip(row["slots"], row["codes"], strict=True) for n in pair]
        size = len(row["hex"]) // 2
        count = len(row["slots"])
        script.add(f"encode {joined((*head, size, count, *pairs))}", row["hex"])
        script.add(f"decode {row['hex']}", joined((*head, count, *pairs)))
    return script


def layout_of(row: Table) -> str:
    return joined(row[key] for key in ("slot_seconds", "days", "cells", "block", "offset_s"))


def sums_script(table: Table) -> Script:
    """Return the script of a file of period sums: what is written is what was recorded."""
    script = Script()
    for row in table["releases"]:
        layout, count = layout_of(row), row["cells"]
        script.entropy(bytes.fromhex(row["entropy"]))
        command = f"release {layout} {row['scale']} {count} {joined(row['sums'])}"
        script.add(command, joined(row["y"]))
        script.add("left", 0)
        script.entropy(bytes.fromhex(row["entropy"])[:-1])
        script.add(command, "entropy")
        head = joined(row[key] for key in ("stream", "series", "batch", "period"))
        law = joined(row[key] for key in ("low", "span", "scale"))
        texts = f"{row['unit'].encode().hex()} {row['label'].encode().hex()}"
        pairs = joined(number for pair in zip(row["n"], row["y"], strict=True) for number in pair)
        size = len(row["hex"]) // 2
        for capacity, printed in ((size, row["hex"]), (size - 1, "storage")):
            script.add(f"sums {head} {layout} {law} {texts} {capacity} {count} {pairs}", printed)
    return script


SCRIPTS = {
    "report": report_script,
    "oracle": oracle_script,
    "frame": frame_script,
    "sums": sums_script,
}
