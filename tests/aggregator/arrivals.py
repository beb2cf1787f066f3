"""One frame as the aggregator reads it."""

from aggregator.counting.frames import Arrival, FrameBatch


def read_frame(device: str, payload: bytes) -> Arrival:
    """Return a frame that is well-formed as it arrives."""
    frames, _ = FrameBatch.read([(device, payload)])
    (found,) = frames
    return found
