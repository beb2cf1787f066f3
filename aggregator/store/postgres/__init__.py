"""The store for a fleet on several machines: PostgreSQL."""
