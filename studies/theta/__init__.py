"""How θ is chosen, measured: see README.md."""
