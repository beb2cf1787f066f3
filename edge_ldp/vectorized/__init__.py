"""The same draws over arrays: from the same bytes the same codes as the scalar kernel."""

from edge_ldp.vectorized.frames import encode_frame, frame_arrays
from edge_ldp.vectorized.oracles import perturb_oracle_many
from edge_ldp.vectorized.perturb import decode_many, decode_table, draw_many, perturb_many

__all__ = [
    "decode_many",
    "decode_table",
    "draw_many",
    "encode_frame",
    "frame_arrays",
    "perturb_many",
    "perturb_oracle_many",
]
