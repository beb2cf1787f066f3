"""What a fleet sends while its aggregator is away or too slow, and how soon it is over."""
