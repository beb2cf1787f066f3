"""What docs/results.md says of the demo's hours of day."""

import re
from pathlib import Path

from studies.theta.hours import widths

DOC = Path(__file__).parents[3] / "docs" / "results.md"


def test_the_figures_are_those_of_the_page_and_knowing_more_is_narrower() -> None:
    found = widths()
    assert sorted(found.values()) == list(found.values())
    said = dict(re.findall(r"^\| (.+?) \| ± ([0-9.]+) %", DOC.read_text(), re.MULTILINE))
    assert said == {known: f"{percent:.1f}" for known, percent in found.items()}
