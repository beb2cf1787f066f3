"""What agent, aggregator and simulations share of the outside world: broker, TLS, clock, keys."""
