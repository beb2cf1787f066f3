"""From a value to a channel's input, by integers only: clamp, then a bucket or a lattice point.

Buckets cut the integers low..high into `size` runs as equal as integers allow (densities).
A lattice puts `size` points at equal distances on [low, high] and rounds by an exact integer coin,
so that the point's mean is the value itself (sums). Source: DESIGN §4.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edge_ldp.device.draw import Uniform


def clamp(value: int, low: int, high: int) -> int:
    """Return the value in [low, high] nearest to `value`."""
    return low if value < low else min(value, high)


def to_bucket(value: int, low: int, high: int, size: int) -> int:
    """Return the bucket, 0..size-1, of a value (clamped to [low, high]); size ≤ high-low+1."""
    return (clamp(value, low, high) - low) * size // (high - low + 1)


def bucket_edge(bucket: int, low: int, high: int, size: int) -> int:
    """Return the smallest value of `bucket`; `bucket_edge(size, …)` is high + 1."""
    return low - (-bucket * (high - low + 1) // size)


def to_lattice(value: int, low: int, high: int, size: int, draw: "Uniform") -> int:
    """Return a neighbouring lattice point, 0..size-1, whose mean is the clamped value exactly.

    Draws once, also when the value lies on a point: the number of draws must not tell.
    """
    span = high - low
    scaled = (clamp(value, low, high) - low) * (size - 1)
    return scaled // span + (draw(span) < scaled % span)
