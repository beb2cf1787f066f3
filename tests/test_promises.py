"""Every sentence of docs/privacy.md and docs/security.md is held by a test, or said not to be.

tests/promises.toml has each sentence's opening, and its tests or why there is none.
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
PHRASES = (
    "Take any two histories of your readings,",
    "So",
    "No test holds these.",
    "This page is about the rest: who",
)
_END = re.compile(r"(?<=[.!?])[*)]*\s+(?=[A-Z*`\[(])")  # of a sentence
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


def sentences(page: str) -> list[str]:
    """Return every sentence and every row of a table."""
    text = (ROOT / "docs" / f"{page}.md").read_text()
    return [
        one
        for paragraph in paragraphs(text)
        for one in ([paragraph] if paragraph.startswith("|") else _END.split(paragraph))
        if one
    ]


def opens(start: str, sentence: str) -> bool:
    """Say whether a sentence begins so; with a word or two: whether it is just that."""
    return sentence.startswith(start) and (len(start.split()) > 2 or sentence == start)


@pytest.mark.parametrize("page", PROMISES)
def test_every_sentence_is_held_by_a_test_or_said_not_to_be(page: str) -> None:
    openings = PROMISES[page]
    bare = [one for one in sentences(page) if not any(opens(start, one) for start in openings)]
    assert bare == []


@pytest.mark.parametrize("page", PROMISES)
def test_every_opening_is_that_of_a_sentence(page: str) -> None:
    there = sentences(page)
    gone = [start for start in PROMISES[page] if not any(opens(start, one) for one in there)]
    assert gone == []


@pytest.mark.parametrize("page", PROMISES)
def test_every_test_that_holds_a_sentence_exists(page: str) -> None:
    existing = names_of_tests()
    for start, held in PROMISES[page].items():
        if isinstance(held, list):
            assert held, start
            assert set(held) <= existing, start
        else:
            assert held in ("assumption", "measured", "words"), start


@pytest.mark.parametrize("page", PROMISES)
def test_what_no_test_holds_is_a_title_a_pointer_or_half_a_definition(page: str) -> None:
    for start, held in PROMISES[page].items():
        if held == "words":
            (one,) = {one for one in sentences(page) if opens(start, one)}
            assert one.startswith("**") or "](" in one or start in PHRASES, one


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
            f"| `sharpness` | {shape.sharpness} | a sum's report has at most nine times",
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
        text = " ".join((ROOT / "docs" / f"{page}.md").read_text().split())
        assert [one for one in figures if one not in text] == []
