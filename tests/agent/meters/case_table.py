"""The meters that parsers are tried with, as data: `cases/PROTOCOL/cases.csv` and the bytes.

`right` is what the last telegram of the bytes gives: its readings, all of them, and as far as they
are named its identity, time and what is withheld; or why the bytes give none, and of which line;
of `foreign` what they are called.
`tried`: with a `capture` of that meter, with what its owner `report`ed, or by its `register map`
alone; `made` is a form that no model is named for. A file of `collection/` is not in the repository
and is skipped where that is not beside it. `python -m tests.agent.meters.case_table` prints the
table of docs/meters.md.
"""

import csv
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from agent.config import parse_meter
from agent.meters.reading import Asker, Discarded, Telegram
from agent.meters.unread import Recogniser
from agent.ports.meters import make_meter
from tests.agent.meters import samples
from tests.agent.meters.samples import values

CASES = Path(__file__).parent / "cases"
MARKS = {"capture": "", "report": "†", "register map": "‡"}  # in the page's table
TRIED = tuple(MARKS)


class Case(NamedTuple):
    protocol: str
    id: str
    model: str
    tried: str
    direction: str
    source: str
    file: str
    keys: str
    right: str
    note: str

    @property
    def path(self) -> Path:
        """Return where its bytes are."""
        inside, _, rest = self.file.partition("/")
        return samples.EVERY_CAPTURE / rest if rest else CASES / self.protocol / inside

    def due(self) -> Any:
        """Return what the bytes must give."""
        return json.loads(self.right) if self.right.startswith("{") else self.right


def cases() -> Iterator[Case]:
    """Yield every row of every protocol."""
    for path in sorted(CASES.glob("*/cases.csv")):
        with path.open(newline="") as table:
            for row in csv.DictReader(table):
                yield Case(path.parent.name, **row)


def given(case: Case) -> Any:
    """Return what a new parser makes of a case's bytes, in the form of `right`."""
    if case.protocol == "foreign":
        return Recogniser().feed(case.path.read_bytes())
    keys = f'port = "x"\nprotocol = "{case.protocol}"\n{case.keys}'
    tomllib.loads(keys)
    meter = make_meter(parse_meter(keys, case.id))
    assert not isinstance(meter, Asker)
    end = b"\r\n" if case.path.suffix == ".raw" else b""  # some were saved without their last one
    events = [*meter.feed(case.path.read_bytes() + end), *meter.silence()]
    telegrams = [event for event in events if isinstance(event, Telegram)]
    if telegrams:
        return _shown(telegrams[-1], case.due())
    discarded = [event for event in events if isinstance(event, Discarded)]
    return f"{discarded[0].reason} {discarded[0].line}".strip()


def _shown(telegram: Telegram, due: Any) -> dict[str, Any]:
    shown: dict[str, Any] = dict(values(telegram))
    if telegram.withheld:
        shown["withheld"] = {one.quantity: one.why for one in telegram.withheld}
    named = {"meter_id": telegram.meter_id, "time_s": telegram.time_s}
    return shown | {key: value for key, value in named.items() if key in due}


def table() -> str:
    """Return the table of docs/meters.md: which models, how each tells direction, how tried."""
    best: dict[tuple[str, str], Case] = {}
    for case in cases():
        key = (case.protocol, case.model)
        if case.model and (key not in best or _rank(case) < _rank(best[key])):
            best[key] = case
    rows: dict[tuple[str, str], list[str]] = {}
    for (protocol, model), case in best.items():
        rows.setdefault((protocol, case.direction), []).append(model + MARKS[case.tried])
    lines = ["| protocol | meters | power's direction |", "| --- | --- | --- |"]
    lines += [
        f"| `{protocol}` | {'; '.join(sorted(models))} | {direction} |"
        for (protocol, direction), models in sorted(rows.items())
    ]
    return "\n".join(lines)


def _rank(case: Case) -> int:
    return TRIED.index(case.tried)


if __name__ == "__main__":
    sys.stdout.write(table() + "\n")
