"""Every sentence of docs/privacy.md and docs/security.md is held by a test, or said not to be.

Behind each stands its id, in a comment; tests/promises.toml has by it the tests, or why there are
none. A sentence may be said anew without a word of either.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.config.sections import SendingTable, WindowTable
from agent.link.uplink import DRAIN_AT_ONCE
from aggregator.config.sections import QueryTable
from edge_ldp.protocol.ledger import scheduled
from edge_ldp.protocol.plan import MAX_PLAN_BYTES, MAX_WEIGHTS, last_epoch
from edge_ldp.protocol.plan_bounds import PlanBounds
from tests.test_fault_rows import names_of_tests

ROOT = Path(__file__).parents[1]
PROMISES: dict[str, dict[str, str | list[str]]] = tomllib.loads(
    (ROOT / "tests" / "promises.toml").read_text()
)
PHRASES = ("take-two", "so", "test-holds", "page-about")
_ID = re.compile(r"<!--([a-z0-9-]+)-->")
_END = re.compile(r"(?<=[.!?])[*)]*\s+(?=[A-Z*`\[(])")  # of a sentence
_BEFORE = re.compile(r"^[*)]*\s+")  # what ends the sentence before
_ITEM = re.compile(r"^ {0,3}(?:[-*] |\d+\. )")


def paragraphs(page: str) -> Iterator[str]:
    """Yield paragraphs, items and table rows, each as one line; no headings, code or pictures."""
    text = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^\|.*\|\n\|(?: ?-+ ?\|)+$", "", text, flags=re.MULTILINE)  # heads of tables
    for block in re.split(r"\n\s*\n", text):
        held: list[str] = []
        for line in block.splitlines():
            if line.startswith(("#", "![")) or (not held and line.startswith("    ")):
                continue
            if held and (line.startswith("|") or _ITEM.match(line)):
                yield " ".join(held)
                held = []
            held.append(_ITEM.sub("", line).strip())
        if held:
            yield " ".join(held)


def claims(page: str) -> list[tuple[str, str]]:
    """Return each sentence and row of a table with the id behind it, "" where there is none."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    found = []
    for paragraph in paragraphs(text):
        *marked, rest = _ID.split(paragraph)
        for said, name in zip(marked[::2], marked[1::2], strict=True):
            *bare, last = [said] if paragraph.startswith("|") else _END.split(_BEFORE.sub("", said))
            found += [*((one, "") for one in bare), (last, name)]
        found += [(rest, "")] if rest.strip(" |*)") else []
    return found


@pytest.mark.parametrize("page", PROMISES)
def test_every_sentence_has_an_id_and_is_held_by_a_test_or_said_not_to_be(page: str) -> None:
    found = claims(page)
    assert [said for said, name in found if not name] == []
    assert sorted(name for _, name in found) == sorted(PROMISES[page])


def test_a_sentence_without_an_id_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "x.md").write_text("One.<!--a--> Two. Three.<!--b-->\n\n- Four\n")
    monkeypatch.setattr("tests.test_promises.ROOT", tmp_path)
    assert claims("x") == [("One.", "a"), ("Two.", ""), ("Three.", "b"), ("Four", "")]


@pytest.mark.parametrize("page", PROMISES)
def test_every_test_that_holds_a_sentence_exists(page: str) -> None:
    existing, text = names_of_tests(), {name: said for said, name in claims(page)}
    for name, held in PROMISES[page].items():
        if isinstance(held, list):
            assert held, name
            assert set(held) <= existing, name
        elif held == "words":  # a title, a pointer or half a definition
            one = text[name]
            assert one.startswith("**") or "](" in one or name in PHRASES, one
        else:
            assert held in ("assumption", "measured"), name


def test_the_figures_of_the_pages_are_the_programs() -> None:
    shape, window, sending = PlanBounds(), WindowTable(), SendingTable()
    period = scheduled(window.reports, window.slots, 1, 900).period
    cells = [
        f"{window.reports} in any {window.slots} quarter hours",
        f"{window.reports} of {period}",
        "1",
        str(window.reports),
        f"about {96 * window.reports / period:.1f}, at most {window.reports}",
    ]
    days = f"{shape.days}, {shape.reports}, {shape.range_days}"
    wanted = {
        "privacy": [
            f"| shipped default: {' | '.join(cells)} |",
            "| every slot (what the demo uses) | 96 of 96 | 1 | — | 96 |",
            f"| `theta_halvings` | {shape.theta_halvings} | θ − low is at least a sixteenth",
            f"| `sharpness` | {shape.sharpness} | a sum's report has at most three times",
            f"survey_buckets` | {shape.survey_halvings}, {shape.survey_buckets:,} |",
            f"| `survey_share` | {shape.survey_share} |",
            f"| `days`, `reports`, `range_days` | {days} |",
            f"`[query] min_devices` ({QueryTable().min_devices})",
        ],
        "security": [
            f"Messages above {MAX_PLAN_BYTES >> 10} KiB and tables above {MAX_WEIGHTS:,} weights",
            f"the hours since 1970 (and {last_epoch(0):,})",
            f"`max_age_days` ({sending.max_age_days}) and `max_kib` ({sending.max_kib:,},",
            f"{DRAIN_AT_ONCE} batches go at once",
        ],
    }
    for page, figures in wanted.items():
        text = " ".join(_ID.sub("", (ROOT / "docs" / f"{page}.md").read_text()).split())
        assert [one for one in figures if one not in text] == []
