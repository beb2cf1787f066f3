"""Simulated homes and fleets, speaking the device's protocol."""
