"""The agent while it runs: the meter's feed, a changed configuration, health."""
