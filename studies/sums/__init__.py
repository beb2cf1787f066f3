"""Whether 95 % intervals of sums hold 95 %, on laws and homes that nobody tuned them to."""
