"""What stands in for the world outside: simulated meters and homes, the demo, example data."""
