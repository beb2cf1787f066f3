"""What agent, aggregator and simulations share of the outside world: the clock and the broker."""
