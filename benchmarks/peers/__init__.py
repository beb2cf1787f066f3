"""Our mechanisms and other libraries' on one machine, in one process: `make bench-peers`."""
