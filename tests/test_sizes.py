"""The numbers of the house's rules: how long a file, how full a folder, how many words to read."""

from collections import Counter, defaultdict
from pathlib import Path

from tests.test_architecture import FILES, ROOT, file_of, imported_by

MAX_LINES = 400  # of a file
MAX_FILES = 20  # in a folder
MAX_WORDS = 35_000  # of README.md and docs
CRUMB_LINES = 50  # below that, a file with one importer joins it

STANDING = {  # crumbs that stay, and why (docs/adr/0025-rooms.md)
    "agent/claims/joining.py": "pure; its importer moves bytes",
    "agent/link/plan_queue.py": "its importer has 400 lines",
    "agent/running/memory.py": "ctypes; main only wires",
    "aggregator/commands/dossier.py": "started by its name, as every command",
    "aggregator/enrolment/invitations.py": "pure; its importer writes files",
    "edge_ldp/evaluate/tops/study.py": "each study has one",
    "edge_ldp/mechanisms/parse.py": "its importer is an __init__, which holds no code",
    "edge_ldp/oracles/parse.py": "its importer is an __init__, which holds no code",
    "edge_ldp/protocol/public_key.py": "curve arithmetic, for itself",
    "firmware_stubs/main.py": "started by its name, as every command",
    "firmware_stubs/meters/lines.py": "each protocol has a file",
    "firmware_stubs/meters/readout.py": "each protocol has a file",
}


def place_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def lines_of(path: Path) -> int:
    return path.read_text().count("\n")


def test_no_file_is_longer_than_one_idea_needs() -> None:
    assert [place_of(path) for path in FILES if lines_of(path) > MAX_LINES] == []


def test_no_folder_is_fuller_than_one_look_takes_in() -> None:
    full = Counter(place_of(path.parent) for path in FILES)
    assert [folder for folder, files in full.items() if files > MAX_FILES] == []


def test_the_documents_can_be_read() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md")]
    assert sum(len(page.read_text().split()) for page in pages) <= MAX_WORDS


def test_a_crumb_that_one_file_imports_stands_alone_only_for_a_reason() -> None:
    importers = defaultdict(set)
    for path in FILES:
        for name in imported_by(path):
            importers[file_of(name)].add(path)
    crumbs = {
        place_of(path)
        for path in FILES
        if path.name != "__init__.py" and lines_of(path) < CRUMB_LINES
        if len(importers[place_of(path)] - {path}) <= 1
    }
    assert crumbs == set(STANDING)
