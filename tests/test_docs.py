"""What points somewhere leads there: citations, links, anchors and paths."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.processes import run_told
from tests.tables import each

ROOT = Path(__file__).parent.parent
DOCUMENT = re.compile(r"\bdocs/[\w/-]+(?:\.[a-z]+\b)?")
TITLED = re.compile(r"(docs/[\w/-]+\.md)((?:, \"?[A-Z][\w ()'-]*)+)")
FAULTS = re.compile(r"docs/faults\.md((?:(?:,| to|\.\.) ?[A-Z]{1,3}-?\d*(?:\.\.\d+)?\b)+)")
DECISION = re.compile(r"\bADRs? (\d+)")
PAPER = re.compile(r"\[(SW|ToPS)\]")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SOURCE = re.compile(
    r"`((?:agent|aggregator|edge_ldp|firmware_stubs|studies|benchmarks|tests|tools|config|packaging)"
    r"/[\w./*-]*)`"
)
ELSEWHERE = re.compile(
    r"\b(?:DESIGN|METHODS|FAULTS|REFERENCE|STYLE|HOUSE|SUMS|TRIED)(?:\.md)?"
    r"(?: §| group | [A-Z]{3}-\d)|\.\./shared|/work/"
)


def tracked(*patterns: str) -> list[Path]:
    """Return the files of the repository, and those that are about to be, that match."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = run_told(listed, check=True, cwd=ROOT).stdout
    paths = {ROOT / name for name in names.splitlines()} - {Path(__file__)}
    return sorted(path for path in paths if path.is_file())


SOURCES = tracked("*.py", "*.c", "*.h", "*.toml", "*.sh", "Makefile", "config/*.conf", "config/acl")
DOCUMENTS = tracked("*.md")


def in_one_line(text: str) -> str:
    """Return a text without the breaks that a column of 100 put into its sentences."""
    return re.sub(r"\s*\n\s*(?:(?:#|\*|//)\s+)?", " ", text)


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


@cache
def headings(path: Path) -> tuple[str, ...]:
    found = re.findall(r"^#+ (.+?) *$", without_code(path.read_text()), re.MULTILINE)
    return tuple(re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", title) for title in found)


def anchor(heading: str) -> str:
    """Return what GitHub calls a heading in addresses."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def dead_citations(path: Path, text: str) -> Iterator[str]:
    """Yield documents, their sections and faults that a source cites and nobody can look up."""
    del path
    text = in_one_line(text)
    for name in DOCUMENT.findall(text):
        if not (ROOT / name).exists():
            yield name
    for name, titles in TITLED.findall(text):
        if name != "docs/faults.md" and (ROOT / name).exists():
            for title in re.findall(r", \"?([^,]+)", titles):
                if not title.startswith(headings(ROOT / name)):
                    yield f"{name}, {title}"
    faults = (ROOT / "docs" / "faults.md").read_text()
    for rows in FAULTS.findall(text):
        for row in re.findall(r"[A-Z]+(?:-?\d+)?", rows):
            if not re.search(rf"^(?:\| {row} \||- {row}: |## {row}\b)", faults, re.MULTILINE):
                yield f"docs/faults.md, {row}"
    methods = (ROOT / "docs" / "methods.md").read_text()
    yield from (f"[{key}]" for key in PAPER.findall(text) if f"**[{key}]**" not in methods)


def dead_links(path: Path, text: str) -> Iterator[str]:
    """Yield the relative links, anchors and sources in a document that lead nowhere."""
    for target in LINK.findall(without_code(text)):
        name, _, place = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if re.match(r"[a-z]+:", target):
            continue
        if not file.exists() or (place and place not in map(anchor, headings(file))):
            yield target
    for name in SOURCE.findall(text):
        if not any(ROOT.glob(name.rstrip("/"))):
            yield name


def strays(path: Path, text: str) -> Iterator[str]:
    """Yield what points out of the repository."""
    del path
    yield from ELSEWHERE.findall(text)


def dead_decisions(path: Path, text: str) -> Iterator[str]:
    """Yield the decisions that are cited by their number and were never written down."""
    del path
    for number in DECISION.findall(in_one_line(text)):
        if not any(ROOT.glob(f"docs/adr/{int(number):04d}-*.md")):
            yield f"ADR {number}"


def of_all(paths: list[Path], dead: Callable[[Path, str], Iterator[str]]) -> list[str]:
    found = ((path, one) for path in paths for one in dead(path, path.read_text()))
    return [f"{path.relative_to(ROOT)}: {one}" for path, one in found]


def test_what_sources_cite_is_there() -> None:
    assert of_all(SOURCES, dead_citations) == []


def test_the_links_anchors_and_paths_of_documents_are_there() -> None:
    assert of_all(DOCUMENTS, dead_links) == []


def test_every_decision_that_is_cited_was_written_down() -> None:
    assert of_all(SOURCES + DOCUMENTS, dead_decisions) == []


def test_nothing_points_out_of_the_repository() -> None:
    assert of_all(SOURCES + DOCUMENTS, strays) == []


@pytest.mark.parametrize(
    ("dead", "planted"),
    each(
        (dead_citations, "Source: docs/nowhere.md.", "Source: docs/design.md, The cellar."),
        (dead_citations, "Source: docs/design.md,\n    The cellar of the house."),
        (dead_citations, "Source: docs/design.md, The kernel, Cellar."),
        (dead_citations, 'docs/scaling.md, "The cellar"', "# docs/methods.md,\n# Alchemy"),
        (dead_citations, "docs/faults.md, SER-99.", "docs/faults.md, SER-01..03,\nSER-99"),
        (dead_citations, "docs/faults.md, XYZ", "docs/cellar, without an ending"),
        (dead_links, "[gone](nowhere.md)", "![gone](docs/nowhere.png)"),
        (dead_links, "[gone](README.md#no-such-part)", "`agent/cellar.py` and `agent/main.py`"),
        (dead_decisions, "one row a device (ADR 9, ADR\n    99)", "[ADR 99](adr/0099-cellar.md)"),
        (strays, "DESIGN" + " §4", "FAULTS" + " SER-01", ".." + "/shared/x"),
    ),
)
def test_a_planted_one_is_found(dead: Callable[[Path, str], Iterator[str]], planted: str) -> None:
    assert len(list(dead(ROOT / "README.md", planted))) == 1


def test_what_leads_somewhere_is_let_by() -> None:
    good = "docs/design.md, The\n    kernel, Messages; docs/faults.md, SER-01..03, [SW] §5, [ToPS]."
    assert list(dead_citations(ROOT, good)) == []
