"""How far it is from counts to the plan: the files and functions that a revision walks through."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from tests.aggregator.plans.test_revision import Fleet, reports, values
from tests.test_architecture import PACKAGES, ROOT

# The certificate is no part of it: who issues a plan proves it; nor is what makes an object, as
# little as dataclasses. More than this is a second way.
MOST_FILES, MOST_FUNCTIONS = 25, 170
PASSED_OVER = ("tests", "edge_ldp/lean_class.py")


def walked(act: Callable[[], object]) -> set[tuple[str, str]]:
    """Return (file, function) of all of ours that run during an act; comprehensions are none."""
    ours = tuple(str(ROOT / name) for name in PACKAGES)
    found = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ours) and code.co_name[0] != "<":
            place = str(Path(code.co_filename).relative_to(ROOT))
            found.add((place, f"{code.co_name}:{code.co_firstlineno}"))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(before)
    return found


def test_from_counts_to_the_plan_it_is_not_far() -> None:
    fleet = Fleet()
    fleet.rows = reports(fleet.plan, values(600, 7), 0)
    fleet.day = 1
    found = walked(fleet.revision)
    found = {(place, name) for place, name in found if not place.startswith(PASSED_OVER)}
    files = {place for place, _ in found}
    assert len(files) <= MOST_FILES, sorted(files)
    assert len(found) <= MOST_FUNCTIONS
    assert {"aggregator/plans/revision.py", "edge_ldp/threshold/choice.py"} <= files
    assert not any(place.startswith("edge_ldp/certify") for place in files)
