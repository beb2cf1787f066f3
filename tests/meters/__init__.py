"""Meters and lines that tests plug the agent into, beside those of `simulate meter`."""
