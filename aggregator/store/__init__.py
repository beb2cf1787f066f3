"""What is kept of every device and stream: one contract, on SQLite or PostgreSQL."""
