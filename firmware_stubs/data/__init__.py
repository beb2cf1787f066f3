"""Real load series in whole watts, bundled for simulations, the demo and tests."""

from firmware_stubs.data.load import HOMES, HOUSEHOLDS, load_household, load_swiss, load_year

__all__ = ["HOMES", "HOUSEHOLDS", "load_household", "load_swiss", "load_year"]
