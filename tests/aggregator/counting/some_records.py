"""Records as there can be, for properties of how they are kept."""

from hypothesis import strategies as st

from aggregator.counting.records import Record
from aggregator.counting.seen_batches import DIGEST, ClosedSeries, DeviceState, Gap

U32 = st.integers(0, (1 << 32) - 2)
U63 = st.integers(0, (1 << 63) - 1)
GAPS = st.builds(Gap, U32, U32, st.integers(-1, 1 << 31), st.none() | U32)
DIGESTS = st.builds(DIGEST.pack, U32, st.binary(min_size=8, max_size=8))
SERIES = st.builds(
    ClosedSeries,
    *(U32, U32, U32),
    st.lists(GAPS, max_size=3).map(tuple),
    st.lists(DIGESTS, max_size=8).map(b"".join),
)
STATES = st.builds(
    DeviceState,
    series=U32,
    earlier=st.lists(SERIES, max_size=3).map(tuple),
    highest=U32,
    last_slot=st.integers(-1, (1 << 32) - 2),
    floor=U32,
    gaps=st.lists(GAPS, max_size=5).map(tuple),
    digests=st.lists(DIGESTS, max_size=8).map(b"".join),
)
RECORDS = st.builds(Record, STATES, st.none() | U32, *[U63] * 9)
