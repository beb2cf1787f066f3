"""The tables of its README: rows of `edge-ldp evaluate` beside runs of others' code."""
