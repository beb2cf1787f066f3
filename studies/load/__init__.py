"""The simulated fleet: real frames of real mechanisms, disturbed and lied to, counts known."""
