"""One frame as the aggregator reads it."""

from aggregator.counting.frames import Arrival, FrameBatch


def read_frame(device: str, payload: bytes) -> Arrival:
    frames, _ = FrameBatch.read([(device, payload)])
    (found,) = frames
    return found
