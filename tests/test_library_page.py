"""docs/library.md is a session that runs as it stands, block after block, in one namespace."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).parents[1] / "docs" / "library.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the names that the page's code leaves behind; its figure is in `folder`."""
    import matplotlib as mpl  # noqa: PLC0415 (loading it takes a second)
    from matplotlib import pyplot as plt  # noqa: PLC0415

    names: dict[str, Any] = {"folder": tmp_path_factory.mktemp("page")}
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(names["folder"])
        mpl.use("agg")
        for block in BLOCK.findall(PAGE.read_text()):
            exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 (our own page)
    plt.close("all")
    return names


def test_every_value_becomes_one_report(session: dict[str, Any]) -> None:
    counts = (session["survey_counts"], session["stream_counts"])
    assert sum(int(each.sum()) for each in counts) == len(session["watts"]) == 300_000
    assert [len(each) for each in counts] == [
        session[name].code_count for name in ("survey", "stream")
    ]


def test_the_density_is_drawn_and_tabled(session: dict[str, Any]) -> None:
    assert (session["folder"] / "density.png").read_bytes().startswith(b"\x89PNG")
    assert session["table"]["probability"].sum() == pytest.approx(1)
    assert session["density"].n == session["survey_counts"].sum()


def test_the_intervals_are_intervals_and_wider_than_nothing(session: dict[str, Any]) -> None:
    mean, median = session["mean"], session["median"]
    assert 0 <= mean.low < mean.mean < mean.high <= session["CEILING"]
    assert mean.corrected
    assert 0 < median.low[0] < median.high[0] <= session["CEILING"]
    assert 0 < session["found"].theta <= session["CEILING"]


def test_the_optimal_table_has_less_noise_as_the_page_says(session: dict[str, Any]) -> None:
    ratio = session["tuned"].worst_variance / session["stream"].worst_variance
    assert round(ratio, 2) == 0.93
    assert np.shape(session["shares"]) == (4,)


def test_the_page_names_every_room_of_the_library_with_public_names() -> None:
    from tests.test_public_names import PUBLIC  # noqa: PLC0415 (its list only)

    rooms = set(re.findall(r"^- `([.\w]*)`:", PAGE.read_text(), re.MULTILINE))
    assert rooms == set(PUBLIC) - {"edge_ldp.gateway", "edge_ldp.mechanisms"}
