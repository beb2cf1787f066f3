"""What the code costs; figures and how they were taken stand in README.md."""
