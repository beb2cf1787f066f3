"""The research wing: what only a proof, a comparison with rivals or a load test needs."""
