"""The link to the broker, held by a process of its own."""
