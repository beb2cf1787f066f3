"""Read the golden vectors of tests/vectors, which never change."""

import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent.parent / "vectors"


def tables(form: str, version: int = 1) -> dict[str, dict[str, Any]]:
    """Return the vector files of one version of a format by name."""
    paths = VECTORS.glob(f"{form}/v{version}/*.json")
    found = {path.stem: json.loads(path.read_text()) for path in paths}
    assert found
    return dict(sorted(found.items()))
