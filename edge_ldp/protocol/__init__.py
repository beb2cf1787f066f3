"""What travels between devices and aggregator, and what is promised: plans, messages, ledgers."""
