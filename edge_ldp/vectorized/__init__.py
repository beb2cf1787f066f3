"""The same draws over arrays: from the same bytes the same codes as the scalar kernel."""

from edge_ldp.vectorized.frames import decode_frames, encode_frame
from edge_ldp.vectorized.oracles import perturb_oracle_many
from edge_ldp.vectorized.perturb import decode_many, decode_table, draw_many, perturb_many

__all__ = [
    "decode_frames",
    "decode_many",
    "decode_table",
    "draw_many",
    "encode_frame",
    "perturb_many",
    "perturb_oracle_many",
]
