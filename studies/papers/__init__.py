"""The tables of docs/results.md: rows of `edge-ldp evaluate` beside runs of others' code."""
