"""A load generator: real frames from real mechanisms, disturbed and lied to, with known counts."""
