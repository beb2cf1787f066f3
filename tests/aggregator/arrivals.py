"""One frame as the aggregator reads it."""

from aggregator.counting.records import Arrival
from aggregator.counting.settle import read_frames


def read_frame(device: str, payload: bytes) -> Arrival:
    """Return a frame that is well-formed as it arrives."""
    (found,) = read_frames([(device, payload)])
    assert found is not None
    return found
