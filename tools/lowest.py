"""Print the lowest versions that our distributions ask for, as constraints (make test-lowest).

These are the floors (`name>=version`) of our pyproject.toml, but for the tools of the extra
`dev`: these may be of any version.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = (".", "agent", "aggregator", "firmware_stubs", "studies")
FLOOR = re.compile(r"([\w.-]+)(?:\[[\w,]+\])?>=([\w.]+)")


def needs(place: str) -> list[str]:
    """Return what the distribution of a folder asks for, ours left out."""
    project = tomllib.loads((ROOT / place / "pyproject.toml").read_text())["project"]
    extras = project.get("optional-dependencies", {})
    parts = [project["dependencies"], *(extras[name] for name in extras if name != "dev")]
    return [need for part in parts for need in part if not need.startswith("edge-ldp")]


def lowest() -> dict[str, str]:
    """Return each name's floor; raises ValueError where there is none, or places differ."""
    found: dict[str, str] = {}
    for place in PLACES:
        for need in needs(place):
            floor = FLOOR.fullmatch(need)
            if floor is None:
                raise ValueError(f"{place}/pyproject.toml, {need}: expected name>=version")
            if found.setdefault(floor[1], floor[2]) != floor[2]:
                raise ValueError(f"{place}/pyproject.toml, {need}: {found[floor[1]]} elsewhere")
    return found


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}=={floor}\n" for name, floor in sorted(lowest().items()))
