"""Which reports count, exactly once: a pure function from messages to what a store changes."""
