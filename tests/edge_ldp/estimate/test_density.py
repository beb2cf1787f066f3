import sys
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge_ldp import Hybrid, SquareWave
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.lattice import to_bucket
from edge_ldp.estimate.density import Density, category_edges, density, edges_of


@st.composite
def bucketed(draw: st.DrawFn) -> Density:
    size = draw(st.integers(1, 12))
    widths = draw(st.lists(st.integers(1, 5), min_size=size, max_size=size))
    masses = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(any))
    low = draw(st.integers(-20, 20))
    edges = np.cumsum([low, *widths])
    return density(np.array(masses) / sum(masses), edges)


def integers_of(x: Density) -> tuple[np.ndarray, np.ndarray]:
    widths = np.diff(x.edges).astype(int)
    values = np.arange(int(x.edges[0]), int(x.edges[-1]))
    return values, np.repeat(x.probabilities / widths, widths)


@given(bucketed())
def test_moments_are_those_of_the_integers_in_the_buckets(x: Density) -> None:
    values, mass = integers_of(x)
    assert x.mean() == pytest.approx(mass @ values, abs=1e-9)
    assert x.variance() == pytest.approx(mass @ (values - mass @ values) ** 2, abs=1e-9)


@given(bucketed(), st.integers(-30, 90), st.integers(0, 60))
def test_a_range_is_half_open(x: Density, lo: int, width: int) -> None:
    values, mass = integers_of(x)
    inside = (lo <= values) & (values < lo + width)
    assert x.range(lo, lo + width) == pytest.approx(mass[inside].sum(), abs=1e-12)
    assert x.range(-inf, inf) == pytest.approx(1)


@given(bucketed(), st.floats(0, 1), st.floats(0, 1))
def test_quantiles_rise_and_stay_inside(x: Density, p: float, q: float) -> None:
    first, second = x.quantile(min(p, q)), x.quantile(max(p, q))
    assert x.edges[0] <= first <= second <= x.edges[-1] - 1


def test_quantiles_are_linear_in_a_bucket_and_skip_empty_ones() -> None:
    x = density([0.5, 0.0, 0.5], [0, 10, 20, 30])  # integers 0..9 and 20..29
    assert [x.quantile(p) for p in (0, 0.25, 0.5, 0.75, 1)] == [0, 4.5, 9.5, 24.5, 29]
    one = density([0.0, 1.0, 0.0], [4, 5, 6, 7])
    assert one.quantile(0.5) == one.mean() == 5
    assert one.variance() == 0


def test_lattice_points_are_atoms_for_moments_and_cells_for_ranges() -> None:
    mechanism = Hybrid(epsilon=1, low=0, high=100, size=5)
    edges = edges_of(mechanism)
    assert edges.tolist() == [0, 12.5, 37.5, 62.5, 87.5, 100]
    x = density([0.2, 0, 0, 0, 0.8], edges, lattice=True)
    assert x.mean() == 80
    assert x.variance() == pytest.approx(0.2 * 0.8 * 100**2)
    assert x.range(0, 50) == pytest.approx(0.2)
    assert x.quantile(0.1) == pytest.approx(6.25)
    assert x.quantile(1) == 100


def test_edges_are_the_encoders_buckets() -> None:
    mechanism = SquareWave(epsilon=1, low=-5, high=17, size=7)
    edges = edges_of(mechanism)
    for value in range(-5, 18):
        bucket = to_bucket(value, -5, 17, 7)
        assert edges[bucket] <= value < edges[bucket + 1]
    assert edges[-1] == 18


def test_its_arrays_are_copies_that_cannot_be_changed() -> None:
    given_mass = np.array([0.25, 0.75])
    x = density(given_mass, [0, 1, 2])
    given_mass[0] = 9
    assert x.probabilities.tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match="read-only"):
        x.probabilities[0] = 1


@given(bucketed(), st.integers(-30, 90))
def test_the_share_below_a_point_is_the_range_up_to_it(x: Density, at: int) -> None:
    below = x.cdf([at, float(x.edges[0]), float(x.edges[-1])])
    assert below[0] == pytest.approx(x.range(-inf, at), abs=1e-12)
    assert below[1:].tolist() == [0, 1]


def test_categories_are_cells_of_one_integer_unless_edges_are_given() -> None:
    assert category_edges(3).tolist() == [0, 1, 2, 3]
    assert category_edges(2, [5, 7, 9]).tolist() == [5, 7, 9]
    with pytest.raises(ParameterError, match="edges"):
        category_edges(2, [5, 7])


def test_it_shows_itself_in_one_short_line() -> None:
    assert repr(density([0.5, 0.5], [0, 4, 8], n=7)) == "<Density [0, 8) 2 buckets n 7 mean 3.5>"
    of_points = density([0.5, 0.5], [0, 4, 8], lattice=True)
    assert repr(of_points) == "<Density [0, 8) 2 points n 0 mean 4>"


def test_its_frame_has_a_row_for_each_cell() -> None:
    frame = density([0.25, 0.75], [0, 4, 10]).to_frame()
    assert list(frame.columns) == ["left", "right", "centre", "probability"]
    assert frame.to_numpy().tolist() == [[0, 4, 1.5, 0.25], [4, 10, 6.5, 0.75]]


def test_its_picture_is_of_area_one_on_axes_given_or_new() -> None:
    from matplotlib import pyplot as plt  # noqa: PLC0415 (loading it takes a second)
    from matplotlib.patches import StepPatch  # noqa: PLC0415

    figure, ax = plt.subplots()
    x = density([0.25, 0.75], [0, 4, 10])
    assert x.plot(ax, fill=True) is ax
    new = x.plot()
    (drawn,) = new.patches
    assert isinstance(drawn, StepPatch)
    height, edges, _ = drawn.get_data()
    assert float(np.asarray(height) @ np.diff(edges)) == pytest.approx(1)
    assert new.figure is not figure
    plt.close("all")


@pytest.mark.parametrize(("method", "package"), [("plot", "matplotlib"), ("to_frame", "pandas")])
def test_without_the_package_a_sentence_says_what_to_install(
    method: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=f"^Density.{method} needs .*: pip install {package}$"):
        getattr(density([1.0], [0, 4]), method)()


def test_warnings_travel_with_it() -> None:
    assert density([1.0], [0, 4]).warnings == ()
    assert density([1.0], [0, 4], warnings=("few",)).warnings == ("few",)
