"""What an operator asks: sums, load curves, densities, completeness, curated streams."""
