"""What an operator asks: sums, load curves, densities, completeness, promises, curated streams."""
