"""The aggregator while it runs: its workers, their leader, and their chores."""
