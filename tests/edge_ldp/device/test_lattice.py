"""Buckets partition the integers; a lattice point's mean is the value."""

from fractions import Fraction
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from edge_ldp.device.lattice import bucket_edge, clamp, to_bucket, to_lattice
from tests.edge_ldp.laws import exact_law, outcomes, scripted

RANGES = st.tuples(st.integers(-(2**47), 2**47), st.integers(1, 2**47)).map(
    lambda pair: (pair[0], pair[0] + pair[1])
)
SMALL = [(0, 1), (-3, 7), (0, 12), (-20, -4), (5, 29)]


@given(RANGES, st.integers())
def test_clamping_gives_the_nearest_value_of_the_range(span: tuple[int, int], value: int) -> None:
    low, high = span
    inside = clamp(value, low, high)
    assert low <= inside <= high
    assert inside == sorted((low, value, high))[1]


def test_buckets_and_edges_agree_for_every_integer() -> None:
    for low, high in SMALL:
        for size in range(2, high - low + 2):
            edges = [bucket_edge(bucket, low, high, size) for bucket in range(size + 1)]
            assert (edges[0], edges[-1]) == (low, high + 1)
            widths = [right - left for left, right in pairwise(edges)]
            assert min(widths) >= 1
            assert max(widths) - min(widths) <= 1
            for bucket, left in enumerate(edges[:-1]):
                for value in range(left, edges[bucket + 1]):
                    assert to_bucket(value, low, high, size) == bucket


@given(RANGES, st.data())
def test_buckets_partition_wide_ranges_too(span: tuple[int, int], data: st.DataObject) -> None:
    low, high = span
    size = data.draw(st.integers(2, min(65_536, high - low + 1)))
    bucket = data.draw(st.integers(0, size - 1))
    left, right = (bucket_edge(b, low, high, size) for b in (bucket, bucket + 1))
    assert left < right
    assert to_bucket(left, low, high, size) == bucket == to_bucket(right - 1, low, high, size)
    assert (right - left) - (high - low + 1) // size in (0, 1)


@given(RANGES, st.integers(), st.integers(2, 65_536))
def test_values_outside_lie_in_the_buckets_at_the_ends(
    span: tuple[int, int], value: int, size: int
) -> None:
    low, high = span
    size = min(size, high - low + 1)
    bucket = to_bucket(value, low, high, size)
    assert 0 <= bucket < size
    if value <= low:
        assert bucket == 0
    if value >= high:
        assert bucket == size - 1


def test_the_mean_of_the_lattice_point_is_the_value_exactly() -> None:
    for low, high in SMALL:
        span = high - low
        for size in (2, 3, 5, 8):
            for value in range(low - 2, high + 3):
                law = exact_law(lambda d: to_lattice(value, low, high, size, d))  # noqa: B023
                mean = sum(point * share for point, share in law.items())
                assert mean == Fraction((clamp(value, low, high) - low) * (size - 1), span)
                assert max(law) - min(law) <= 1
                assert 0 <= min(law) <= max(law) < size


def test_one_draw_over_the_span_also_on_a_lattice_point() -> None:
    for value in range(-5, 20):
        asked = {asked for asked, _ in outcomes(lambda d: to_lattice(value, 0, 12, 5, d))}  # noqa: B023
        assert asked == {(12,)}


@given(RANGES, st.integers(2, 65_536), st.data())
def test_the_ends_are_lattice_points_whatever_is_drawn(
    span: tuple[int, int], size: int, data: st.DataObject
) -> None:
    low, high = span
    drawn = data.draw(st.integers(0, high - low - 1))
    assert to_lattice(low, low, high, size, scripted(drawn)) == 0
    assert to_lattice(high, low, high, size, scripted(drawn)) == size - 1
