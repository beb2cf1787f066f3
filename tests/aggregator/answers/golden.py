"""A fixed store with something of everything, and what every command prints of it as JSON.

`python -m tests.aggregator.answers.golden` writes the files in v1 anew. A key that is
added shows there; one that goes, or changes its meaning, breaks whoever reads it.
"""

import json
import re
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from aggregator.store.opening import open_store
from aggregator.store.rows import BeatRow, BeatTimes
from edge_ldp.service.mqtt import Message
from edge_ldp.version import __version__
from tests.aggregator.console.small_fleet import (
    DAY_S,
    END_S,
    Fleet,
    add_curated,
    add_looks,
    add_plans,
    add_reports,
    add_sums,
    frame,
    make_fleet,
    send,
    status,
)

WHERE = Path(__file__).parent / "v1"
SINCE = str(END_S - DAY_S // 4)
BEFORE = (  # changes, whose log `audit` shows and whose answers are golden, too
    "devices enrol home-9 --group west",
    "devices revoke north-0001",
    "devices quarantine north-0002",
    "devices group north-0003 --to west",
    "plan hold",
)
ASKED = (
    "check",
    "status",
    "status --summary",
    "status --exact",
    "completeness",
    "completeness --exact --incomplete",
    "completeness --device north-0004",
    f"query --since {SINCE} --quantile 0.5 --range 0:500 --by hour-of-day",
    "query --no-density --by day --zone Europe/Berlin --group north",
    "query --no-density --group tiny",
    "query --stream power1",
    "query --no-density --mode sums --group north",
    "query --no-density --mode sums --group tiny",
    "load-curve --mode sums",
    f"load-curve --since {SINCE}",
    "load-curve --by day --zone Europe/Berlin --group tiny",
    "load-curve --by week",
    f"load-curve --since {END_S + 10**6}",
    "released",
    f"released --by hour --since {SINCE} --device home-c1",
    "theta",
    "theta --stream power1",
    "announced",
    "audit",
    "plan show",
    "plan show --stream power1",
    "plan propose",
    "devices list",
    "devices list --only held --page 1 --per-page 1 --sort silent",
    "devices show --device north-0002",
    "devices groups",
)
AFTER = (
    "plan release",
    "plan publish --share 1/8 --hold",
    "plan repair --above 9",
    "devices reinstate north-0001",
    "devices release north-0002",
    "streams retire power1",
    "streams list",
    "streams reinstate power1",
)


def golden_fleet(place: Path) -> Fleet:
    """Return the fleet: two feeders, curated streams, marks, refusals, trouble, a beat."""
    made = make_fleet(place, units="W kWh")
    text = made.file.read_text()
    made.file.write_text(f"{text}\n[announce]\ninterval_s = 900\n")
    plan = add_plans(made, 2)
    add_reports(made, plan, {"north": 14, "south": 11, "tiny": 4}, 2)
    add_looks(made, (900.0, 600.0))
    add_curated(made, plan, ("home-c1", "home-c2"), 48)
    add_sums(made, plan, [f"north-{at:04d}" for at in range(12)], 2)
    told = [
        status("home-4", health="meter lost", ages={"receipt_s": 7300, "telegram_s": 90}),
        status("home-5", refusals=("ratio", "theta")),
        status("home-6", expired=40),
    ]
    one_code = frame(plan, "home-7", [0] * 90)
    noise = Message(one_code.topic, b"\xff" * 20)
    send(made, plan, told, [one_code], [noise] * 3, [one_code])
    times = BeatTimes(report_s=END_S - 900, link_s=END_S - 7200)
    with closing(open_store(made.config, "test")) as store:
        store.beat(BeatRow("one", END_S, "ok", times))
    return made


def printed(fleet: Fleet, *asked: str) -> dict[str, tuple[int, str]]:
    """Return exit code and JSON of each command, the same in every place."""
    said = fleet.ask(*(fleet.aggregator(*words.split()) for words in asked))
    return {
        words: (code, alike(fleet, text)) for words, (code, text) in zip(asked, said, strict=True)
    }


def alike(fleet: Fleet, text: str) -> str:
    """Return a text without names of this place, this user and this version."""
    text = text.replace(str(fleet.file.parent), "PLACE")
    text = re.sub(r'"who": "[^"]*"', '"who": "WHO"', text)
    return text.replace(f'"version": "{__version__}"', '"version": "VERSION"')


def every_answer(place: Path) -> dict[str, tuple[int, str]]:
    fleet = golden_fleet(place)
    found: dict[str, tuple[int, str]] = {}
    for asked in (BEFORE, ASKED, AFTER):
        found |= printed(fleet, *asked)
    code, text = fleet.ask(["dossier", "-c", str(fleet.file), "--json"])[0]
    return {**found, "dossier": (code, alike(fleet, text))}


def file_of(words: str) -> str:
    return f"{re.sub(r'[^a-z0-9]+', '-', words.replace(SINCE, 'since').lower())}.json"


def text_of(words: str, code: int, answer: Any) -> str:
    """Return a golden file: a key of the answer a line."""
    keys = ",\n".join(f"  {json.dumps(key)}: {json.dumps(answer[key])}" for key in answer)
    asked = json.dumps(f"edge-ldp aggregator {words}".replace("aggregator dossier", "dossier"))
    return f'{{"asked": {asked}, "exit": {code}, "answer": {{\n{keys}\n}}}}\n'


def main() -> None:
    """Write all of them."""
    with tempfile.TemporaryDirectory() as place:
        found = every_answer(Path(place))
    WHERE.mkdir(parents=True, exist_ok=True)
    for words, (code, text) in found.items():
        (WHERE / file_of(words)).write_text(text_of(words, code, json.loads(text)))


if __name__ == "__main__":
    main()
