"""Small files that stand alone have a reason. How long and how full: tools/sizes.py, a warning."""

from collections import defaultdict
from pathlib import Path

from tests.test_architecture import FILES, ROOT, SHIPPED, file_of, imported_by

CRUMB_LINES = 50  # below that, a file with one importer joins it

STANDING = {  # crumbs that stay, and why (docs/adr/0025-rooms.md)
    "agent/claims/joining.py": "pure; its importer moves bytes",
    "agent/meters/modbus/models.py": "it reads files; its importers are pure",
    "agent/ports/seven_bits.py": "pure; its importer moves bytes",
    "aggregator/commands/dossier.py": "started by its name, as every command",
    "aggregator/running/certificates.py": "it asks a listener; the service only tells",
    "edge_ldp/mechanisms/parse.py": "its importer is an __init__, which holds no code",
    "edge_ldp/oracles/parse.py": "its importer is an __init__, which holds no code",
    "edge_ldp/protocol/public_key.py": "curve arithmetic, for itself",
    "firmware_stubs/main.py": "started by its name, as every command",
    "firmware_stubs/meters/lines.py": "each protocol has a file",
}


def place_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def lines_of(path: Path) -> int:
    return path.read_text().count("\n")


def test_a_crumb_that_one_file_imports_stands_alone_only_for_a_reason() -> None:
    importers = defaultdict(set)
    for path in FILES:
        for name in imported_by(path):
            importers[file_of(name)].add(path)
    crumbs = {
        place_of(path)
        for path in SHIPPED
        if path.name != "__init__.py" and lines_of(path) < CRUMB_LINES
        if len(importers[place_of(path)] - {path}) <= 1
    }
    assert crumbs == set(STANDING)
