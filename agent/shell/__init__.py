"""Where the agent meets the world: serial port, disk, broker, clock, signals."""
