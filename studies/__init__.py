"""Measurements behind the docs: scripts with seeds, not shipped."""
