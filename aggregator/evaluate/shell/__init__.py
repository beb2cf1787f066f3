"""What touches files, processes and the screen for the studies."""
