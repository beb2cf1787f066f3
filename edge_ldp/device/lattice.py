"""From a value to a channel's input, by integers only: clamp, then a bucket or a lattice point.

Buckets cut the integers low..high into `size` runs as equal as integers allow (densities).
A lattice puts `size` points at equal distances on [low, high] and rounds by an exact integer coin,
so that the point's mean is the value itself (sums). Source: docs/design.md, The kernel.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from edge_ldp.device.draw import Uniform


def clamp(value: int, low: int, high: int) -> int:
    """Return the value in [low, high] nearest to `value`."""
    return low if value < low else min(value, high)


def to_bucket(value: int, low: int, high: int, size: int) -> int:
    """Return the bucket, 0..size-1, of a value (clamped to [low, high]); size ≤ high-low+1."""
    if value < low:
        return 0
    if value > high:
        return size - 1
    return (value - low) * size // (high - low + 1)


def bucket_edge(bucket: int, low: int, high: int, size: int) -> int:
    """Return the smallest value of `bucket`; `bucket_edge(size, …)` is high + 1."""
    return low - (-bucket * (high - low + 1) // size)


def to_lattice(value: int, low: int, high: int, size: int, draw: "Uniform") -> int:
    """Return a neighbouring lattice point, 0..size-1, whose mean is the clamped value exactly.

    Draws once, also when the value lies on a point: the number of draws must not tell.
    """
    span = high - low
    if value < low:
        scaled = 0
    elif value > high:
        scaled = span * (size - 1)
    else:
        scaled = (value - low) * (size - 1)
    index = scaled // span
    return index + 1 if draw(span) < scaled - index * span else index
