"""Read the golden vectors of tests/vectors, which never change."""

import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent.parent / "vectors"


def tables(form: str) -> dict[str, dict[str, Any]]:
    """Return the vector files of one format by name."""
    found = {path.stem: json.loads(path.read_text()) for path in VECTORS.glob(f"{form}/v1/*.json")}
    assert found
    return dict(sorted(found.items()))
