"""The local tap: raw readings for the household's own broker, and for nobody else."""
