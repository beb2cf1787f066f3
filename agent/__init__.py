"""The device's part: serial bytes to randomised reports, kept until the aggregator has them."""
